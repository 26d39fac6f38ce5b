"""Filtering strategies against their definitions."""

import jax
import numpy as np
import pytest

from irtjax import InputError
from irtjax.filtering import STRATEGIES, plan_subsets, ranking

RNG = np.random.default_rng(0)
DIFFICULTY = RNG.normal(size=50)
PERCENT = RNG.uniform(size=50)

KEPT = {  # at threshold d, from the definitions
    "AVI": lambda b, pc, d: np.abs(b) < d,
    "AVO": lambda b, pc, d: np.abs(b) > d,
    "UB": lambda b, pc, d: b < d,
    "LB": lambda b, pc, d: b > d,
    "PCUB": lambda b, pc, d: pc < d,
    "PCLB": lambda b, pc, d: pc > d,
}


@pytest.mark.parametrize("strategy", KEPT)
@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.9])
def test_the_first_of_the_order_are_what_the_threshold_keeps(strategy, threshold):
    kept = np.flatnonzero(KEPT[strategy](DIFFICULTY, PERCENT, threshold))
    assert 0 < kept.size < 50
    order = ranking(strategy, DIFFICULTY, PERCENT)
    assert sorted(order) == list(range(50))
    assert set(order[: kept.size]) == set(kept)


def test_every_strategy_has_a_definition_but_the_control():
    assert set(STRATEGIES) == {*KEPT, "random"}


def test_random_order_and_ties_follow_the_seed():
    orders = [ranking("random", DIFFICULTY, PERCENT, seed) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(orders[0], orders[1])
    assert (orders[0] != orders[2]).any()
    tied = [ranking("PCLB", DIFFICULTY, np.ones(50), seed) for seed in (0, 1)]
    assert (tied[0] != tied[1]).any()


def test_unknown_strategy_is_named():
    with pytest.raises(InputError, match="unknown filtering strategy 'BEST'"):
        ranking("BEST", DIFFICULTY, PERCENT)


def test_plans_pair_equal_seeds():
    orders = np.stack([ranking(strategy, DIFFICULTY, PERCENT) for strategy in ("UB", "LB")])
    labels = np.arange(50) % 3
    plans = plan_subsets(orders, np.array([10, 20]), np.array([7, 7]), labels)
    np.testing.assert_array_equal(jax.random.key_data(plans.key[0]), jax.random.key_data(plans.key[1]))
    np.testing.assert_array_equal(plans.order, orders)
    np.testing.assert_array_equal(plans.size, [10, 20])
    np.testing.assert_array_equal(plans.labels[1], labels)
