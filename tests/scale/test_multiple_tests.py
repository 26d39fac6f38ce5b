"""Holm's adjustment, by hand and against statsmodels'."""

import numpy as np
from statsmodels.stats.multitest import multipletests

from irtjax.scale.multiple_tests import holm


def test_holm_by_hand():
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, 0.03, 0.5])), [0.04, 0.09, 0.09, 0.5])
    np.testing.assert_allclose(holm(np.array([0.6, np.nan, 0.7])), [1, np.nan, 1])
    assert np.isnan(holm(np.array([np.nan]))).all()


def test_it_is_that_of_statsmodels():
    p_values = np.random.default_rng(0).random(200) ** 4
    p_values[50:60] = p_values[0]
    np.testing.assert_array_equal(holm(p_values), multipletests(p_values, method="holm")[1])
