"""Tasks: splits that do not overlap, ids that stay, labels that can be flipped."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from irtjax import InputError, tasks
from irtjax.tasks.task import SPLITS


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
        assert split.inputs.max() == task.input_scale
        assert set(split.labels) == set(range(task.num_classes))


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


def test_unknown_task_is_named():
    with pytest.raises(InputError, match="unknown task 'imagenet', expected one of digits, mnist"):
        tasks.load("imagenet")


def test_mnist_that_is_not_there_is_explained(tmp_path):
    with pytest.raises(InputError, match=f"mnist: no prepared copy in {tmp_path}"):
        tasks.load("mnist", str(tmp_path))


def test_mnist(shared):
    task = tasks.load("mnist", str(shared / "tfds"))
    assert [task.split(name).inputs.shape for name in SPLITS] == [
        (50_000, 28, 28, 1),
        (10_000, 28, 28, 1),
        (10_000, 28, 28, 1),
    ]
    labels = np.concatenate([task.train.labels, task.validation.labels])
    np.testing.assert_array_equal(
        np.bincount(labels), [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    )  # as published
    assert task.train.ids[0] == "mnist_train_00000"
    assert task.validation.ids[0] == "mnist_train_50000"
    assert len(np.unique(np.concatenate([task.split(name).ids for name in SPLITS]))) == 70_000
