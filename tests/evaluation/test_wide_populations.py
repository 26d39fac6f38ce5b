"""Posterior means in populations from narrow to very wide, against sums over intervals that are halved to the end."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from adaptive_reference import bank_of
from scipy.integrate import quad
from scipy.special import expit, log_expit
from simulation import probability

from irtjax.evaluation.adaptive import adaptive_test
from irtjax.evaluation.adaptive_options import Stop
from irtjax.evaluation.adaptive_study import fixed_form
from irtjax.evaluation.monitor import share_of_bank
from irtjax.evaluation.rules import interval_weights
from irtjax.kernels.ability_nodes import MOST_NODES, line_nodes
from irtjax.kernels.models import ItemParameters
from irtjax.populations.normal import Population
from irtjax.scoring.abilities import abilities

ITEMS = 12


def log_likelihood(bank, answers, theta):
    total = np.zeros_like(theta)
    with np.errstate(divide="ignore"):
        c, not_c, d, not_d = (np.log(expit(x)) for x in (bank.lower, -bank.lower, bank.upper, -bank.upper))
    for i in np.flatnonzero(answers >= 0):
        x = bank.slope[i, 0] * theta + bank.intercept[i]
        right = np.logaddexp(d[i] + log_expit(x), c[i] + log_expit(-x))
        wrong = np.logaddexp(not_c[i] + log_expit(-x), not_d[i] + log_expit(x))
        total += right if answers[i] == 1 else wrong
    return total


def reference(bank, answers, population):
    """Mean and sd by 5 Gauss-Legendre nodes in intervals around every item, halved where the posterior is."""
    mean, sd = population
    steps = np.concatenate([np.linspace(0, 40, 81)[1:], np.geomspace(40, 1e10, 200)])
    steps = np.concatenate([-steps[::-1], [0], steps])
    slope = np.abs(bank.slope[:, 0])
    place = -bank.intercept / bank.slope[:, 0]
    low, high = min(mean, place.min()) - 13 * sd, max(mean, place.max()) + 13 * sd
    edges = np.concatenate([(place[:, None] + steps / slope[:, None]).ravel(), np.linspace(low, high, 1001)])
    edges = np.unique(np.clip(edges, low, high))
    x, w = np.polynomial.legendre.leggauss(5)
    before = np.inf, np.inf
    for _ in range(60):
        half = np.diff(edges) / 2
        theta = edges[:-1, None] + half[:, None] * (1 + x)
        value = log_likelihood(bank, answers, theta) - 0.5 * ((theta - mean) / sd) ** 2 + np.log(half[:, None] * w)
        weights = np.exp(value - value.max())
        weights /= weights.sum()
        middle = (weights * theta).sum()
        after = middle, np.sqrt((weights * (theta - middle) ** 2).sum())
        if abs(after[0] - before[0]) < 1e-8 * after[1] and abs(after[1] - before[1]) < 1e-8 * after[1]:
            return after
        before = after
        much = np.flatnonzero(weights.sum(axis=1) > 1e-4)
        edges = np.unique(np.concatenate([edges, (edges[much] + edges[much + 1]) / 2]))
    raise AssertionError("no convergence")


def cases(number, seed):
    """Banks of the 2PL to 4PL, answers, and populations of sd 0.01 to a million, some far from the items."""
    rng = np.random.default_rng(seed)
    for case in range(number):
        sd, slope = 10 ** rng.uniform(-2, 6), 10 ** rng.uniform(-1, np.log10(50))
        place = rng.choice([0, 0, 3 * sd, 20 * min(sd, 50), -1000]) + rng.normal(0, rng.choice([0.1, 1, 3]), ITEMS)
        guessing, upper = [(0, 1), (0.2, 1), (0.2, 0.9)][rng.integers(3)]
        bank = bank_of(slope * rng.uniform(0.5, 1.5, ITEMS) * rng.choice([1, -1]), place, guessing, upper)
        answers = [
            np.ones(ITEMS, int),
            np.zeros(ITEMS, int),
            (place < np.median(place)).astype(int),
            rng.integers(0, 2, ITEMS),
            np.where(np.arange(ITEMS) < 2, [0, 1] * 6, -1),
        ][case % 5]
        yield bank, answers, Population(float(rng.choice([0, 0, 1000])), sd)


def test_the_reference_is_that_of_scipy():
    bank, answers = bank_of(np.full(ITEMS, 1.3), np.linspace(-1, 2, ITEMS), 0.2), np.resize([1, 0, 1], ITEMS)
    for population in (Population(0.3, 1.0), Population(0.0, 1000.0)):

        def density(theta, power, population=population):
            theta = np.array([theta])
            prior = -0.5 * ((theta - population.mean) / population.sd) ** 2
            return float((theta**power * np.exp(log_likelihood(bank, answers, theta) + 8 + prior))[0])

        ends = [-60, -10, 0, 10, 60] if population.sd == 1 else [-9000, -1000, -100, -10, 0, 10, 100, 1000, 9000]
        zeroth, first, second = (
            sum(quad(density, *two, args=(power,), epsabs=0, limit=500)[0] for two in itertools.pairwise(ends))
            for power in range(3)
        )
        mean = first / zeroth
        expected = mean, np.sqrt(second / zeroth - mean**2)
        np.testing.assert_allclose(reference(bank, answers, population), expected, rtol=1e-6)


def test_shared_nodes_resolve_every_posterior():
    sizes = []
    for bank, answers, population in cases(100, 0):
        line = line_nodes(bank, ITEMS, *population)
        value = line.log_weights + log_likelihood(bank, answers, line.nodes)
        weights = np.exp(value - value.max())
        weights /= weights.sum()
        mean = weights @ line.nodes
        expected, deviation = reference(bank, answers, population)
        assert abs(mean - expected) < 2e-4 * deviation
        assert abs(np.sqrt(weights @ (line.nodes - mean) ** 2) / deviation - 1) < 2e-4
        sizes.append(line.nodes.size)
    assert max(sizes) <= MOST_NODES
    assert np.median(sizes) < 500


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=str(number), marks=[] if number == 2 else [pytest.mark.slow])
        for number, case in enumerate(cases(8, 1))
    ],
)
def test_scores_and_adaptive_tests_in_any_population(case):
    bank, answers, population = case
    expected, deviation = reference(bank, answers, population)
    found = abilities(answers[None].astype(np.int8), bank, "eap", population)
    np.testing.assert_allclose(found.ability[0], expected, atol=3e-4 * deviation)
    np.testing.assert_allclose(found.standard_error[0], deviation, rtol=3e-4)
    for dtype, accuracy in ((np.float64, 3e-4), (np.float32, 3e-3)):
        ours = ItemParameters(*(leaf.astype(dtype) for leaf in bank))
        if dtype == np.float32:  # whose rounding moves items that are far from 0
            expected, deviation = reference(ItemParameters(*(leaf.astype(float) for leaf in ours)), answers, population)
        with jax.enable_x64(dtype == np.float64):
            test = adaptive_test(ours, stop=Stop(ITEMS), population=population)
            state = test.update(test.init(jax.random.key(0)), jnp.arange(ITEMS), jnp.asarray(answers))
        rounding = 4 * np.finfo(dtype).eps * np.abs(bank.intercept / bank.slope[:, 0]).max()
        np.testing.assert_allclose(state.ability, expected, atol=accuracy * deviation + rounding)
        np.testing.assert_allclose(state.standard_error, deviation, rtol=accuracy, atol=rounding)


@pytest.mark.slow
def test_a_wide_population_leaves_the_items_to_speak():
    """With a population of sd 1,000 and of 10,000 the posterior is the likelihood."""
    bank = bank_of(np.ones(6), np.linspace(-1, 1, 6))
    line = np.linspace(-60, 60, 400_001)
    likelihood = np.exp(log_likelihood(bank, np.array([1, 1, 1, 0, 1, 0]), line))
    mean = likelihood @ line / likelihood.sum()
    for sd in (1e3, 1e4, 1e6):
        test = adaptive_test(bank, stop=Stop(6), population=Population(0.0, sd))
        state = test.update(test.init(jax.random.key(0)), jnp.arange(6), jnp.array([1, 1, 1, 0, 1, 0]))
        np.testing.assert_allclose(state.ability, mean, atol=1e-4)
        for method in ("map", "ml"):
            test = adaptive_test(bank, stop=Stop(6), population=Population(0.0, sd), ability=method)
            state = test.update(test.init(jax.random.key(0)), jnp.arange(6), jnp.array([1, 1, 1, 0, 1, 0]))
            np.testing.assert_allclose(state.ability, line[likelihood.argmax()], atol=1e-3)


def test_a_fixed_form_for_a_wide_population():
    assert fixed_form(bank_of(np.r_[1.0, 2.0, 1.0], np.r_[0.0, 5.3, 0.1]), 1, Population(0.0, 1e4)) == [1]


def test_intervals_of_unequal_nodes():
    line = line_nodes(bank_of(np.ones(4), np.zeros(4)), 4, 0.0, 1e4)
    assert line.edges.size == line.nodes.size + 1
    assert (np.diff(line.nodes) > 0).all()
    assert ((line.edges[:-1] < line.nodes) & (line.nodes < line.edges[1:])).all()
    for centre, half in ((0.0, 3.0), (1.5, 100.0), (-20.0, 1e4)):
        weights = interval_weights(
            jnp.asarray(line.nodes), jnp.asarray(centre), jnp.asarray(half), jnp.asarray(line.edges)
        )
        low, high = centre - half, centre + half
        expected = np.logaddexp(0, high) - np.logaddexp(0, low)
        np.testing.assert_allclose(np.asarray(weights) @ expit(line.nodes), expected, rtol=0.02)


@pytest.mark.parametrize(
    ("dtype", "difficulty"),
    [
        pytest.param(*case, marks=[] if case in ((np.float32, 25.0), (np.float64, -25.0)) else [pytest.mark.slow])
        for case in itertools.product((np.float32, np.float64), (25.0, 8.0, -8.0, -25.0))
    ],
)
def test_scores_stay_between_none_and_all(dtype, difficulty):
    """Where all items are too hard, or too easy, rounding must not lead out of the range of shares."""
    rng = np.random.default_rng(0)
    bank = bank_of(rng.uniform(0.5, 2.0, 30), difficulty + rng.normal(size=30))
    p = probability(bank, np.linspace(-6, 6, 61)).T
    with jax.enable_x64(dtype == np.float64):
        test = adaptive_test(ItemParameters(*(leaf.astype(dtype) for leaf in bank)), stop=Stop(30))
        update = jax.jit(type(test).update)
        for answers in (np.zeros(30, int), np.ones(30, int), rng.integers(-1, 2, 30)):
            state = test.init(jax.random.key(0))
            for item, answer in enumerate(answers):
                state = update(test, state, item, answer)
                assert 0 <= state.score <= 1
                assert state.score_error >= 0
                given = np.where(np.arange(30) <= item, answers, -1)
                share = share_of_bank(p, np.exp(-(np.linspace(-6, 6, 61) ** 2)), np.arange(30), given)
                assert 0 <= share.low <= share.high <= 1
                assert 0 <= share.mean <= 1
            if (answers >= 0).all():
                assert state.score == pytest.approx(answers.mean(), abs=1e-12)
