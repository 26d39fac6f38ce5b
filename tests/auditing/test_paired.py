"""Pairs on common items: McNemar's exact test, the paired t-test of SciPy, Holm's adjustment of statsmodels."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_rel
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

import irtjax
from irtjax import InputError


def test_right_and_wrong_answers_against_mcnemar():
    rng = np.random.default_rng(0)
    values = (rng.random((4, 60)) < np.array([[0.8], [0.5], [0.6], [0.3]])).astype(float)
    values[rng.random(values.shape) < 0.2] = np.nan
    table = irtjax.paired(pd.DataFrame(values, list("abcd")))
    assert len(table) == 6
    for row in table.itertuples():
        one, other = (values["abcd".index(name)] for name in (row.subject_a, row.subject_b))
        both = ~np.isnan(one + other)
        one, other = one[both], other[both]
        counts = [[int(((one == x) & (other == y)).sum()) for y in (1, 0)] for x in (1, 0)]
        assert row.num_items == both.sum()
        assert (row.only_a, row.only_b) == (counts[0][1], counts[1][0])
        np.testing.assert_allclose(row.p_value, mcnemar(counts, exact=True).pvalue)
        np.testing.assert_allclose(row.difference, one.mean() - other.mean(), atol=1e-12)
        assert row.difference >= 0
        np.testing.assert_allclose(row.standard_error, (one - other).std(ddof=1) / np.sqrt(both.sum()))
    np.testing.assert_allclose(table["p_adjusted"], multipletests(table["p_value"], method="holm")[1])


def test_grades_against_the_paired_t_test():
    rng = np.random.default_rng(1)
    grades = np.clip(np.round(3 + rng.normal(size=(3, 40)) + [[0.5], [0], [-0.5]]), 1, 5)
    table = irtjax.paired(pd.DataFrame(grades, list("abc")))
    for row in table.itertuples():
        one, other = (grades["abc".index(name)] for name in (row.subject_a, row.subject_b))
        np.testing.assert_allclose(row.p_value, ttest_rel(one, other).pvalue)


def test_nothing_in_common_and_what_is_refused():
    values = pd.DataFrame([[1, 0, np.nan, np.nan], [np.nan, np.nan, 1, 0], [1, 1, 0, 0]], list("abc"))
    table = irtjax.paired(values).set_index(["subject_a", "subject_b"])
    assert np.isnan(table["p_value"][("a", "b")])
    assert table["num_items"][("a", "b")] == 0
    with pytest.raises(InputError, match="3 subjects make 3 pairs: name the `subjects`, or raise `most`"):
        irtjax.paired(values, most=2)
    with pytest.raises(InputError, match="expected two or more"):
        irtjax.paired(values, ["a"])
