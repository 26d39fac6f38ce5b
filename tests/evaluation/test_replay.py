"""Whole tests of many subjects: against one at a time, and simulations with known abilities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from adaptive_reference import GRID, bank_of, mixed_bank, posterior
from simulation import draw, probability

from irtjax import InputError
from irtjax.evaluation.adaptive import adaptive_test
from irtjax.evaluation.adaptive_options import REASONS, Randomesque, Stop
from irtjax.evaluation.binary_adaptive import AdaptiveTest
from irtjax.evaluation.replay import _one_batch, replay, simulate
from irtjax.kernels.models import ItemParameters
from irtjax.populations.normal import Population

next_item, next_items, update = (
    jax.jit(AdaptiveTest.next_item),
    jax.jit(AdaptiveTest.next_items, static_argnums=2),
    jax.jit(AdaptiveTest.update),
)

BANK = mixed_bank()
KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
THETA = RNG.normal(size=7)
VALUES = draw(RNG, probability(BANK, THETA))
VALUES[RNG.random((7, 30)) < 0.4] = -1
VALUES[6] = -1
VALUES[6, [2, 11]] = 1, 0  # two items only


def within_binomial(share, expected, number):
    return abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / number)


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("rule", ["variance", "random"])
def test_replay_is_one_test_after_the_other(rule, monkeypatch):
    monkeypatch.setattr("irtjax.evaluation.replay.BATCH", 3)
    stop = Stop(12, standard_error=0.5)
    test = adaptive_test(BANK, rule=rule, stop=stop, exposure=Randomesque(2) if rule == "variance" else None)
    found = replay(test, VALUES, KEY)
    for j, key in enumerate(jax.random.split(KEY, 9)[:7]):
        state, number = test.init(key, jnp.asarray(VALUES[j] >= 0)), 0
        while not test.finished(state):
            item = int(next_item(test, state))
            state = update(test, state, item, VALUES[j, item])
            assert found.items[j, number] == item
            assert found.answers[j, number] == VALUES[j, item] >= 0
            for name in ("ability", "standard_error", "score", "score_error"):
                np.testing.assert_allclose(getattr(found, name)[j, number], getattr(state, name), atol=1e-10)
            number += 1
        assert found.number[j] == number
        assert found.reasons()[j] == REASONS[int(test.reason(state))]
        assert (found.items[j, number:] == -1).all()
        assert np.isnan(found.ability[j, number:]).all()
        np.testing.assert_allclose(found.last()[0][j], state.ability, atol=1e-10)
    assert found.number[6] == 2
    assert found.reasons()[6] == "no_items"
    assert "standard_error" in found.reasons()


@pytest.mark.slow
def test_batches_of_subjects_and_of_items(monkeypatch):
    test = adaptive_test(BANK, stop=Stop(10))
    one = replay(test, VALUES, KEY)
    with monkeypatch.context() as patch:
        patch.setattr("irtjax.evaluation.replay.BATCH", 3)
        other = replay(test, VALUES, KEY)
    for leaf, same in zip(one, other, strict=True):
        np.testing.assert_array_equal(leaf, same)
    four = replay(test, VALUES, KEY, at_a_time=4)
    for j in range(7):
        asked = four.items[j, : four.number[j]]
        assert len(set(asked)) == len(asked) == min(10, (VALUES[j] >= 0).sum())
        assert (VALUES[j, asked] == four.answers[j, : len(asked)]).all()
        weights = posterior(BANK, asked, VALUES[j, asked])
        np.testing.assert_allclose(four.last()[0][j], weights @ GRID, atol=1e-7)
    # the first four are known together, hence so is the ability after them
    np.testing.assert_array_equal(four.ability[0, :4], np.full(4, four.ability[0, 0]))
    first = next_items(test, test.init(KEY, jnp.asarray(VALUES[0] >= 0)), 4)
    assert four.items[0, :4].tolist() == first.tolist()


def test_one_program_for_all_subjects(monkeypatch):
    monkeypatch.setattr("irtjax.evaluation.replay.BATCH", 7)
    test = adaptive_test(BANK, stop=Stop(10))
    replay(test, VALUES, KEY)
    before = _one_batch._cache_size()
    replay(test, np.concatenate([VALUES[::-1]] * 3), jax.random.key(1))
    other = adaptive_test(mixed_bank(seed=1), population=Population(0.5, 1.0), stop=Stop(10), num_nodes=test.num_nodes)
    replay(other, VALUES, KEY)
    assert _one_batch._cache_size() == before


RASCH_LIKE = bank_of(np.random.default_rng(1).lognormal(0.3, 0.2, 200), np.linspace(-3, 3, 200))


@pytest.mark.slow
def test_posterior_intervals_cover_abilities_and_scores():
    """True abilities drawn from the population: ±1.645 posterior standard deviations hold 90% of them."""
    theta = np.random.default_rng(2).normal(size=4000)
    test = adaptive_test(RASCH_LIKE, rule="score", stop=Stop(25))
    found = simulate(test, theta, KEY)
    ability, error = found.last()
    z = (ability - theta) / error
    assert within_binomial((np.abs(z) < 1.645).mean(), 0.9, 4000)
    assert abs(z.mean()) < 4 / np.sqrt(4000)
    assert abs(z.std() - 1) < 4 / np.sqrt(2 * 4000)
    # the share right over the bank: answers of the test, and new ones to all other items
    values = (np.random.default_rng(3).random((4000, 200)) < probability(RASCH_LIKE, theta)).astype(int)
    np.put_along_axis(values, found.items, found.answers, axis=1)
    off = (found.score[:, -1] - values.mean(axis=1)) / found.score_error[:, -1]
    assert within_binomial((np.abs(off) < 1.645).mean(), 0.9, 4000)
    assert (found.number == 25).all()


@pytest.mark.slow
def test_bias_and_standard_error_of_maximum_likelihood_at_given_abilities():
    """Asymptotic: with the information of 40 well-aimed items, bias and coverage are of the order of 1/information."""
    grid = np.linspace(-2, 2, 5)
    theta = np.repeat(grid, 500)
    test = adaptive_test(RASCH_LIKE, ability="ml", stop=Stop(40))
    ability, error = (x.reshape(5, 500) for x in simulate(test, theta, KEY).last())
    off = ability - grid[:, None]
    allowed = 4 * error.mean(axis=1) / np.sqrt(500)
    assert (np.abs(off.mean(axis=1)) < allowed + error.mean() ** 2 / 4).all()
    np.testing.assert_allclose(off.std(axis=1), error.mean(axis=1), rtol=0.15)  # 4 errors of a standard deviation
    assert within_binomial((np.abs(off) < 1.645 * error).mean(), 0.9, theta.size)


@pytest.mark.slow
def test_adaptive_tests_need_fewer_items_than_random_ones():
    theta = np.random.default_rng(3).normal(size=300)
    number = {
        rule: simulate(adaptive_test(RASCH_LIKE, rule=rule, stop=Stop(60, standard_error=0.35)), theta, KEY).number
        for rule in ("information", "kl_posterior", "random")
    }
    least = number.pop("random").mean() * 0.75
    assert all(asked.mean() < least for asked in number.values())


def test_simulated_answers_follow_the_model():
    test = adaptive_test(BANK, rule="random", stop=Stop(30))
    found = simulate(test, np.full(2000, 0.4), KEY)
    assert (np.sort(found.items, axis=1) == np.arange(30)).all()
    share = np.take_along_axis(found.answers, np.argsort(found.items, axis=1), axis=1).mean(axis=0)
    p = probability(BANK, [0.4])[0]
    assert (np.abs(share - p) < 4.5 * np.sqrt(p * (1 - p) / 2000)).all()


@pytest.mark.slow
def test_two_dimensions():
    rng = np.random.default_rng(4)
    bank = ItemParameters(
        rng.lognormal(0, 0.5, (40, 2)), rng.normal(size=40), np.full(40, -np.inf), np.full(40, np.inf)
    )
    theta = rng.normal(size=(60, 2))
    errors = {}
    for rule in ("determinant", "random"):
        found = simulate(adaptive_test(bank, rule=rule, ability="map", stop=Stop(12)), theta, KEY)
        assert found.ability.shape == (60, 12, 2)
        errors[rule] = found.last()[1].prod(axis=1).mean()
        assert np.corrcoef(found.last()[0][:, 0], theta[:, 0])[0, 1] > 0.5
    assert errors["determinant"] < 0.95 * errors["random"]


def test_bad_input():
    test = adaptive_test(BANK, stop=Stop(10))
    for call, message in (
        (lambda: replay(test, VALUES[:, :20], KEY), "`values` of shape \\(7, 20\\), expected \\(subjects, 30\\)"),
        (
            lambda: simulate(test, np.zeros((3, 2)), KEY),
            "`theta` of shape \\(3, 2\\), expected one ability",
        ),
        (lambda: replay(test, VALUES, KEY, at_a_time=11), "`at_a_time` 11, expected a whole number, 1 to 10"),
    ):
        with pytest.raises(InputError, match=message):
            call()
    none = replay(test, VALUES[:0], KEY)
    assert none.items.shape == (0, 10)
