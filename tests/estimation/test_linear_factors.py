"""The linear factor model: integration against the multivariate normal distribution, estimates against scikit-learn."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.decomposition import FactorAnalysis

import irtjax
from irtjax import InputError

SUBJECTS, ITEMS = 150, 6
LOADINGS, MEANS, ERRORS = np.array([2.0, -30, 0.5, 1, 4, 10]), 100.0 * np.arange(6) - 200, np.array([1, 20, 1, 2, 3, 9])


@pytest.fixture(scope="module")
def numbers():
    """Of all sizes and both signs."""
    rng = np.random.default_rng(0)
    return MEANS + LOADINGS * rng.normal(size=(SUBJECTS, 1)) + ERRORS * rng.normal(size=(SUBJECTS, ITEMS))


@pytest.fixture(scope="module")
def fit(numbers):
    return irtjax.fit(numbers, "normal")


def log_likelihood(fit, table):
    """Of the joint normal distribution of what each subject has."""
    columns = fit.item_columns
    names = sorted(name for name in columns if name.startswith("loading") and not name.endswith("_se"))
    loadings = np.stack([columns[name] for name in names], axis=1)
    covariance = loadings @ loadings.T + np.diag(columns["error_sd"] ** 2)
    total = 0.0
    for row in table:
        own = np.flatnonzero(np.isfinite(row))
        total += multivariate_normal.logpdf(row[own], columns["mean"][own], covariance[np.ix_(own, own)])
    return total


def test_integration_is_exact(fit, numbers):
    assert fit.converged
    assert fit.log_likelihood == pytest.approx(log_likelihood(fit, numbers), abs=1e-8)


def test_estimates_are_those_of_factor_analysis(fit, numbers):
    """In standard deviations of the items, as convergence of the other is on its own scale."""
    z = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    found = FactorAnalysis(1, tol=1e-12, max_iter=10_000, svd_method="lapack").fit(z)
    unit, sign = numbers.std(axis=0), np.sign(found.components_[0, 0] * fit.item_columns["loading"][0])
    np.testing.assert_allclose(fit.item_columns["loading"] / unit, sign * found.components_[0], atol=1e-5)
    np.testing.assert_allclose((fit.item_columns["error_sd"] / unit) ** 2, found.noise_variance_, atol=1e-5)
    np.testing.assert_allclose(fit.item_columns["mean"], numbers.mean(axis=0), rtol=1e-6, atol=1e-4)
    np.testing.assert_allclose(fit.ability, sign * found.transform(z)[:, 0], atol=1e-5)


def test_files_and_tables_have_the_unit_of_the_data(fit, numbers, tmp_path):
    np.testing.assert_allclose(fit.items()["mean_response"], numbers.mean(axis=0))
    fit.save(tmp_path)
    assert irtjax.load_fit(tmp_path) == fit


def test_what_the_model_does_not_take_is_said(fit, numbers):
    with pytest.raises(InputError, match="item '1': all responses are alike"):
        irtjax.fit(numbers * (np.arange(ITEMS) != 1), "normal")
    with pytest.raises(InputError, match="has abilities in its fit, and no scores"):
        irtjax.score(fit, numbers)
    with pytest.raises(InputError, match="'good' is not a number"):
        irtjax.fit([["good", 1.5, 2.5], [0.5, -1.0, 1.0]], "normal")
    with pytest.raises(InputError, match="use estimator mml"):
        irtjax.fit(numbers, "normal", "svi")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::irtjax.FitWarning")
def test_two_dimensions_with_missing_numbers(numbers):
    """Wherever the fit is, at rest or not."""
    rng = np.random.default_rng(1)
    table = numbers + rng.normal(size=(SUBJECTS, 1)) * ERRORS[::-1] * [1, 1, 1, 0, 0, 0]
    table[rng.random(table.shape) < 0.1] = np.nan
    fit = irtjax.fit(table, "normal", dims=2, max_iterations=25, standard_errors=False)
    assert fit.log_likelihood == pytest.approx(log_likelihood(fit, table), abs=1e-4)
