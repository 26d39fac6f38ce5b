"""The 1PL and its kernel against dense float64 formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, log_expit

from irtjax.models import (
    BLOCK,
    ItemParameters,
    derivatives,
    from_table,
    information,
    information_1pl,
    log_likelihood_1pl,
    probabilities,
    probability_1pl,
)


def problem(num_subjects, num_items, dtype, missing=0.1, seed=0):
    rng = np.random.default_rng(seed)
    theta, b = rng.normal(0, 2, num_subjects).astype(dtype), rng.normal(0, 2, num_items).astype(dtype)
    y = rng.integers(0, 2, (num_subjects, num_items)).astype(np.int8)
    y[rng.uniform(size=y.shape) < missing] = -1
    return theta, b, y


def dense(theta, b, y):
    """Value and gradients by the textbook formulas, in float64."""
    logit = theta.astype(float)[:, None] - b.astype(float)[None, :]
    observed = y >= 0
    value = np.where(observed, np.where(y == 1, log_expit(logit), log_expit(-logit)), 0).sum()
    residual = np.where(observed, (y == 1) - expit(logit), 0)
    return value, residual.sum(1), -residual.sum(0)


@pytest.mark.parametrize("num_items", [1, 7, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 100])
def test_value_and_gradients_equal_the_dense_formulas_in_float64(num_items):
    theta, b, y = problem(13, num_items, np.float64)
    with jax.enable_x64(True):
        value, gradients = jax.jit(jax.value_and_grad(log_likelihood_1pl, argnums=(0, 1)))(
            jnp.asarray(theta), jnp.asarray(b), jnp.asarray(y)
        )
        assert value.dtype == jnp.float64
    expected_value, *expected_gradients = dense(theta, b, y)
    np.testing.assert_allclose(value, expected_value, rtol=1e-12)
    for got, expected in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-11)


def test_float32_stays_float32_and_close():
    theta, b, y = problem(300, 1000, np.float32)
    value, gradients = jax.value_and_grad(log_likelihood_1pl, argnums=(0, 1))(*map(jnp.asarray, (theta, b, y)))
    assert value.dtype == jnp.float32
    expected_value, *expected_gradients = dense(theta, b, y)
    np.testing.assert_allclose(value, expected_value, rtol=1e-6)
    for got, expected in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-3)


def test_the_cotangent_scales_the_gradient():
    theta, b, y = map(jnp.asarray, problem(5, 9, np.float32))
    plain = jax.grad(log_likelihood_1pl, argnums=(0, 1))(theta, b, y)
    scaled = jax.grad(lambda t, d: -3.0 * log_likelihood_1pl(t, d, y), argnums=(0, 1))(theta, b)
    for one, three in zip(plain, scaled, strict=True):
        np.testing.assert_allclose(three, -3.0 * one, rtol=1e-6)


def test_missing_responses_equal_dropped_ones():
    theta, b, y = problem(6, 20, np.float32)
    y[:, 15:] = -1
    np.testing.assert_allclose(
        log_likelihood_1pl(*map(jnp.asarray, (theta, b, y))),
        log_likelihood_1pl(*map(jnp.asarray, (theta, b[:15], y[:, :15]))),
        rtol=1e-6,
    )


def test_shift_and_permutation_invariance():
    theta, b, y = problem(40, 700, np.float32)
    value = log_likelihood_1pl(*map(jnp.asarray, (theta, b, y)))
    shifted = log_likelihood_1pl(jnp.asarray(theta + 0.75), jnp.asarray(b + 0.75), jnp.asarray(y))
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(40), rng.permutation(700)
    permuted = log_likelihood_1pl(*map(jnp.asarray, (theta[rows], b[columns], y[rows][:, columns])))
    np.testing.assert_allclose(shifted, value, rtol=1e-5)
    np.testing.assert_allclose(permuted, value, rtol=1e-5)


def test_extreme_logits_stay_finite():
    theta, b = jnp.array([-1e4, 0.0, 1e4]), jnp.array([-1e4, 1e4])
    value, gradients = jax.value_and_grad(log_likelihood_1pl, argnums=(0, 1))(theta, b, jnp.zeros((3, 2), jnp.int8))
    assert np.isfinite(value)
    assert all(np.isfinite(gradient).all() for gradient in gradients)


def test_wrong_shapes_are_named():
    with pytest.raises(ValueError, match=r"shape \(2, 3\), expected \(3, 2\)"):
        log_likelihood_1pl(jnp.zeros(3), jnp.zeros(2), jnp.zeros((2, 3), jnp.int8))


def test_probability_and_information_by_hand():
    theta, b = jnp.array([1.0, np.log(3.0)]), jnp.array([1.0, 0.0])  # log-odds 0 and log 3: p = 1/2 and 3/4
    np.testing.assert_allclose(probability_1pl(theta, b), [0.5, 0.75], rtol=1e-6)
    np.testing.assert_allclose(information_1pl(theta, b), [0.25, 0.1875], rtol=1e-6)


def random_items(dims):
    rng = np.random.default_rng(0)
    return ItemParameters(
        rng.normal(1, 0.5, (6, dims)), rng.normal(0, 1, 6), rng.normal(-1.5, 0.5, 6), rng.normal(2, 0.5, 6)
    )


@pytest.mark.parametrize("dims", [1, 3])
def test_derivatives_of_the_4pl_equal_automatic_ones(dims):
    theta = np.random.default_rng(1).normal(0, 1.5, (9, dims))
    with jax.enable_x64(True):
        items, theta = jax.tree.map(jnp.asarray, random_items(dims)), jnp.asarray(theta)
        p, q = probabilities(items, theta)
        np.testing.assert_allclose(p + q, 1, rtol=1e-12)
        jacobian = jax.jacobian(lambda leaves: probabilities(leaves, theta)[0].sum(1))(items)
        expected = jnp.concatenate(
            [jacobian.slope, jnp.stack([jacobian.intercept, jacobian.lower, jacobian.upper], axis=-1)], axis=-1
        )
        np.testing.assert_allclose(derivatives(items, theta), expected, atol=1e-12)


def test_wrong_answers_do_not_cancel():
    with jax.enable_x64(True):
        items = ItemParameters(jnp.ones((1, 1)), jnp.zeros(1), jnp.full(1, -jnp.inf), jnp.full(1, jnp.inf))
        _, q = probabilities(items, jnp.array([[50.0]]))
        np.testing.assert_allclose(q, expit(-50.0), rtol=1e-12)


def test_information_by_its_definition():
    with jax.enable_x64(True):
        items = jax.tree.map(jnp.asarray, random_items(1))
        theta = jnp.linspace(-2, 2, 5)[:, None]
        p, q = probabilities(items, theta)
        slope = jax.vmap(jax.jacobian(lambda t: probabilities(items, t[None])[0][0]))(theta)[:, :, 0]
        np.testing.assert_allclose(information(items, theta), slope**2 / (p * q), rtol=1e-10)
        two = items._replace(lower=jnp.full(6, -jnp.inf), upper=jnp.full(6, jnp.inf))
        p, q = probabilities(two, theta)
        np.testing.assert_allclose(information(two, theta), (items.slope[:, 0] ** 2)[None, :] * p * q, rtol=1e-10)


def test_items_from_a_table():
    table = pd.DataFrame({"difficulty": [0.5, -1.0], "discrimination": [2.0, 1.0], "guessing": [0.2, 0.0]})
    items = from_table(table)
    np.testing.assert_allclose(items.intercept, [-1.0, 1.0])
    np.testing.assert_allclose(expit(items.lower), [0.2, 0.0])
    assert np.isposinf(items.upper).all()
