"""Nodes reach as far as posteriors do: of a subject far outside of a narrow population they would be cut off."""

import numpy as np
import pytest
from scipy.special import expit, log_expit, logsumexp

import irtjax


@pytest.mark.parametrize("model", ["rasch", "2pl"])
def test_the_likelihood_of_subjects_far_outside_is_whole(model):
    rng = np.random.default_rng(0)
    difficulty = rng.normal(size=60)
    values = (rng.random((150, 60)) < expit(0.2 * rng.normal(size=(150, 1)) - difficulty)).astype(np.int8)
    values[0], values[1] = 1, 0  # by a population of this width, at 8 standard deviations
    fit = irtjax.fit(values, model=model)
    nodes = np.linspace(-60, 60, 6001)
    log_weights = -0.5 * nodes**2 - logsumexp(-0.5 * nodes**2)
    x = fit.population.sd[0] * nodes[:, None] * fit.parameters.slope[:, 0] + fit.parameters.intercept
    joint = values @ log_expit(x).T + (1 - values) @ log_expit(-x).T + log_weights
    assert fit.log_likelihood == pytest.approx(logsumexp(joint, axis=1).sum(), abs=1e-3)
    assert fit.converged
