"""Tasks: splits that do not overlap, ids that stay, labels that can be flipped."""

import dataclasses

import numpy as np
import pytest
from sklearn.datasets import load_digits

from irtjax import InputError, tasks
from irtjax.tasks.task import SPLITS, sample_split


def test_digits_splits_cover_the_data_once_and_ids_lead_back_to_it():
    task, data = tasks.load("digits"), load_digits()
    ids = np.concatenate([task.split(name).ids for name in SPLITS])
    assert [len(task.split(name).labels) for name in SPLITS] == [1197, 300, 300]
    assert sorted(ids) == [f"digits_{at:04d}" for at in range(1797)]
    for name in SPLITS:
        split = task.split(name)
        positions = [int(item.removeprefix("digits_")) for item in split.ids]
        np.testing.assert_array_equal(split.labels, data.target[positions])
        np.testing.assert_array_equal(split.inputs[..., 0], data.images[positions])
        assert split.inputs.dtype == np.uint8
        assert split.inputs.max() == task.format.scale
        assert set(split.labels) == set(range(task.num_classes))


def test_a_task_is_shown_in_a_line():
    assert repr(tasks.load("digits")) == (
        "Task('digits': 1,197 train, 300 validation, 300 test; 10 classes; inputs of 8 × 8 × 1)"
    )
    words = tasks.from_arrays([f"text {at}" for at in range(40)], np.arange(40) % 2, name="notes", min_count=1)
    assert repr(words).startswith("Task('notes': 28 train, 6 validation, 6 test; 2 classes; texts of ")


def test_loading_twice_gives_the_same_task():
    one, two = tasks.load("digits"), tasks.load("digits")
    np.testing.assert_array_equal(one.test.ids, two.test.ids)


def test_flipped_labels_are_wrong_and_as_many_as_asked():
    task = tasks.load("digits")
    wrong, flipped = tasks.flip_labels(task, 0.05, seed=3)
    assert flipped.sum() == 60  # 5% of 1,197
    np.testing.assert_array_equal(wrong.train.labels != task.train.labels, flipped)
    assert wrong.train.labels.min() >= 0
    assert wrong.train.labels.max() < task.num_classes
    np.testing.assert_array_equal(wrong.test.labels, task.test.labels)
    np.testing.assert_array_equal(tasks.flip_labels(task, 0.05, seed=3)[1], flipped)


def test_flipped_labels_are_not_those_that_other_draws_of_the_seed_pick():
    """NumPy's choices of one seed from many examples are of the same ones, whatever their numbers."""
    inputs, labels = np.zeros((20_000, 8, 8, 1), np.uint8), np.zeros(20_000, np.int32)
    train = tasks.Split(inputs, labels, np.arange(20_000).astype(str), None)
    task = dataclasses.replace(tasks.load("digits"), train=train)
    flipped = tasks.flip_labels(task, 0.2, seed=0)[1]
    sampled = sample_split(task, "train", 2_000, seed=0).train.ids.astype(int)
    assert flipped[sampled].mean() == pytest.approx(0.2, abs=0.04)


def test_unknown_task_is_named():
    with pytest.raises(InputError, match="unknown task 'imagenet', expected one of digits, mnist, cifar10, sst2, snli"):
        tasks.load("imagenet")


def test_options_that_a_task_would_not_look_at_are_refused():
    with pytest.raises(InputError, match=r"`glove`=vectors.txt: the task digits has no use for it"):
        tasks.load("digits", glove="vectors.txt")
    with pytest.raises(InputError, match=r"`embedding_dim`=50: `glove` has vectors of its own"):
        tasks.load("sst2", glove="vectors.txt", embedding_dim=50)
    with pytest.raises(InputError, match=r"`test_labels`=labels.csv: the task snli has no use for it"):
        tasks.load("snli", test_labels="labels.csv")
    with pytest.raises(InputError, match="`vectors`=elmo: expected one of ppmi, random"):
        tasks.load("sst2", vectors="elmo")
    with pytest.raises(InputError, match="`embedding_dim`=0: expected 1 to 65536"):
        tasks.load("sst2", embedding_dim=0)


@pytest.mark.parametrize(
    ("name", "whole", "message"),
    [
        ("train", 1197, "a sample of 1198 training examples: digits has 1197"),
        ("validation", 300, "a sample of 301 validation examples: digits has 300"),
        ("test", 300, "a sample of 301 test examples: digits has 300"),
    ],
)
def test_a_sample_of_a_split(name, whole, message):
    task = tasks.load("digits")
    every, some = getattr(task, name), sample_split(task, name, 100, seed=1)
    drawn = getattr(some, name)
    at = np.flatnonzero(np.isin(every.ids, drawn.ids))
    assert at.size == 100
    np.testing.assert_array_equal(drawn.inputs, every.inputs[at])
    np.testing.assert_array_equal(drawn.labels, every.labels[at])
    for other in set(SPLITS) - {name}:
        np.testing.assert_array_equal(getattr(some, other).ids, getattr(task, other).ids)
    assert (getattr(sample_split(task, name, 100, seed=2), name).ids != drawn.ids).any()
    with pytest.raises(InputError, match=message):
        sample_split(task, name, whole + 1, seed=0)
