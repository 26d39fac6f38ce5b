"""Passes over grades and shares in float32, far in the tails: against float64, by automatic differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import gammaln, logsumexp
from scipy.special import digamma

from irtjax.kernels import one_pass_grades
from irtjax.kernels.gammas import log_less_digamma
from irtjax.kernels.one_pass import value_and_sums
from irtjax.kernels.one_pass_grades import graded, partial_credit
from irtjax.kernels.one_pass_shares import shares

SUBJECTS, ITEMS = 40, 60
EPSILON = float(np.finfo(np.float32).eps)


def in_single(array):
    """Numbers that float32 has, so that both precisions are given the same."""
    return np.asarray(array, np.float32).astype(float)


def abilities_and_items(rng):
    """Predictors up to 60 from 0, half of them within 5."""
    theta = in_single(np.linspace(-3, 3, SUBJECTS))
    slope = in_single(rng.permutation(np.geomspace(0.3, 15, ITEMS)))
    return theta, slope, in_single(rng.uniform(-5, 5, ITEMS))


def compared(block, log_likelihood, arrays, responses, blur):
    """Holds a pass in float32 to a log-likelihood of single responses (J, I) in float64.

    Gradients of single responses may be wrong by so many roundings (`blur`, (J, I)) of what multiplies them.
    """
    theta, *items = arrays
    found = value_and_sums(
        block, jnp.asarray(theta, jnp.float32), tuple(jnp.asarray(one, jnp.float32) for one in items), responses
    )
    with jax.enable_x64(True):
        at = [jnp.asarray(one, jnp.float64) for one in arrays]
        value, pull = jax.vjp(lambda *at: log_likelihood(*at).sum(), *at)
        expected = pull(jnp.ones_like(value))
        sizes = [np.abs(np.asarray(log_likelihood(*at))).sum(), *(np.asarray(one) for one in expected)]
    assert np.isfinite(float(found.value))
    np.testing.assert_allclose(float(found.value), float(value), atol=EPSILON * (sizes[0] + blur.sum()))
    by_subject = EPSILON * (blur * np.abs(items[0])).sum(axis=1)
    assert (np.abs(np.asarray(found.by_subject, float) - sizes[1]) <= by_subject).all()
    weights = [np.abs(theta), *(np.ones(SUBJECTS) for _ in found.by_item[1:])]
    for one, exact, weight in zip(found.by_item, sizes[2:], weights, strict=True):
        assert (np.abs(np.asarray(one, float) - exact) <= EPSILON * (weight @ blur)).all()


@pytest.mark.parametrize(
    ("most", "least", "spread", "fits"),
    [(9, 9, 12.0, True), (9, 7, 12.0, True), (9, 9, 60.0, False), (9, 1, 2.0, False)],
    ids=["as many", "some fewer", "steep", "far fewer"],
)
def test_partial_credit_is_exact_in_the_tails(most, least, spread, fits, monkeypatch):
    """By powers where these do, and by exponentials where they would overflow."""
    monkeypatch.setattr(one_pass_grades, "MANY", 0)
    rng = np.random.default_rng(most)
    theta, slope, intercept = abilities_and_items(rng)
    top = rng.integers(least, most + 1, ITEMS)
    k = np.arange(1, most)[:, None]
    heights = in_single(np.where(k < top, 4 * spread * k * (top - k) / top**2 * rng.uniform(0.5, 2, ITEMS), 0.0))
    steps = one_pass_grades._steps(jnp.asarray(heights, jnp.float32), jnp.asarray(top, jnp.float32))
    assert bool(steps.fits) == fits
    values = np.where(rng.uniform(size=(SUBJECTS, ITEMS)) < 0.1, -1, rng.integers(0, top + 1, (SUBJECTS, ITEMS)))

    def log_likelihood(theta, slope, intercept, heights, top):
        x = theta[:, None] * slope[None] + intercept[None]
        k = jnp.arange(most + 1)
        own_heights = jnp.where(jnp.arange(1, most)[:, None] < top[None], heights, 0.0)
        rows = jnp.concatenate([jnp.zeros((1, ITEMS)), own_heights, jnp.zeros((1, ITEMS))])
        eta = k[:, None, None] * x[None] + rows[:, None]
        own = jnp.where(k[:, None, None] <= top[None, None], eta, -jnp.inf)
        chosen = jnp.take_along_axis(eta, jnp.maximum(values, 0)[None], axis=0)[0]
        return jnp.where(values >= 0, chosen - logsumexp(own, axis=0), 0.0)

    # x, of a size of its own, is known to a rounding
    blur = 2 * (4 + np.abs(np.outer(theta, slope)) + np.abs(intercept) + heights.max(axis=0, initial=0.0))
    arrays = theta, slope, intercept, heights, top.astype(float)
    compared(partial_credit, log_likelihood, arrays, (jnp.asarray(values, jnp.int8),), blur)


def test_graded_is_exact_in_the_tails():
    rng = np.random.default_rng(0)
    theta, slope, intercept = abilities_and_items(rng)
    places = in_single(intercept - np.cumsum(rng.uniform(0.1, 8, (4, ITEMS)), axis=0))
    values = rng.integers(-1, 5, (SUBJECTS, ITEMS))

    def log_likelihood(theta, slope, places):
        u = theta[None, :, None] * slope[None, None] + places[:, None]
        k = jnp.arange(1, 5)[:, None, None]
        right, wrong = jax.nn.log_sigmoid(u), jax.nn.log_sigmoid(-u)
        return jnp.where(values[None] == k, right, 0.0).sum(axis=0) + jnp.where(values[None] == k - 1, wrong, 0.0).sum(
            axis=0
        )

    blur = 4 + np.abs(np.outer(theta, slope)) + np.abs(places).max(axis=0)
    compared(graded, log_likelihood, (theta, slope, places), (jnp.asarray(values, jnp.int8),), blur / 4)


def test_shares_are_exact_in_the_tails():
    """With precisions from 0.05 to 20,000, and shares next to the ends."""
    rng = np.random.default_rng(1)
    theta, slope, intercept = abilities_and_items(rng)
    log_phi = in_single(rng.permutation(np.linspace(-3, 10, ITEMS)))
    low = in_single(rng.uniform(-40, 5, ITEMS))
    high = in_single(low + rng.uniform(0.1, 60, ITEMS))
    y = in_single(rng.uniform(size=(SUBJECTS, ITEMS)))
    y[::5], y[1::9], y[2::9], y[3::9], y[4::9] = 1e-7, 0.0, 1.0, -1.0, 1 - 2**-20
    y = in_single(y)

    def log_likelihood(theta, slope, intercept, log_phi, low, high):
        x = theta[:, None] * slope[None] + intercept[None]
        log_s, log_t = (jax.nn.log_sigmoid(part) + log_phi[None] for part in (x, -x))
        s, t, inner = jnp.exp(log_s), jnp.exp(log_t), jnp.where((y > 0) & (y < 1), y, 0.5)
        between = s * jnp.log(inner) + t * jnp.log1p(-inner) + gammaln(jnp.exp(log_phi))[None]
        between += log_s - gammaln(1 + s) + log_t - gammaln(1 + t)
        between += jax.nn.log_sigmoid(x - low[None]) + jax.nn.log_sigmoid(high[None] - x)
        ends = jnp.where(y == 0, jax.nn.log_sigmoid(low[None] - x), jax.nn.log_sigmoid(x - high[None]))
        return jnp.where((y > 0) & (y < 1), between, jnp.where(y >= 0, ends, 0.0))

    phi = np.exp(log_phi)
    x = np.abs(np.outer(theta, slope)) + np.abs(intercept)
    # logarithms of shares over means reach |x|
    blur = (4 + phi) * (20 + x) / 5 + np.abs(low) + np.abs(high)
    arrays = theta, slope, intercept, log_phi, low, high
    compared(shares, log_likelihood, arrays, (jnp.asarray(y, jnp.float32),), blur)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-13), (np.float32, 3e-7)])
def test_logarithm_less_digamma(dtype, tolerance):
    x = np.concatenate([[0.0], np.geomspace(1e-8, 1e12, 400)]).astype(dtype)
    y = (x.astype(float) * np.random.default_rng(0).uniform(0.5, 2, x.shape) + 1e-3).astype(dtype)
    with jax.enable_x64(dtype == np.float64):
        found = log_less_digamma(jnp.asarray(y), jnp.asarray(x))
    assert found.dtype == dtype
    expected = np.log(y.astype(float)) - digamma(1 + x.astype(float))
    assert (np.abs(np.asarray(found, float) - expected) < tolerance * np.maximum(1, np.abs(expected))).all()
