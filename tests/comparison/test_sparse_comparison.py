"""Held-out answers where each subject answered few items: folds, predictions and scores of the whole matrix."""

import numpy as np
import pytest
from scipy.special import log_expit
from simulation import simulate

import irtjax
from irtjax.integration.prediction import log_likelihood_of_subjects, posterior_moments, predict, predict_answers
from irtjax.kernels.models import ItemParameters
from irtjax.responses.folds import folds_of_answers, folds_of_cells
from irtjax.responses.sparse import of_matrix

MEAN, SD = np.array([0.2]), np.array([1.3])


@pytest.fixture(scope="module")
def responses():
    return simulate(200, 20, seed=3, missing=0.5)[0]


@pytest.mark.parametrize("missing", [0.5, 0.93])  # then some subjects and items have answers in one fold alone
def test_folds_of_answers_are_those_of_cells(missing):
    matrix = simulate(200, 20, seed=4, missing=missing)[0]
    for seed in range(3):
        of_cells = folds_of_cells(matrix.values, 4, seed)[matrix.values >= 0]
        np.testing.assert_array_equal(folds_of_answers(of_matrix(matrix), 4, seed), of_cells)
    assert missing < 0.9 or (of_cells == -1).any()


@pytest.mark.parametrize("steepness", [1.0, 100.0])
def test_predictions_of_single_answers(responses, steepness):
    """Likelihoods against a fine sum; moments and predictions against the whole matrix."""
    rng = np.random.default_rng(0)
    none = np.full(20, np.inf)
    items = ItemParameters(steepness * rng.lognormal(0, 0.3, (20, 1)), steepness * rng.normal(size=20), -none, none)
    asked = of_matrix(responses)
    sparse, values = asked.values, responses.values
    theta = np.linspace(-6, 6, 24001)
    logit = (MEAN + SD * theta)[:, None] * items.slope[:, 0] + items.intercept
    height = -(theta**2) / 2 + (values == 1) @ log_expit(logit).T + (values == 0) @ log_expit(-logit).T
    truth = np.logaddexp.reduce(height, axis=1) - np.logaddexp.reduce(-(theta**2) / 2)
    found = log_likelihood_of_subjects(items, sparse, MEAN, SD)
    tolerance = 1e-6 if steepness == 1 else 2e-3
    np.testing.assert_allclose(found, truth, atol=tolerance)
    for one, other in zip(
        posterior_moments(items, sparse, MEAN, SD), posterior_moments(items, values, MEAN, SD), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=5 * tolerance)
    predicted = predict_answers(items, sparse, asked, MEAN, SD)
    np.testing.assert_allclose(predicted, predict(items, values, MEAN, SD)[values >= 0], atol=tolerance)


def test_two_dimensions(responses):
    rng = np.random.default_rng(1)
    none = np.full(20, np.inf)
    items = ItemParameters(rng.lognormal(0, 0.3, (20, 2)), rng.normal(size=20), -none, none)
    mean, sd, asked = np.zeros(2), np.ones(2), of_matrix(responses)
    predicted = predict_answers(items, asked.values, asked, mean, sd)
    whole = predict(items, responses.values, mean, sd)[responses.values >= 0]
    np.testing.assert_allclose(predicted, whole, atol=1e-10)


def test_comparison_of_single_answers_is_that_of_the_matrix(responses):
    options = {"models": ("1pl",), "by": ("cells", "subjects", "items"), "folds": 2, "seed": 1}
    one, other = irtjax.compare(of_matrix(responses), **options), irtjax.compare(responses, **options)
    for name in ("table", "folds", "calibration"):
        found, expected = (getattr(each, name).drop(columns="seconds", errors="ignore") for each in (one, other))
        numbers = expected.select_dtypes("number").columns
        np.testing.assert_allclose(found[numbers], expected[numbers], atol=1e-5)
        assert found.drop(columns=numbers).equals(expected.drop(columns=numbers))
    np.testing.assert_allclose(one.table["log_loss"], other.table["log_loss"], atol=1e-8)
