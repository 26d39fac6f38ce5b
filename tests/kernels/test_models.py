"""Item response functions against automatic derivatives and hand-computed values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from irtjax.kernels.models import (
    ItemParameters,
    derivatives,
    information,
    information_1pl,
    probabilities,
    probability_1pl,
)


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
