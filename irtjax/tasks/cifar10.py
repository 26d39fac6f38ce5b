"""CIFAR-10 (Krizhevsky 2009): 60,000 photographs of 32 × 32 in ten classes, through TensorFlow Datasets."""

import numpy as np

from irtjax.errors import InputError
from irtjax.tasks import prepared, records
from irtjax.tasks.images import channel_statistics
from irtjax.tasks.options import TaskOptions
from irtjax.tasks.task import ImageFormat, Split, Task, select

DATASET = "cifar10"  # in TensorFlow Datasets
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
VALIDATION_SHARE = 5  # one in five training records: 10,000 of 50,000
_SCALE = 255


def load(options: TaskOptions) -> Task:
    """The test split, the last fifth of the training images to validate on, and the others to train on.

    Images are in order of the records' `id`, which is that of the original batches. `cifar10_train_00017` is the image
    whose id is `train_00017`.

    Raises:
        InputError: TFDS has no prepared CIFAR-10 in `options.data_dir`, or `options.dataset` is of another kind.
    """
    source = prepared.find("cifar10", DATASET, options.data_dir, options.dataset)
    whole, test = (_read(source, split, options) for split in ("train", "test"))
    cut = len(whole.labels) - len(whole.labels) // VALIDATION_SHARE
    train = select(whole, slice(cut))
    mean, deviation = channel_statistics(np.asarray(train.inputs), _SCALE)
    return Task(
        name="cifar10",
        train=train,
        validation=select(whole, slice(cut, None)),
        test=test,
        classes=CLASSES,
        format=ImageFormat(scale=float(_SCALE), mean=mean, deviation=deviation, flips=True),
    )


def _read(source: prepared.Prepared, split: str, options: TaskOptions) -> Split:
    wanted = {"image": True, "label": True, "id": False}
    place = f"{source.folder}: {split}"
    columns = records.order_by(records.read("cifar10", source, split, wanted, options.on_progress), "id", place)
    names = columns.get("id") or [f"{split}_{position:05d}" for position in range(len(columns["label"]))]
    images = records.images_of(columns, (32, 32, 3), place)
    labels = records.labels_of(columns, len(CLASSES), place)
    if labels.min() < 0:
        raise InputError(f"cifar10: {source.folder}: {split} has records without a label")
    return Split(images, labels, np.array([f"cifar10_{name}" for name in names]))
