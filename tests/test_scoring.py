"""Ability given known items, against SciPy's root finder and mirt."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.special import expit

from irtjax.scoring import Population, ability_1pl

RNG = np.random.default_rng(0)
DIFFICULTY = RNG.normal(0, 1.5, 60)


def reference(responses, difficulty, population=None):
    observed = responses >= 0
    y, b = responses[observed], difficulty[observed]

    def slope(theta):
        prior = 0 if population is None else (theta - population.mean) / population.sd**2
        return (y - expit(theta - b)).sum() - prior

    root = brentq(slope, -60, 60, xtol=1e-12)
    p = expit(root - b)
    return root, ((p * (1 - p)).sum() + (0 if population is None else population.sd**-2)) ** -0.5


@pytest.mark.parametrize("population", [None, Population(), Population(-1.0, 0.3)])
@pytest.mark.parametrize("num_right", [1, 3, 20, 34])
@pytest.mark.parametrize("num_missing", [0, 25])
def test_equals_a_root_finder(population, num_right, num_missing):
    responses = np.zeros(60, np.int8)
    responses[:num_right] = 1
    responses[num_right : num_right + num_missing] = -1
    responses = np.random.default_rng(num_right).permutation(responses)
    with jax.enable_x64(True):
        got = jax.jit(ability_1pl)(jnp.asarray(responses), jnp.asarray(DIFFICULTY), population)
    np.testing.assert_allclose(got, reference(responses, DIFFICULTY, population), atol=1e-6)


@pytest.mark.parametrize("start", [-40.0, 0.0, 40.0, np.inf, -np.inf])
def test_converges_from_anywhere(start):
    responses = (DIFFICULTY < 0.7).astype(np.int8)
    with jax.enable_x64(True):
        got = ability_1pl(jnp.asarray(responses), jnp.asarray(DIFFICULTY), start=start)
    np.testing.assert_allclose(got.ability, reference(responses, DIFFICULTY)[0], atol=1e-6)


def test_identical_items_have_a_closed_form():
    responses = jnp.array([1, 1, 1, 0], jnp.int8)
    got = ability_1pl(responses, jnp.full(4, 0.4))
    np.testing.assert_allclose(got.ability, 0.4 + np.log(3), rtol=1e-5)  # logit of 3/4 above the difficulty
    np.testing.assert_allclose(got.standard_error, (4 * 3 / 16) ** -0.5, rtol=1e-5)


def test_no_finite_maximum():
    b = jnp.asarray(DIFFICULTY, jnp.float32)
    right, wrong, nothing = (jnp.full(60, value, jnp.int8) for value in (1, 0, -1))
    for responses, ml in ((right, np.inf), (wrong, -np.inf)):
        np.testing.assert_array_equal(ability_1pl(responses, b), (ml, np.inf))
        estimate = ability_1pl(responses, b, Population())
        np.testing.assert_allclose(estimate, reference(np.asarray(responses), DIFFICULTY, Population()), atol=1e-4)
    assert np.isnan(ability_1pl(nothing, b).ability)
    np.testing.assert_allclose(ability_1pl(nothing, b, Population(0.3, 2.0)), (0.3, 2.0), atol=1e-5)


def test_vmap_equals_one_at_a_time():
    responses = jnp.asarray(RNG.integers(-1, 2, (20, 60)).astype(np.int8))
    b = jnp.asarray(DIFFICULTY, jnp.float32)
    many = jax.vmap(lambda y: ability_1pl(y, b))(responses)
    for row in range(20):
        np.testing.assert_allclose(ability_1pl(responses[row], b).ability, many.ability[row], atol=1e-5)


def test_shift_invariance_and_dtype():
    responses = jnp.asarray((DIFFICULTY < 0).astype(np.int8))
    b = jnp.asarray(DIFFICULTY, jnp.float32)
    here, there = ability_1pl(responses, b), ability_1pl(responses, b + 5)
    np.testing.assert_allclose(there.ability - here.ability, 5, atol=1e-4)
    assert here.ability.dtype == jnp.float32


@pytest.mark.parametrize("method", ["ml", "map"])
def test_equals_mirt_on_lsat7(shared, method):
    items = pd.read_csv(shared / "oracle" / "items_lsat7_Rasch.csv")
    scores = pd.read_csv(shared / "oracle" / "scores_lsat7_Rasch.csv")
    responses = pd.read_csv(shared / "oracle" / "lsat7_responses.csv")
    responses = responses[items["item"]].to_numpy(np.int8)
    population = None if method == "ml" else Population(0.0, items.latent_var[0] ** 0.5)
    with jax.enable_x64(True):
        b = jnp.asarray(items.b.to_numpy())
        got = jax.vmap(lambda y: ability_1pl(y, b, population))(jnp.asarray(responses[scores["row"] - 1]))
    expected = scores[method].to_numpy(float)
    finite = np.isfinite(expected)
    np.testing.assert_allclose(np.asarray(got.ability)[finite], expected[finite], atol=1e-4)
    np.testing.assert_array_equal(np.asarray(got.ability)[~finite], expected[~finite])
    np.testing.assert_allclose(
        np.asarray(got.standard_error)[finite], scores[f"{method}_se"].to_numpy(float)[finite], atol=1e-3
    )
