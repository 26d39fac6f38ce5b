"""Splits that are drawn: each example once, each class with its share, one of each to train on."""

import numpy as np
import pytest

from irtjax import InputError
from irtjax.tasks.splitting import draw_splits

SHARES = {"validation": 0.15, "test": 0.15}


@pytest.mark.parametrize("seed", [0, 1])
def test_each_class_has_its_share_to_within_one_and_one_in_training(seed):
    counts = np.array([1, 2, 3, 10, 100, 1000])
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(6), counts))
    rows = draw_splits(labels, 6, SHARES, seed)
    np.testing.assert_array_equal(np.sort(np.concatenate(list(rows.values()))), np.arange(labels.size))
    assert [len(rows[name]) for name in ("train", "validation", "test")] == [782, 167, 167]
    for name, share in SHARES.items():
        found = np.bincount(labels[rows[name]], minlength=6)
        assert (np.abs(found - share * counts) <= 1).all()
    assert (np.bincount(labels[rows["train"]], minlength=6) >= 1).all()
    assert all((np.diff(at) > 0).all() for at in rows.values())


def test_the_seed_decides():
    labels = np.arange(100) % 2
    one, same, other = (draw_splits(labels, 2, SHARES, seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one["test"], same["test"])
    assert set(one["test"]) != set(other["test"])


def test_a_thousand_classes_of_three_examples():
    labels = np.tile(np.arange(1000), 3)
    rows = draw_splits(labels, 1000, SHARES, 0)
    assert [len(at) for at in rows.values()] == [2100, 450, 450]
    assert len(np.unique(labels[rows["train"]])) == 1000


@pytest.mark.parametrize(
    ("labels", "shares", "message"),
    [
        (
            [0, 1, 1],
            SHARES,
            "3 examples of 2 classes are too few: training needs one of each class, and validation and",
        ),
        ([0, 1, 1, 1], {"test": 1.0}, "`test_share`=1.0: expected more than 0 and less than 1"),
        ([0, 1, 1, 1], {"validation": 0.5, "test": 0.5}, "shares of 0.5 and 0.5 leave nothing to train on"),
    ],
)
def test_too_little_is_refused(labels, shares, message):
    with pytest.raises(InputError, match=message):
        draw_splits(np.array(labels), 2, shares, 0)
