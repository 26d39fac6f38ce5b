"""Summaries of filtering, by hand and against the formula of Welch's interval."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from irtjax.selection.filter_summary import accuracies, against_control, evenness, kept_classes, largest_classes

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    [
        (name, share, seed, RNG.random())
        for name in ("UB", "random", "AVI")
        for share in (0.1, 1.0)
        for seed in range(4)
    ],
    columns=["strategy", "share", "seed", "test_accuracy"],
)


def accuracy(strategy, share):
    return TABLE[(TABLE.strategy == strategy) & (TABLE.share == share)].test_accuracy.to_numpy()


def test_means_with_their_intervals():
    cell = accuracies(TABLE).loc[("AVI", 0.1)]
    values = accuracy("AVI", 0.1)
    assert cell["mean"] == pytest.approx(values.mean())
    assert cell["half"] == pytest.approx(t.ppf(0.975, 3) * values.std(ddof=1) / 2)


def test_differences_from_the_random_choice():
    found = against_control(TABLE)
    assert found.index.tolist() == [("UB", 0.1), ("UB", 1.0), ("AVI", 0.1), ("AVI", 1.0)]
    one, other = accuracy("UB", 1.0), accuracy("random", 1.0)
    parts = np.array([one.var(ddof=1), other.var(ddof=1)]) / 4
    freedom = parts.sum() ** 2 / (parts**2 / 3).sum()  # Welch and Satterthwaite
    half = 100 * t.ppf(0.975, freedom) * np.sqrt(parts.sum())
    difference = 100 * (one.mean() - other.mean())
    np.testing.assert_allclose(found.loc[("UB", 1.0)], [difference, difference - half, difference + half])


@pytest.mark.parametrize(
    "table", [TABLE[TABLE.strategy != "random"], TABLE[TABLE.strategy == "random"], TABLE[TABLE.seed == 0]]
)
def test_nothing_to_compare(table):
    assert against_control(table).empty


def test_classes_of_what_is_kept():
    labels, difficulty = np.array([0, 0, 1, 2]), np.array([-1.0, 0.0, 1.0, 3.0])
    kept = {("UB", 0.75): np.array([0, 1, 2]), ("random", 0.25): np.array([3])}
    table = kept_classes(kept, labels, ("a", "b", "c"), (difficulty, np.full(4, 0.5)), "difficulty")
    easy = table[table.strategy == "UB"]
    assert easy.threshold.tolist() == [1.0] * 3
    assert easy.examples.tolist() == [2, 1, 0]
    np.testing.assert_allclose(easy.share_of_kept, [2 / 3, 1 / 3, 0])
    assert table.threshold[table.strategy == "random"].isna().all()
    most = largest_classes(table)
    assert most["class"].tolist() == ["a", "c"]
    assert most.share_of_kept["random", 0.25] == 1
    entropy = np.log(3) - 2 / 3 * np.log(2)  # of 2/3 and 1/3
    assert evenness(table)["UB", 0.75] == pytest.approx(entropy / np.log(3))
    assert evenness(table)["random", 0.25] == 0
