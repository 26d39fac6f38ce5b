"""MNIST and CIFAR-10: order, splits, statistics; the cache; data sets that are not there."""

import json

import numpy as np
import pytest
from tfds_files import write_dataset

from irtjax import InputError, tasks
from irtjax.tasks import prepared, records
from irtjax.tasks.images import channel_statistics
from irtjax.tasks.task import SPLITS


@pytest.fixture(autouse=True)
def own_cache(request, tmp_path, monkeypatch):
    if "shared" not in request.fixturenames:
        monkeypatch.setenv("IRTJAX_CACHE", str(tmp_path / "cache"))


def image_records(split, count, shape, with_id=False, seed=0):
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (count, *shape), dtype=np.uint8)
    ids = rng.permutation(count)
    return [
        {"image": image, "label": int(at % 10)} | ({"id": f"{split}_{ids[at]:05d}"} if with_id else {})
        for at, image in enumerate(images)
    ]


@pytest.fixture
def mnist(tmp_path):
    splits = {"train": image_records("train", 60, (28, 28, 1)), "test": image_records("test", 7, (28, 28, 1), seed=1)}
    return splits, write_dataset(tmp_path / "data", "mnist", splits, "3.0.1")


def test_mnist_keeps_the_order_of_its_records(mnist, tmp_path):
    splits, _ = mnist
    task = tasks.load("mnist", str(tmp_path / "data"))
    assert [len(task.split(name).labels) for name in SPLITS] == [50, 10, 7]
    assert list(task.validation.ids[[0, -1]]) == ["mnist_train_00050", "mnist_train_00059"]
    images = np.concatenate([task.train.inputs, task.validation.inputs])
    np.testing.assert_array_equal(images, [record["image"] for record in splits["train"]])
    np.testing.assert_array_equal(task.test.labels, [record["label"] for record in splits["test"]])


def test_a_named_task_is_that_of_its_arrays(mnist, tmp_path):
    named = tasks.load("mnist", str(tmp_path / "data"))
    own = {split: (named.split(split).inputs, named.split(split).labels, named.split(split).ids) for split in SPLITS}
    inputs, labels, ids = own["train"]
    classes = [str(at) for at in range(10)]
    task = tasks.from_arrays(
        inputs, labels, ids=ids, validation=own["validation"], test=own["test"], class_names=classes
    )
    for split in SPLITS:
        for one, other in zip(task.split(split)[:3], named.split(split)[:3], strict=True):
            np.testing.assert_array_equal(one, other)
    assert named.classes == task.classes
    assert named.format == tasks.ImageFormat(255.0)  # MNIST is not standardised, images of one's own are
    assert task.format.mean != (0.0,)


def test_images_of_another_kind_are_refused(tmp_path):
    records = image_records("train", 12, (32, 32, 3))
    write_dataset(tmp_path, "photographs", {"train": records, "test": records})
    with pytest.raises(InputError, match="train: images of 32 × 32 × 3, expected 28 × 28 × 1; `dataset` must name"):
        tasks.load("mnist", str(tmp_path), dataset="photographs")


def test_cifar10_is_in_the_order_of_its_ids(tmp_path):
    shape = (32, 32, 3)
    train = image_records("train", 25, shape, with_id=True)
    write_dataset(tmp_path, "cifar10_small", {"train": train, "test": image_records("test", 3, shape, with_id=True)})
    task = tasks.load("cifar10", str(tmp_path), dataset="cifar10_small")
    assert [len(task.split(name).labels) for name in SPLITS] == [20, 5, 3]
    assert list(task.train.ids) == [f"cifar10_train_{at:05d}" for at in range(20)]
    by_id = {f"cifar10_{record['id']}": record for record in train}
    for split in (task.train, task.validation):
        np.testing.assert_array_equal(split.inputs, [by_id[item]["image"] for item in split.ids])
        np.testing.assert_array_equal(split.labels, [by_id[item]["label"] for item in split.ids])
    assert task.format.flips
    scaled = task.train.inputs / 255
    np.testing.assert_allclose(task.format.mean, scaled.mean(axis=(0, 1, 2)), atol=1e-12)
    np.testing.assert_allclose(task.format.deviation, scaled.std(axis=(0, 1, 2)), atol=1e-12)


def test_channel_statistics_by_hand():
    images = np.array([[0, 10], [100, 10]], np.uint8).reshape(2, 1, 1, 2)
    mean, deviation = channel_statistics(images, 100)
    np.testing.assert_allclose([mean, deviation], [[0.5, 0.1], [0.5, 0.0]], atol=1e-12)


def test_the_cache_saves_reading_and_is_not_trusted_when_damaged(mnist, tmp_path):
    calls = []

    def load():
        return tasks.load("mnist", str(tmp_path / "data"), on_progress=lambda *report: calls.append(report))

    first = load()
    assert ("mnist train", 60, 60) in calls
    calls.clear()
    again = load()
    assert not calls
    np.testing.assert_array_equal(first.train.inputs, again.train.inputs)
    for path in (tmp_path / "cache").glob("*.npz"):
        path.write_bytes(path.read_bytes()[:-100])
    np.testing.assert_array_equal(load().train.inputs, first.train.inputs)
    assert calls
    calls.clear()
    info = mnist[1] / "dataset_info.json"
    info.write_text(info.read_text() + " ")  # prepared anew
    load()
    assert calls


def test_a_cache_that_cannot_be_written_is_done_without(mnist, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("IRTJAX_CACHE", str(tmp_path / "file" / "cache"))
    assert len(tasks.load("mnist", str(tmp_path / "data")).test.labels) == 7


def test_blocks_are_joined(mnist, tmp_path, monkeypatch):
    monkeypatch.setattr(records, "BLOCK", 25)
    calls = []
    source = prepared.find("mnist", "mnist", str(tmp_path / "data"))
    columns = records.read("mnist", source, "train", {"label": True}, lambda *report: calls.append(report[1:]))
    assert calls == [(25, 60), (50, 60), (60, 60)]
    np.testing.assert_array_equal(columns["label"], np.arange(60) % 10)


def test_the_newest_version_in_a_readable_format_is_found(tmp_path):
    splits = {"train": [{"label": 1}], "test": [{"label": 1}]}
    for version in ("1.0.0", "1.10.0", "1.9.0", "2.0.0"):
        folder = write_dataset(tmp_path, "mnist", splits, version)
    info = json.loads((folder / "dataset_info.json").read_text())
    (folder / "dataset_info.json").write_text(json.dumps(info | {"fileFormat": "tfrecord"}))
    assert prepared.find("mnist", "mnist", str(tmp_path)).folder.name == "1.10.0"
    assert prepared.find("mnist", "mnist", str(tmp_path), "mnist:1.9.0").folder.name == "1.9.0"
    with pytest.raises(InputError, match="is prepared as tfrecord, but only array_record"):
        prepared.find("mnist", "mnist", str(tmp_path), "mnist:2.0.0")


def test_data_that_are_not_there_are_explained(mnist, tmp_path, monkeypatch):
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "none"))
    todo = "prepare glue/sst2 there once, as array_record files$"  # the binaries add the command: test_prepare.py
    with pytest.raises(InputError, match=rf"in {tmp_path}/none \(which is not there\); {todo}"):
        tasks.load("sst2")
    data = tmp_path / "data"
    with pytest.raises(InputError, match=rf"{data} \(which has mnist; `dataset` can name one\); {todo}"):
        tasks.load("sst2", str(data))
    with pytest.raises(InputError, match=f"no prepared copy of snli_subset in {data}, which has mnist"):
        tasks.load("snli", str(data), dataset="snli_subset")
    with pytest.raises(InputError, match="is not the name of a data set"):
        tasks.load("snli", str(data), dataset="../etc")
    with pytest.raises(InputError, match="have no feature 'sentence'"):
        tasks.load("sst2", str(data), dataset="mnist")


def test_a_damaged_file_is_one_line(mnist, tmp_path):
    next(mnist[1].glob("mnist-train*")).write_bytes(b"0" * 100)
    with pytest.raises(InputError, match=r"train cannot be read .*; prepare the data set again") as caught:
        tasks.load("mnist", str(tmp_path / "data"))
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_mnist_as_published(shared):
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


def test_cifar10_records(shared):
    source = prepared.find("cifar10", "cifar10", str(shared / "tfds"), "cifar10_test1k")
    assert source.splits == {"train": 50_000, "test": 1_000}
    wanted = {"image": True, "label": True, "id": False}
    test = records.order_by(records.read("cifar10", source, "test", wanted, lambda *_: None), "id", "here")
    assert test["id"] == [f"test_{at:05d}" for at in range(1000)]
    np.testing.assert_array_equal(np.bincount(test["label"]), [103, 89, 100, 103, 90, 86, 112, 102, 106, 109])
