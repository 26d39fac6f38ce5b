"""Anchors as steep as a wall: answers on both sides of them are as unlikely as they are, and not 1e-300."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

import irtjax
from irtjax.integration.prediction import log_likelihood_of_subjects

RNG = np.random.default_rng(0)
DIFFICULTY = np.linspace(-1.5, 1.5, 12)
VALUES = (RNG.random((120, 12)) < 1 / (1 + np.exp(DIFFICULTY - RNG.normal(size=(120, 1))))).astype(np.int8)
ANCHORS = [2, 5, 9]


def exact(fit):
    """Marginal log-likelihood of each subject by 40,001 abilities, with nothing cut off."""
    (mean,), (sd,) = fit.population
    z = np.linspace(-8, 8, 40001)
    log_weights = -0.5 * z**2
    x = (mean + sd * z)[:, None] * fit.parameters.slope[:, 0] + fit.parameters.intercept
    joint = -(VALUES @ np.logaddexp(0, -x).T + (1 - VALUES) @ np.logaddexp(0, x).T)
    return logsumexp(joint + log_weights - logsumexp(log_weights), axis=1)


@pytest.mark.parametrize("slope", [1e3, 1e6])
@pytest.mark.filterwarnings("ignore::irtjax.FitWarning")
def test_the_log_likelihood_is_that_of_the_parameters(slope):
    ids = np.array([f"i{k}" for k in range(12)])
    anchors = pd.DataFrame({"item_id": ids[ANCHORS], "difficulty": DIFFICULTY[ANCHORS], "discrimination": slope})
    responses = irtjax.ResponseMatrix(VALUES, [f"s{j}" for j in range(120)], ids)
    fit = irtjax.fit(responses, "2pl", anchors=anchors)
    expected = exact(fit)
    assert expected.sum() < -10 * slope  # some are right on a hard anchor and wrong on an easy one
    # a step falls between two of the nodes
    np.testing.assert_allclose(fit.log_likelihood, expected.sum(), rtol=0, atol=0.5)
    by_prediction = log_likelihood_of_subjects(fit.parameters, VALUES, *fit.population)
    np.testing.assert_allclose(by_prediction, expected, rtol=0, atol=0.2)
    assert (np.abs(fit.ability) < 3).all()
