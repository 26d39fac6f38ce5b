"""Measures of the speed of training, by hand and by simulation."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_1samp

from irtjax.selection import summarise
from irtjax.selection.measures import accuracy_within, area, examples_to_reach, learning_curves, never_half
from irtjax.selection.summary import detectable, net_saving

ROWS = [
    ("b", 0, 0, 100, 0.3, 0.2), ("b", 0, 1, 100, 0.6, 0.5), ("b", 0, 2, 100, 0.9, 0.6), ("b", 0, 3, 100, 0.6, 0.7),
    ("a", 1, 1, 30, 0.8, 0.7), ("a", 1, 0, 20, 0.4, 0.3),
]  # fmt: skip
TABLE = pd.DataFrame(ROWS, columns=["strategy", "seed", "epoch", "examples_used", "dev_accuracy", "test_accuracy"])


@pytest.fixture(scope="module")
def one():
    whole = learning_curves(TABLE)
    np.testing.assert_allclose(whole[whole.strategy == "a"].used, [20, 50])  # epochs in their order
    return whole[whole.strategy == "b"]


def test_smoothed_over_three_epochs_or_as_many_as_there_are(one):
    np.testing.assert_allclose(one.smoothed, [0.3, 0.45, 0.6, 0.7])
    np.testing.assert_allclose(one.used, [100, 200, 300, 400])


def test_examples_until_a_target(one):
    assert examples_to_reach(one, 0.3) == (100, True)
    assert examples_to_reach(one, 0.61) == (400, True)
    assert examples_to_reach(one, 0.71) == (400, False)


def test_the_mean_on_the_way(one):
    # trapezoids: 0 to .3, .3 to .6, .6 to .9, .9 to .6
    assert area(one, 400.0) == pytest.approx((0.15 + 0.45 + 0.75 + 0.75) / 4)
    assert area(one, 150.0) == pytest.approx((0.15 * 100 + (0.3 + 0.45) / 2 * 50) / 150)
    assert area(one, 800.0) == pytest.approx((2.1 + 4 * 0.6) / 8)  # the last accuracy goes on


def test_the_best_within_a_budget(one):
    assert accuracy_within(one, 400.0) == 0.6  # of the epoch that the validation split prefers
    assert accuracy_within(one, 299.0) == 0.5
    assert np.isnan(accuracy_within(one, 99.0))


def test_rows_in_any_order_and_with_any_index_give_the_same_summary():
    """As those of two runs that were put together."""
    rng = np.random.default_rng(0)
    keys = [(name, seed, epoch) for name in ("baseline", "a") for seed in range(3) for epoch in range(5)]
    table = pd.DataFrame(keys, columns=["strategy", "seed", "epoch"])
    for name in ("dev_accuracy", "test_accuracy"):
        table[name] = rng.uniform(size=len(table))
    table = table.assign(examples_used=rng.integers(10, 100, len(table)), items_asked=0)
    mixed = table.sample(frac=1, random_state=0).assign(index=lambda rows: np.arange(len(rows)) % 7).set_index("index")
    columns = ["strategy", "best_epoch", "examples_used", "test_accuracy", "examples_ratio", "reach_ratio"]
    given, expected = (summarise(rows).sort_values("strategy")[columns] for rows in (mixed, table))
    pd.testing.assert_frame_equal(given.reset_index(drop=True), expected.reset_index(drop=True))


@pytest.mark.slow
def test_a_detectable_mean_is_found_four_times_in_five():
    rng = np.random.default_rng(0)
    found = [detectable(rng.normal(size=10)) for _ in range(4000)]
    mean = float(np.mean(found))  # the spread of a sample is a little too small on average
    right = np.mean([ttest_1samp(rng.normal(mean / 0.9727, size=10), 0).pvalue < 0.05 for _ in range(4000)])
    assert right == pytest.approx(0.8, abs=0.02)
    for values in ([1.0, 2.0], [1.0, 1.0, 1.0], [1.0, np.inf, 2.0]):
        assert np.isnan(detectable(values))


def test_a_strategy_that_needs_half_has_half():
    rng = np.random.default_rng(1)
    rows = []
    for seed in range(8):
        noise = rng.normal(0, 0.002, 60)
        for strategy, pace in (("baseline", 1.0), ("fast", 2.0)):
            for epoch in range(60):
                accuracy = 0.9 * (1 - np.exp(-pace * (epoch + 1) / 10)) + noise[epoch]
                rows.append((strategy, seed, epoch, 1.0, 100, 0, accuracy, accuracy))
    names = ["strategy", "seed", "epoch", "share", "examples_used", "items_asked", "dev_accuracy", "test_accuracy"]
    summary = summarise(pd.DataFrame(rows, columns=names)).set_index("strategy")
    fast, baseline = summary.loc["fast"], summary.loc["baseline"]
    assert fast.reach_ratio_low < 0.5 < fast.reach_ratio_high or fast.reach_ratio == pytest.approx(0.5, abs=0.05)
    assert fast.reached == baseline.reached == 8
    assert 0 < fast.reach_detectable < 50  # so this was within sight
    assert fast.area_change_points > 5
    assert fast.within_10_change_points > fast.within_50_change_points > fast.within_100_change_points - 0.5
    assert baseline.reach_ratio == 1
    assert np.isnan(baseline.reach_detectable)


def test_networks_that_never_select_half():
    shares = pd.DataFrame({"seed": [0, 0, 1, 1, 2], "share": [0.1, 0.5, 0.4, 0.49, 0.2]})
    assert never_half(shares) == 2


def test_a_saving_is_less_the_cost_of_answers():
    ratios = {"examples_ratio_low": [1.0, 0.8, 0.8], "examples_ratio_high": [1.0, 0.99, 1.01]}
    columns = {"examples_used": [1000, 900, 1030], "items_asked": [0, 150, 60]}
    changes = {"accuracy_change_points": [0, -3.0, -3.0], "accuracy_change_points_ci": [0, 2.0, 4.0]}
    summary = pd.DataFrame({"strategy": ["baseline", "DDaCLAE", "window"], **columns, **ratios, **changes})
    assert net_saving(summary, "DDaCLAE") == (100, 150, 50, True, 3, -3, 2)
    assert net_saving(summary, "window") == (-30, 60, -50, False, 0, -3, 4)
