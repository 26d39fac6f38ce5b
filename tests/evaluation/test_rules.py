"""Criteria for the next item, against brute-force quadrature in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from adaptive_reference import GRID, bank_of, expected_variance, mixed_bank, posterior, variance
from scipy.integrate import quad
from scipy.special import expit
from simulation import probability

from irtjax.evaluation.adaptive import adaptive_test
from irtjax.evaluation.adaptive_options import Stop
from irtjax.evaluation.bank_tables import curves_of, fisher_information
from irtjax.evaluation.binary_adaptive import AdaptiveTest
from irtjax.evaluation.rules import RULES, interval_weights
from irtjax.kernels.ability_nodes import line_nodes
from irtjax.kernels.models import ItemParameters, information
from irtjax.populations.normal import Population

gain, next_item, update = (jax.jit(f) for f in (AdaptiveTest.gain, AdaptiveTest.next_item, AdaptiveTest.update))

BANK = mixed_bank()
ITEMS, ANSWERS = np.array([3, 7, 0, 21, 5, 12]), np.array([1, 0, 1, 1, 0, 1])
POPULATION = Population(0.3, 1.4)


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


def state_of(rule, bank=BANK, **options):
    test = adaptive_test(bank, rule=rule, population=POPULATION, stop=Stop(10), **options)
    return test, update(test, test.init(jax.random.key(0)), jnp.asarray(ITEMS), jnp.asarray(ANSWERS))


def best_open(values):
    values = np.array(values)
    values[ITEMS] = -np.inf
    return values.argmax()


def reference(bank=BANK):
    theta = POPULATION.mean + POPULATION.sd * GRID
    weights = posterior(bank, ITEMS, ANSWERS, *POPULATION)
    return theta, weights, weights @ theta


def test_information():
    test, state = state_of("information")
    _, _, ability = reference()
    step = 1e-4
    p = probability(BANK, [ability])[0]
    slope = np.diff(probability(BANK, [ability - step, ability + step]), axis=0)[0] / (2 * step)
    expected = slope**2 / (p * (1 - p))
    np.testing.assert_allclose(gain(test, state), expected, rtol=1e-6, atol=1e-9)
    assert next_item(test, state) == best_open(expected)


@pytest.mark.parametrize("rule", ["variance", "score"])
def test_expected_variance(rule):
    test, state = state_of(rule)
    theta, weights, _ = reference()
    values = theta if rule == "variance" else probability(BANK, theta).mean(axis=1)
    now, expected = variance(weights, values), expected_variance(BANK, weights, theta, values)
    np.testing.assert_allclose((now - gain(test, state)) / now, expected / now, atol=1e-6)
    assert next_item(test, state) == best_open(-expected)


def divergence(item, ability, theta):
    p, other = (probability(BANK.take(np.array([item])), at)[:, 0] for at in (ability, theta))
    return p * np.log(p / other) + (1 - p) * np.log((1 - p) / (1 - other))


def test_kullback_leibler_in_an_interval():
    test, state = state_of("kl", num_nodes=601)
    half = 3 * POPULATION.sd / np.sqrt(len(ITEMS))
    ability = float(state.ability)
    ends = ability - half, ability + half
    expected = [quad(lambda x, i=i: divergence(i, ability, x)[0], *ends, epsabs=1e-10)[0] for i in range(30)]
    np.testing.assert_allclose(gain(test, state), expected, atol=1e-6)
    assert next_item(test, state) == best_open(expected)
    few_nodes = gain(*state_of("kl"))
    np.testing.assert_allclose(few_nodes, expected, atol=1e-3)


def test_kullback_leibler_weighted_by_the_posterior():
    test, state = state_of("kl_posterior")
    theta, weights, ability = reference()
    expected = np.array([weights @ divergence(i, ability, theta) for i in range(30)])
    np.testing.assert_allclose(gain(test, state), expected, atol=1e-6)
    assert next_item(test, state) == best_open(expected)


def test_weights_of_an_interval_integrate_what_is_smooth():
    nodes = np.linspace(-6, 6, 61)
    for centre, half in ((0.0, 1.0), (0.37, 2.9), (-5.0, 4.0), (1.0, 0.01)):
        weights = interval_weights(jnp.asarray(nodes), jnp.asarray(centre), jnp.asarray(half))
        low, high = max(centre - half, nodes[1]), min(centre + half, nodes[-2])
        for power in range(3):  # a cubic convolution has polynomials of the second degree exactly
            exact = (high ** (power + 1) - low ** (power + 1)) / (power + 1)
            np.testing.assert_allclose(weights @ nodes**power, exact, atol=1e-10)


def test_determinant_in_two_dimensions():
    rng = np.random.default_rng(1)
    bank = ItemParameters(
        rng.lognormal(0, 0.5, (30, 2)), rng.normal(size=30), np.full(30, -1.5), np.where(np.arange(30) % 2, np.inf, 3.0)
    )
    test, state = state_of("determinant", bank, ability="map")
    c, d = expit(bank.lower), expit(bank.upper)
    s = expit(bank.slope @ np.asarray(state.ability) + bank.intercept)
    p = c + (d - c) * s
    each = ((d - c) * s * (1 - s)) ** 2 / (p * (1 - p))
    matrices = each[:, None, None] * bank.slope[:, :, None] * bank.slope[:, None, :]
    now = matrices[ITEMS].sum(axis=0) + np.eye(2) / POPULATION.sd**2
    expected = np.linalg.det(now + matrices) / np.linalg.det(now) - 1
    np.testing.assert_allclose(gain(test, state), expected, rtol=1e-8, atol=1e-12)  # the reference cancels
    assert next_item(test, state) == best_open(expected)


def test_determinant_in_one_dimension_is_information_over_what_there_is():
    test, state = state_of("determinant")
    each = information(BANK, np.asarray(state.ability)[None, None])[0]
    np.testing.assert_allclose(gain(test, state), each / (each[ITEMS].sum() + POPULATION.sd**-2), rtol=1e-8)


def test_random_items_are_equally_frequent():
    test, state = state_of("random")
    keys = jax.random.split(jax.random.key(1), 4800)
    drawn = jax.jit(jax.vmap(lambda test, key: test.next_item(state._replace(key=key)), (None, 0)))(test, keys)
    counts = np.bincount(drawn, minlength=30)
    assert (counts[ITEMS] == 0).all()
    counts = np.delete(counts, ITEMS)
    assert ((counts - 200) ** 2 / 200).sum() < 60  # chi-square, 23 degrees of freedom: p = 4e-5


@pytest.mark.parametrize("rule", ["variance", "score"])
def test_steep_items(rule):
    """As language models have on benchmarks: a posterior that is far narrower than the population."""
    bank = mixed_bank(steepness=20.0, spread=0.1)
    values = GRID if rule == "variance" else probability(bank, GRID).mean(axis=1)
    test = adaptive_test(bank, rule=rule, stop=Stop(10))
    state, items, answers = test.init(jax.random.key(0)), [], []
    for step in range(9):
        weights = posterior(bank, items, answers)
        now, expected = variance(weights, values), expected_variance(bank, weights, GRID, values)
        np.testing.assert_allclose((now - gain(test, state)) / now, expected / now, atol=1e-6)
        items.append(int(next_item(test, state)))
        answers.append(step % 2)
        state = update(test, state, items[-1], answers[-1])
    assert variance(weights, GRID) < 0.05**2  # the population has 1


def test_information_of_any_item_is_finite_and_that_of_the_kernels():
    theta = np.array(0.7)
    np.testing.assert_allclose(
        fisher_information(curves_of(BANK), theta), information(BANK, theta[None, None])[0], rtol=1e-10
    )
    steep = bank_of(np.array([1000.0, -1000.0, 300.0]), np.array([6.0, -6.0, 0.7]))
    for dtype in (np.float32, np.float64):
        parts = curves_of(ItemParameters(*(leaf.astype(dtype) for leaf in steep)))
        found = np.asarray(fisher_information(parts, theta.astype(dtype)))
        assert found.dtype == dtype
        assert (found >= 0).all()
        np.testing.assert_allclose(found, [0, 0, 300**2 / 4], rtol=1e-3, atol=1e-9)


def test_nodes_grow_with_slopes_and_items():
    flat, steep = (bank_of(np.full(50, a), np.zeros(50)) for a in (1.0, 10.0))
    assert line_nodes(flat, 10, 0.0, 1.0).nodes.size == 61
    spacing = np.diff(line_nodes(steep, 50, 0.0, 1.0).nodes)
    np.testing.assert_allclose(spacing, spacing[0])
    assert spacing[0] <= (1 + 50 * 100 / 4) ** -0.5
    assert 61 < line_nodes(bank_of(np.full(50, 1e6), np.zeros(50)), 50, 0.0, 1.0).nodes.size <= 4801
    assert set(RULES) >= {"information", "variance", "score", "kl", "kl_posterior", "determinant", "random"}
