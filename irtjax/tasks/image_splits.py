"""Splits of the named tasks of images, from prepared data sets."""

import numpy as np

from irtjax.errors import InputError
from irtjax.tasks import prepared, records
from irtjax.tasks.building import Given, divide
from irtjax.tasks.inputs import Pictures
from irtjax.tasks.options import TaskOptions


def image_splits(
    task: str,
    dataset: str,
    shape: tuple[int, int, int],
    num_classes: int,
    validation_share: int,
    options: TaskOptions,
    order: str = "",
) -> dict[str, Given]:
    """The test split, the last of the training images to validate on, and the others to train on.

    Args:
        task: its name.
        dataset: the task's own, in TensorFlow Datasets.
        shape: of the images.
        num_classes: that there are labels of.
        validation_share: one in how many training images is for validation.
        options: of the task.
        order: the feature that orders and numbers the records; where they lack it, they keep the order of the files.

    Raises:
        InputError: there is no prepared copy, or images or labels are of another kind.
    """
    source = prepared.find(task, dataset, options.data_dir, options.dataset)
    wanted = {"image": True, "label": True} | ({order: False} if order else {})

    def read(split: str) -> Given:
        place = f"{source.folder}: {split}"
        columns = records.order_by(records.read(task, source, split, wanted, options.on_progress), order, place)
        images = records.images_of(columns, shape, place)
        labels = records.labels_of(columns, num_classes, place)
        if labels.min() < 0:
            raise InputError(f"{task}: {place} has records without a label")
        ids = records.ids_of(columns.get(order, np.arange(len(labels))), task, split)
        return Given(Pictures(images, 255.0), labels, ids)

    whole = read("train")
    train, validation = divide(whole, len(whole.labels) - len(whole.labels) // validation_share)
    return {"train": train, "validation": validation, "test": read("test")}
