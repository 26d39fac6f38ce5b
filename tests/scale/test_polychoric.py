"""Polychoric correlations: against two-dimensional integrals, tetrachoric correlations, and a known correlation."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import norm

import irtjax
from irtjax import InputError
from irtjax.responses.from_arrays import of_grades, of_shares
from irtjax.scale.dimensionality import compare_factors, parallel_analysis
from irtjax.scale.polychoric import of_categories, of_table
from irtjax.scale.tetrachoric import tetrachoric

RNG = np.random.default_rng(2)
NORMAL = RNG.multivariate_normal(np.zeros(3), [[1, 0.6, -0.3], [0.6, 1, 0.2], [-0.3, 0.2, 1]], size=1500)
CUTS = ([-0.8, 0.1, 1.0], [-1.2, 0.4], [0.0, 0.7, 1.5])
GRADES = np.stack([np.digitize(x, cuts) for x, cuts in zip(NORMAL.T, CUTS, strict=True)], axis=1)


def test_the_correlation_is_the_likeliest():
    """Probabilities of cells by integration over the first variable, with the second normal given it."""
    table = np.array([[20.0, 9, 2], [11, 25, 8], [4, 12, 19], [0, 3, 15]])
    shares = table / table.sum()
    a, b = (np.concatenate([[-9], norm.ppf(np.cumsum(shares.sum(axis=k))[:-1]), [9]]) for k in (1, 0))

    def loss(rho):
        def cell(i, j):
            sd = np.sqrt(1 - rho**2)
            within = lambda x: norm.pdf(x) * np.diff(norm.cdf((b[j : j + 2] - rho * x) / sd))[0]  # noqa: E731
            return quad(within, a[i], a[i + 1], epsabs=1e-12)[0]

        return -sum(table[i, j] * np.log(cell(i, j)) for i, j in np.argwhere(table > 0))

    expected = minimize_scalar(loss, bounds=(-0.99, 0.99), method="bounded", options={"xatol": 1e-8}).x
    assert of_table(table) == pytest.approx(expected, abs=1e-6)
    assert of_table(table[::-1]) == pytest.approx(-expected, abs=1e-6)


def test_two_categories_are_tetrachoric():
    values = (GRADES > [1, 0, 0]).astype(np.int8)
    values[:50, 1] = -1
    np.testing.assert_allclose(of_categories(values.astype(int)), tetrachoric(values), atol=1e-7)
    empty = np.array([[30.0, 0], [10, 20]])  # half a subject
    assert of_table(empty) == pytest.approx(of_table(np.array([[30.0, 0.5], [10, 20]])), abs=1e-7)


def test_known_correlations_come_back_and_categories_that_nobody_chose_do_not_matter():
    found = irtjax.polychoric(pd.DataFrame(GRADES + 1, columns=["a", "b", "c"]))
    np.testing.assert_allclose(found[np.tril_indices(3, -1)], [0.6, -0.3, 0.2], atol=0.06)
    np.testing.assert_allclose(of_categories(2 * GRADES), found, atol=1e-12)
    # ends of a perfect order, and an item that does not vary among those who answered both
    assert of_table(np.diag([5.0, 5, 5])) > 0.99
    assert np.isnan(of_table(np.array([[3.0, 4.0]])))
    with pytest.raises(InputError, match="item 'y' has counts or shares"):
        irtjax.polychoric(of_shares(np.full((3, 1), 0.5), ["a", "b", "c"], ["y"]))


def two_factors():
    factors = np.random.default_rng(4).normal(size=(500, 2))
    noise = np.random.default_rng(5).normal(size=(500, 6))
    return np.stack([np.digitize(factors[:, i % 2] + noise[:, i] / 2, CUTS[2]) for i in range(6)], axis=1)


@pytest.mark.slow
def test_one_factor_of_grades_against_two():
    ids = [f"s{j}" for j in range(500)], [f"i{i}" for i in range(6)]
    found = compare_factors(of_grades(two_factors().astype(float), *ids), "graded")
    assert found.num_factors == 2
    assert found.degrees_of_freedom == 5
    assert found.p_value < 1e-6


def test_parallel_analysis_of_grades_finds_the_factors():
    values = two_factors()
    found = parallel_analysis(values, replications=3)
    assert found.num_factors == 2
    assert found.observed.sum() == pytest.approx(6)
    assert parallel_analysis(values[:, ::2], replications=3).num_factors == 1
