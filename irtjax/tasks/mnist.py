"""MNIST (LeCun, Cortes and Burges): 70,000 handwritten digits of 28 × 28, through TensorFlow Datasets."""

import numpy as np

from irtjax.errors import InputError
from irtjax.tasks import prepared, records
from irtjax.tasks.options import TaskOptions
from irtjax.tasks.task import ImageFormat, Split, Task, select

DATASET = "mnist"  # in TensorFlow Datasets
CLASSES = tuple("0123456789")
VALIDATION_SHARE = 6  # one in six training records: 10,000 of 60,000


def load(options: TaskOptions) -> Task:
    """The test split, the last sixth of the training records to validate on, and the others to train on.

    Records keep the order of the TFDS files, which were shuffled when they were written. `mnist_train_00017` is record
    17 of the training split in TFDS, `mnist_test_00017` that of the test split.

    Raises:
        InputError: TFDS has no prepared MNIST in `options.data_dir`, or `options.dataset` is of another kind.
    """
    source = prepared.find("mnist", DATASET, options.data_dir, options.dataset)
    train, test = (_read(source, split, options) for split in ("train", "test"))
    cut = len(train.labels) - len(train.labels) // VALIDATION_SHARE
    return Task(
        name="mnist",
        train=select(train, slice(cut)),
        validation=select(train, slice(cut, None)),
        test=test,
        classes=CLASSES,
        format=ImageFormat(scale=255.0),
    )


def _read(source: prepared.Prepared, split: str, options: TaskOptions) -> Split:
    columns = records.read("mnist", source, split, {"image": True, "label": True}, options.on_progress)
    ids = np.array([f"mnist_{split}_{position:05d}" for position in range(len(columns["label"]))])
    images = records.images_of(columns, (28, 28, 1), f"{source.folder}: {split}")
    labels = records.labels_of(columns, len(CLASSES), f"{source.folder}: {split}")
    if labels.min() < 0:
        raise InputError(f"mnist: {source.folder}: {split} has records without a label")
    return Split(images, labels, ids)
