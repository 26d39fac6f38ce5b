"""MNIST (LeCun, Cortes and Burges): 70,000 handwritten digits of 28 × 28, through TensorFlow Datasets."""

import numpy as np

from irtjax.errors import InputError
from irtjax.tasks.task import ImageFormat, Split, Task

NUM_VALIDATION = 10_000


def load(data_dir: str | None = None) -> Task:
    """All but the last 10,000 training records to train on, those to validate on, and the test split.

    Record order is that of the TFDS files (shuffled once when they were written). `mnist_train_00017` is record
    17 of TFDS's training split, `mnist_test_00017` likewise.

    Raises:
        InputError: TFDS has no prepared MNIST in `data_dir`.
    """
    train_inputs, train_labels = _read("train", data_dir)
    test_inputs, test_labels = _read("test", data_dir)
    train_ids, test_ids = _ids("train", len(train_labels)), _ids("test", len(test_labels))
    cut = len(train_labels) - NUM_VALIDATION
    if cut <= 0:
        raise InputError(f"mnist: {len(train_labels)} training records, more than {NUM_VALIDATION} are needed")
    return Task(
        name="mnist",
        train=Split(train_inputs[:cut], train_labels[:cut], train_ids[:cut]),
        validation=Split(train_inputs[cut:], train_labels[cut:], train_ids[cut:]),
        test=Split(test_inputs, test_labels, test_ids),
        classes=tuple("0123456789"),
        format=ImageFormat(scale=255.0),
    )


def _ids(split: str, count: int) -> np.ndarray:
    return np.array([f"mnist_{split}_{position:05d}" for position in range(count)])


def _read(split: str, data_dir: str | None) -> tuple[np.ndarray, np.ndarray]:
    import tensorflow_datasets as tfds  # takes a second to import, which the other tasks need not wait for

    try:  # TFDS raises NotImplementedError where it finds no files in a random-access format, or none at all
        source = tfds.data_source("mnist", split=split, data_dir=data_dir, download=False)
    except (AssertionError, FileNotFoundError, NotImplementedError, ValueError) as error:
        raise InputError(
            f"mnist: no prepared copy in {data_dir or 'the default folder of TensorFlow Datasets'}; with TensorFlow, "
            "tfds.builder('mnist', file_format='array_record', data_dir=...).download_and_prepare() makes one"
        ) from error
    records = source.__getitems__(range(len(source)))  # one batched read: record by record takes five times as long
    return (
        np.stack([record["image"] for record in records]),
        np.array([record["label"] for record in records], np.int32),
    )
