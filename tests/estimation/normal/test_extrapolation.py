"""Extrapolation of the iteration with normal posteriors: linear iterations, and a long test of few subjects."""

import jax.numpy as jnp
import numpy as np

from irtjax import ResponseMatrix
from irtjax.estimation.mml import fit_mml
from irtjax.estimation.normal.damping import undamped
from irtjax.estimation.normal.extrapolation import extrapolated, parts
from irtjax.estimation.normal.scale import LatentScale
from irtjax.estimation.problem import Specification
from irtjax.integration.normal_posterior import Posterior
from irtjax.kernels.models import ItemParameters

J, NUM = 6, 9  # subjects, items
RATES = np.array([0.9, 0.5, -0.4])  # of what is left after a step


def specification():
    free = jnp.zeros((NUM, 5), bool).at[:, :3].set(True)
    nothing, precision = jnp.zeros((NUM, 5)), jnp.zeros((NUM, 5)).at[:, :2].set(1.0)
    return Specification(
        free, jnp.zeros(NUM, bool), nothing, precision, 2, False, mean_fixed=True, sd_fixed=True, free_slopes=True
    )


def at(x, ends):
    """Items and abilities that are x away from the origin along three directions."""
    vector = jnp.asarray(x @ ends, jnp.float32)
    slope, intercept, ability = jnp.split(vector, [2 * NUM, 3 * NUM])
    items = ItemParameters(slope.reshape(NUM, 2), intercept, jnp.full(NUM, -jnp.inf), jnp.full(NUM, jnp.inf))
    posterior = Posterior(ability.reshape(J, 2), jnp.broadcast_to(0.1 * jnp.eye(2), (J, 2, 2)))
    return LatentScale(items, posterior, jnp.zeros(2), jnp.ones(2))


def test_a_linear_iteration_is_at_rest_after_as_many_steps_as_it_has_slow_directions():
    ends = np.linalg.qr(np.random.default_rng(0).normal(size=(3 * NUM + 2 * J, 3)))[0].T
    weight, damping = jnp.ones(J), (undamped(jnp.ones((NUM, 5))), undamped(jnp.ones((J, 2))))
    scaled, trail, left = at(np.ones(3), ends), None, []
    for _ in range(8):
        x = np.concatenate([leaf.ravel() for leaf in (*scaled.items[:2], scaled.posterior.mean)]) @ ends.T
        left.append(np.abs(x).max())
        before, after = parts(scaled, specification()), at(RATES * x, ends)
        trail, scaled, found, after_damping = extrapolated(trail, before, (after, specification()), damping, weight)
    np.testing.assert_allclose(left[1], 0.9, rtol=1e-5)  # there is no trail yet
    assert left[4] < 1e-3
    assert max(left[5:]) < 1e-3  # where differences are of rounding
    np.testing.assert_array_equal(found.prior_precision, specification().prior_precision)
    assert not np.any(after_damping[0].last)
    assert np.isneginf(scaled.items.lower).all()


def test_few_subjects_of_a_long_test_come_to_rest_in_some_twenty_steps():
    """In as many as a hundred without extrapolation (28 subjects of 12,032 items), at 0.93 of the change each time."""
    rng = np.random.default_rng(0)
    slope, theta = rng.lognormal(0, 0.3, (1500, 2)) * (rng.random((1500, 2)) < 0.7), rng.normal(size=(28, 2))
    values = rng.random((28, 1500)) < 1 / (1 + np.exp(-theta @ slope.T - rng.normal(size=1500)))
    usual = np.flatnonzero(values.any(axis=0) & ~values.all(axis=0))
    values = values[:, usual].astype(np.int8)
    responses = ResponseMatrix(values, np.array([f"s{j}" for j in range(28)]), np.array([f"i{i}" for i in usual]))
    fit = fit_mml(responses, "2pl", dims=2, integration="normal")
    nearer = fit_mml(responses, "2pl", dims=2, integration="normal", tolerance=2e-4)
    assert fit.converged
    assert fit.iterations < 30
    assert abs(fit.log_likelihood - nearer.log_likelihood) < 0.5  # the prior's last moves are those of all slopes
