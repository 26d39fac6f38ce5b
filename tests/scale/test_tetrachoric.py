"""Tetrachoric correlations, against psych and SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from references import matrix
from scipy.stats import multivariate_normal, norm

from irtjax.scale.dimensionality import parallel_analysis
from irtjax.scale.tetrachoric import bivariate_normal_cdf, pair_tables, positive_definite, tetrachoric


@pytest.mark.parametrize("rho", [-0.999, -0.5, 0.0, 0.3, 0.95, 0.9999])
def test_bivariate_normal_probabilities_are_those_of_scipy(rho):
    h, k = np.random.default_rng(0).normal(size=(2, 5))
    with jax.enable_x64(True):
        found = np.asarray(jax.jit(bivariate_normal_cdf)(jnp.asarray(h), jnp.asarray(k), jnp.full(5, rho)))
    expected = [multivariate_normal.cdf(point, cov=[[1, rho], [rho, 1]]) for point in zip(h, k, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("name", ["5_contradiction", "lsat7"])
def test_correlations_are_those_of_psych(oracle, name):
    # psych stops its search within 1e-4
    np.testing.assert_allclose(tetrachoric(oracle.responses(name).values), oracle.table(f"tetra_rho_{name}"), atol=1e-4)


@pytest.mark.parametrize("name", ["5_contradiction", "5_entailment", "5_neutral", "5_all", "lsat7"])
def test_eigenvalues_are_those_of_psych(oracle, name):
    found = np.linalg.eigvalsh(positive_definite(tetrachoric(oracle.responses(name).values)))[::-1]
    expected = oracle.table(f"tetra_eigen_{name}")["eigenvalue"]
    np.testing.assert_allclose(found, expected, atol=1.5e-4, rtol=1e-4)


def test_pairs_are_counted_where_both_were_answered():
    values = np.array([[1, 1, 0], [1, 0, -1], [0, -1, 1], [1, 1, 1]], np.int8)
    np.testing.assert_array_equal(pair_tables(values)[0, 1], [[0, 0], [1, 2]])
    np.testing.assert_array_equal(pair_tables(values)[1, 2], [[0, 0], [1, 1]])


@pytest.mark.parametrize("rho", [-0.95, -0.3, 0.0, 0.7])
def test_the_correlation_behind_exact_shares_is_found(rho):
    both = multivariate_normal.cdf([0.5, -1.0], cov=[[1, rho], [rho, 1]])
    first, second = norm.cdf(0.5), norm.cdf(-1.0)
    shares = np.array([both, first - both, second - both, 1 - first - second + both])
    values = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], np.round(1e6 * shares).astype(int), axis=0).astype(np.int8)
    assert tetrachoric(values)[0, 1] == pytest.approx(rho, abs=1e-4)
    assert tetrachoric(values[:, ::-1])[0, 1] == pytest.approx(tetrachoric(values)[1, 0], abs=1e-7)


def test_pairs_that_nobody_answered_are_unknown():
    values = np.array([[1, 0, -1], [0, 1, -1], [1, 1, -1], [-1, 1, 0], [-1, 0, 1]], np.int8)
    found = tetrachoric(values)
    assert np.isnan(found[0, 2])
    assert np.isfinite(found[[0, 1], [1, 2]]).all()


def test_empty_cells_are_corrected():
    values = np.array([[1, 1]] * 5 + [[0, 0]] * 5, np.int8)
    with_halves = np.array([[1, 1]] * 10 + [[0, 0]] * 10 + [[1, 0], [0, 1]], np.int8)
    assert tetrachoric(values)[0, 1] == pytest.approx(tetrachoric(with_halves)[0, 1], abs=1e-6)


def test_parallel_analysis_counts_factors(oracle):
    assert parallel_analysis(oracle.responses("sim2d").values, replications=5).num_factors == 2
    noise = np.random.default_rng(0).integers(0, 2, (500, 10)).astype(np.int8)
    assert parallel_analysis(noise, replications=5).num_factors <= 1
    assert parallel_analysis(matrix(noise).values, seed=1, replications=5).noise[0] > 1
