"""Items tried n times: against the distribution of SciPy, and a dense maximum."""

import numpy as np
import pytest
from binomial_counts import CONSTANT, IDS, NODES, RIGHT, SUCCESSES, TRIALS, WRONG
from scipy.optimize import minimize
from scipy.special import log_expit, logsumexp

from irtjax.estimation.families import fit_families
from irtjax.responses.from_arrays import of_counts, of_grades


def log_likelihood(vector):
    x = NODES.nodes * vector[:8] + vector[8:]
    return CONSTANT + logsumexp(RIGHT @ log_expit(x).T + WRONG @ log_expit(-x).T + NODES.log_weights, axis=1).sum()


def test_the_fit_is_the_dense_maximum():
    fit = fit_families(of_counts(SUCCESSES, TRIALS, *IDS), "binomial", priors=None)
    at_fit = np.concatenate([fit.parameters.slope[:, 0], fit.parameters.intercept])
    assert fit.converged
    assert fit.log_likelihood == pytest.approx(log_likelihood(at_fit), abs=1e-5)
    found = minimize(lambda vector: -log_likelihood(vector), at_fit + 0.1, tol=1e-9)
    assert -found.fun == pytest.approx(fit.log_likelihood, abs=1e-5)
    np.testing.assert_allclose(at_fit, found.x, atol=2e-4)
    eye = np.eye(16) * 1e-3  # the information, by differences
    hessian = [[log_likelihood(found.x + a - b) + log_likelihood(found.x - a + b) - log_likelihood(found.x + a + b)
                - log_likelihood(found.x - a - b) for b in eye] for a in eye]  # fmt: skip
    covariance = np.linalg.inv(np.array(hessian) / 4e-6)
    np.testing.assert_allclose(fit.item_columns["discrimination_se"], np.sqrt(np.diag(covariance))[:8], rtol=2e-3)
    by = np.concatenate([np.diag(found.x[8:] / found.x[:8] ** 2), -np.diag(1 / found.x[:8])], axis=1)  # of -d/a
    errors = np.sqrt(np.diag(by @ covariance @ by.T))
    np.testing.assert_allclose(fit.item_columns["difficulty_se"], errors, rtol=2e-3)


def test_one_trial_is_a_grade_of_two():
    values = np.where(np.isnan(SUCCESSES), np.nan, SUCCESSES > 2)
    one, other = (
        fit_families(responses, model, priors=None)
        for responses, model in ((of_counts(values, 1, *IDS), "binomial"), (of_grades(values, *IDS), "graded"))
    )
    np.testing.assert_allclose(one.parameters.slope, other.parameters.slope, rtol=1e-6)
    assert one.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-9)
