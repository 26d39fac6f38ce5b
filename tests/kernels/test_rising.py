"""Rising factorials, and likelihoods of counts whose trials agree, in float32: against SciPy in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, gammaln
from scipy.stats import betabinom, binom

from irtjax.kernels import one_pass
from irtjax.kernels.one_pass_counts import agreeing_trials
from irtjax.kernels.rising import log_rising

SUBJECTS, ITEMS = 400, 5
LOG_PHI = np.log([0.2, 2.0, 15.0, 150.0, 1000.0])
SLOPE, INTERCEPT = np.linspace(0.7, 2.0, ITEMS), np.linspace(-2.0, 2.0, ITEMS)


def test_they_are_quotients_of_gamma_functions():
    p, phi, k = np.meshgrid(
        [1e-8, 0.01, 0.4, 1.0], [1e-3, 0.3, 5.0, 80.0, 1e4], [0, 1, 5, 8, 9, 60, 1000], indexing="ij"
    )
    with jax.enable_x64(True):
        found = log_rising(jnp.log(p), jnp.asarray(1 / phi), jnp.asarray(k, float))
    expected = gammaln(p * phi + k) - gammaln(p * phi) - k * np.log(phi)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=2e-8)  # as exact as the difference of two log Γ is


def counts(trials, seed=0):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=SUBJECTS)
    p = expit(SLOPE * theta[:, None] + INTERCEPT)
    phi = np.exp(LOG_PHI)
    k = rng.binomial(trials, rng.beta(p * phi, (1 - p) * phi))
    return theta, np.where(rng.random(k.shape) < 0.1, -1, k)


def in_float32(theta, k, trials, log_phi=LOG_PHI):
    n = np.full(k.shape, trials)
    arrays = tuple(jnp.asarray(x, jnp.float32) for x in (SLOPE, INTERCEPT, log_phi))
    return one_pass.value_and_sums(
        agreeing_trials, jnp.asarray(theta, jnp.float32), arrays, (jnp.asarray(k), jnp.asarray(n))
    )


def log_p(theta, k, trials, slope=SLOPE, intercept=INTERCEPT, log_phi=LOG_PHI):
    """(J, I), 0 where there is no response."""
    p, phi = expit(slope * theta[:, None] + intercept), np.exp(log_phi)
    found = betabinom.logpmf(np.maximum(k, 0), trials, p * phi, (1 - p) * phi)
    choose = gammaln(trials + 1) - gammaln(np.maximum(k, 0) + 1) - gammaln(trials - np.maximum(k, 0) + 1)
    return np.where(k >= 0, found - choose, 0.0)


@pytest.mark.parametrize("trials", [2, 20, 1000])
def test_single_precision_is_enough(trials):
    """A response is off by less than 1e-3 nats in the mean, gradients by a thousandth of a standard error."""
    theta, k = counts(trials)
    found = in_float32(theta, k, trials)
    assert float(found.value) == pytest.approx(log_p(theta, k, trials).sum(), abs=1e-4 * k.size, rel=1e-6)
    step = 1e-4

    def slope_by(**moved):
        high, low = ({name: value + sign * step for name, value in moved.items()} for sign in (1, -1))
        return (log_p(**base | high) - log_p(**base | low)) / (2 * step)

    base = {"theta": theta, "k": k, "trials": trials, "slope": SLOPE, "intercept": INTERCEPT, "log_phi": LOG_PHI}
    by_subject = slope_by(theta=theta)
    size = np.sqrt((by_subject**2).sum(axis=1).mean())
    np.testing.assert_allclose(found.by_subject, by_subject.sum(axis=1), atol=1e-3 * size)
    for of_item, name in zip(found.by_item, ("slope", "intercept", "log_phi"), strict=True):
        expected = slope_by(**{name: base[name]})
        error = np.sqrt((expected**2).sum(axis=0))
        np.testing.assert_allclose(of_item / error, expected.sum(axis=0) / error, atol=1e-2)


def test_trials_of_the_largest_precision_are_independent():
    theta, k = counts(30)
    found = in_float32(theta, k, 30, np.full(ITEMS, 60.0))
    p = expit(SLOPE * theta[:, None] + INTERCEPT)
    choose = gammaln(31) - gammaln(np.maximum(k, 0) + 1) - gammaln(31 - np.maximum(k, 0))
    expected = np.where(k >= 0, binom.logpmf(k, 30, p) - choose, 0.0).sum()
    assert float(found.value) == pytest.approx(expected, rel=1e-5)
    assert all(np.isfinite(leaf).all() for leaf in found.by_item)
