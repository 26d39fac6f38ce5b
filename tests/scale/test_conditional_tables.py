"""Exact tests of 2 × 2 tables given their margins: against SciPy, and the level that they hold in sparse tables."""

import numpy as np
import pytest
from references import matrix
from scipy.stats import chi2, nchypergeom_fisher

import irtjax
from irtjax.kernels.quadrature import rectangular
from irtjax.scale import conditional_tables
from irtjax.scale.conditional_tables import two_sided_p_values
from irtjax.scale.dependence import pair_dependence
from irtjax.scale.multiple_tests import holm


def drawn(most, number=200):
    rng = np.random.default_rng(0)
    return rng.integers(0, most, (number, 2, 2)).astype(float), np.exp(rng.normal(0, 1.5, number))


@pytest.mark.parametrize("most", [6, 400])
def test_p_values_are_those_of_scipy(most, monkeypatch):
    tables, odds = drawn(most)
    expected = []
    for table, ratio in zip(tables, odds, strict=True):
        n, r, c = table.sum(), table[1].sum(), table[:, 1].sum()
        if max(0, r + c - n) == min(r, c):
            expected.append(1.0)  # the margins leave one table
            continue
        law = nchypergeom_fisher(n, r, c, ratio)
        expected.append(min(1.0, 2 * min(law.cdf(table[1, 1]), law.sf(table[1, 1] - 1))))
    np.testing.assert_allclose(two_sided_p_values(tables, odds), expected, rtol=1e-8, atol=1e-13)
    monkeypatch.setattr(conditional_tables, "ENTRIES", 1000)
    np.testing.assert_allclose(two_sided_p_values(tables, odds), expected, rtol=1e-8, atol=1e-13)


def test_sides_and_variables_may_change_places():
    tables, odds = drawn(30)
    p = two_sided_p_values(tables, odds)
    np.testing.assert_allclose(two_sided_p_values(tables.swapaxes(1, 2), odds), p, rtol=1e-9)
    np.testing.assert_allclose(two_sided_p_values(tables[:, ::-1], 1 / odds), p, rtol=1e-9)


@pytest.mark.slow
def test_pairs_of_sparse_items_are_flagged_no_more_often_than_the_level_says():
    """Hard items known by their parameters, 60 null sets: by chi-square, most have flagged pairs."""
    exact, by_chi_square, nodes = 0, 0, rectangular()
    rng = np.random.default_rng(1)
    for _ in range(60):
        b = rng.uniform(2.5, 5.5, 40)
        values = (rng.random((100, 40)) < 1 / (1 + np.exp(-(rng.normal(size=(100, 1)) - b)))).astype(np.int8)
        values = values[:, values.any(axis=0)]
        fit = irtjax.fit(matrix(values), "1pl", standard_errors=False)
        found = pair_dependence(values, fit.parameters, nodes)
        exact += holm(found["p_value"].to_numpy()).min() < 0.05
        by_chi_square += holm(chi2.sf(found["ld_x2"].abs(), 1)).min() < 0.05
    assert exact <= 6  # 1 in 1,000 if the level were as much as 5%
    assert by_chi_square >= 20, by_chi_square
