"""Item response functions against automatic derivatives and hand-computed values."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from irtjax import InputError
from irtjax.kernels.models import (
    ItemParameters,
    derivatives,
    from_table,
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


def test_items_from_a_table():
    table = pd.DataFrame({"difficulty": [0.5, -1.0], "discrimination": [2.0, 1.0], "guessing": [0.2, 0.0]})
    items = from_table(table)
    np.testing.assert_allclose(items.intercept, [-1.0, 1.0])
    np.testing.assert_allclose(expit(items.lower), [0.2, 0.0])
    assert np.isposinf(items.upper).all()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"difficulty": [0.0, np.inf]}, "column difficulty: an infinite number for item 'y'"),
        ({"difficulty": [0.0, 1.0], "discrimination": [-np.inf, 1.0]}, "column discrimination: an infinite number"),
        ({"difficulty": [0.0, np.nan]}, "column difficulty: no number for item 'y'"),
        ({"discrimination_2": [1.0, 1.0], "intercept": [0.0, 0.0]}, "expected discrimination_1"),
    ],
)
def test_items_that_are_none_are_refused(columns, message):
    with pytest.raises(InputError, match=message):
        from_table(pd.DataFrame(columns, index=["x", "y"]))


def test_one_item_of_several_dimensions():
    table = pd.DataFrame({"discrimination_1": [1.0], "discrimination_2": [0.5], "intercept": [0.2]}, index=["x"])
    assert from_table(table).slope.shape == (1, 2)


@pytest.mark.parametrize("scaling", [1.0, 1.7, np.array([1.7, 1.702])])
def test_the_scaling_constant_of_other_programs(scaling):
    """P = c + (1 - c) σ(D a (θ - b)), with a and without."""
    a, b, c, theta = np.array([0.8, 1.4]), np.array([-0.5, 1.2]), np.array([0.2, 0.0]), np.linspace(-3, 3, 7)[:, None]
    table = pd.DataFrame({"difficulty": b, "discrimination": a, "guessing": c}).assign(D=scaling)
    expected = c + (1 - c) / (1 + np.exp(-np.asarray(scaling) * a * (theta - b)))
    np.testing.assert_allclose(probabilities(from_table(table), theta)[0], expected, rtol=1e-12)
    flat = from_table(table[["difficulty", "D"]])
    np.testing.assert_allclose(probabilities(flat, theta)[0], expit(np.asarray(scaling) * (theta - b)), rtol=1e-12)


def test_scaling_constants_that_are_none_are_refused():
    one = pd.DataFrame({"difficulty": [0.0, 1.0]}, index=["x", "y"])
    for bad in (0.0, -1.7, np.nan, np.inf, "logic"):
        with pytest.raises(InputError, match="column D: item 'y' has no number above 0"):
            from_table(one.assign(D=np.array([1.7, bad], object)))
    several = pd.DataFrame({"discrimination_1": [1.0], "discrimination_2": [0.5], "intercept": [0.2]}, index=["x"])
    assert from_table(several.assign(D=1.0)).slope.tolist() == [[1.0, 0.5]]
    with pytest.raises(InputError, match="column D with an intercept, which may be scaled or not"):
        from_table(several.assign(D=1.7))
