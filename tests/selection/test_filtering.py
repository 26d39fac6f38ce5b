"""Filtering strategies against their definitions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax import InputError
from irtjax.selection.filter_summary import kept_classes
from irtjax.selection.filtering import (
    CENTRES,
    FILTERS,
    centre_of,
    drawn,
    ranking,
    threshold,
    within_classes,
)
from irtjax.selection.subsets import SubsetRow, plan_subset

RNG = np.random.default_rng(0)
DIFFICULTY = RNG.normal(size=50)
PERCENT = RNG.uniform(size=50)

KEPT = {  # at threshold d, from the definitions
    "AVI": lambda b, pc, d: np.abs(b - b.mean()) < d,
    "AVO": lambda b, pc, d: np.abs(b - b.mean()) > d,
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


@pytest.mark.parametrize("strategy", KEPT)
def test_the_threshold_keeps_what_was_kept(strategy):
    order = ranking(strategy, DIFFICULTY, PERCENT)
    cut = threshold(strategy, DIFFICULTY, PERCENT, order[:20])
    beyond = set(np.flatnonzero(KEPT[strategy](DIFFICULTY, PERCENT, cut)))
    assert beyond == set(order[:19])  # the last of the 20 is at the threshold itself
    assert np.isnan(threshold("random", DIFFICULTY, PERCENT, order[:20]))


def test_what_is_average_may_be_chosen():
    skewed = np.array([-3.0, -2.0, -1.9, -0.1, 2.5])
    means = {"difficulty": -0.9, "median": -1.9, "ability": 0.0, "midpoint": -0.45}
    assert set(means) == set(CENTRES)
    for centre, expected in means.items():
        assert centre_of(skewed, centre) == pytest.approx(expected)
        order = ranking("AVI", skewed, PERCENT[:5], centre=centre)
        np.testing.assert_array_equal(order, np.argsort(np.abs(skewed - expected)))
        np.testing.assert_array_equal(order, ranking("AVO", skewed, PERCENT[:5], centre=centre)[::-1])
        for strategy in ("UB", "LB"):
            np.testing.assert_array_equal(
                ranking(strategy, skewed, PERCENT[:5], centre=centre), ranking(strategy, skewed, PERCENT[:5])
            )
    assert threshold("AVI", skewed, PERCENT[:5], np.array([1, 2]), "median") == pytest.approx(0.1)
    with pytest.raises(
        InputError, match="unknown centre 'mean', expected one of difficulty, median, ability, midpoint"
    ):
        centre_of(skewed, "mean")


def test_every_strategy_has_a_definition_but_the_control():
    assert set(FILTERS) == {*KEPT, "random"}


def test_random_order_and_ties_follow_the_seed():
    orders = [ranking("random", DIFFICULTY, PERCENT, seed) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(orders[0], orders[1])
    assert (orders[0] != orders[2]).any()
    tied = [ranking("PCLB", DIFFICULTY, np.ones(50), seed) for seed in (0, 1)]
    assert (tied[0] != tied[1]).any()


def test_classes_keep_their_proportions():
    labels = np.sort(RNG.choice(3, size=50, p=[0.6, 0.3, 0.1]))  # of which the hardest are in one class
    order = ranking("LB", np.linspace(-3, 3, 50) + labels, PERCENT)
    balanced, shares = within_classes(order, labels), np.bincount(labels) / 50
    assert sorted(balanced) == list(range(50))
    for kept in range(1, 51):
        assert np.abs(np.bincount(labels[balanced[:kept]], minlength=3) - kept * shares).max() < 1
    for c in range(3):  # in a class the order stays
        np.testing.assert_array_equal(balanced[labels[balanced] == c], order[labels[order] == c])


def test_a_class_has_a_threshold_of_its_own():
    labels = np.arange(50) % 2
    chosen = within_classes(ranking("UB", DIFFICULTY, PERCENT), labels)[:20]
    scales = (DIFFICULTY, PERCENT)
    rows = kept_classes({("UB", 0.4): chosen}, labels, ["a", "b"], scales, "difficulty", by_class=True)
    assert rows.examples.tolist() == [10, 10]
    for row, c in zip(rows.itertuples(), range(2), strict=True):
        assert (DIFFICULTY[labels == c] <= row.threshold).sum() == 10


def test_difficulties_are_drawn_from_their_posteriors():
    draws = np.stack([drawn(DIFFICULTY, np.full(50, 0.3), seed) for seed in range(200)])
    np.testing.assert_allclose(draws.mean(axis=0), DIFFICULTY, atol=5 * 0.3 / np.sqrt(200))
    assert draws.std(axis=0).mean() == pytest.approx(0.3, abs=0.01)
    np.testing.assert_array_equal(drawn(DIFFICULTY, np.zeros(50), 7), DIFFICULTY)


def test_unknown_strategy_is_named():
    with pytest.raises(InputError, match="unknown filtering strategy 'BEST'"):
        ranking("BEST", DIFFICULTY, PERCENT)


def test_plans_pair_equal_seeds():
    orders = [ranking(strategy, DIFFICULTY, PERCENT) for strategy in ("UB", "LB")]
    labels = np.arange(50) % 3
    one, two = (
        plan_subset(SubsetRow(jnp.uint32(7), order, size, 0.1, 16), labels)
        for order, size in zip(orders, (10, 20), strict=True)
    )
    np.testing.assert_array_equal(jax.random.key_data(one.key), jax.random.key_data(two.key))
    np.testing.assert_array_equal(two.order, orders[1])
    assert (one.size, two.size) == (10, 20)
    np.testing.assert_array_equal(two.labels, labels)
