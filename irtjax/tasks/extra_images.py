"""Images from a file, for networks to answer that were trained on a task of images."""

from pathlib import Path

import numpy as np

from irtjax.errors import InputError
from irtjax.storage.archives import read_arrays
from irtjax.storage.sources import naming
from irtjax.storage.tables import require_ids
from irtjax.tasks.item_ids import label_number
from irtjax.tasks.task import Split

ARRAYS = ("images", "labels", "item_id")


def read_images(path: str | Path, train: np.ndarray, scale: float, classes: tuple[str, ...]) -> Split:
    """The examples of an NPZ file with the arrays `images`, `labels` and `item_id`.

    Args:
        path: the file. Images (M, H, W, channels), or (M, H, W) of one channel, are of the size and on the scale of
            those trained on; labels (M,) are names of classes, or their numbers.
        train: images of the task, (N, H, W, channels).
        scale: values of integer images run from 0 to this.
        classes: names of the labels.

    Raises:
        InputError: names the file, and the array or item that is wrong: an array is missing or of another length, an
            image is of another size or has a value out of range, an id is there twice, a label is none of the task.
    """
    with naming(str(path)):
        images, labels, ids = read_arrays(path, ARRAYS).values()
        if images.shape[1:] == train.shape[1:3] and train.shape[3] == 1:
            images = images[..., None]
        number = len(images) if images.ndim else 0
        if images.shape[1:] != train.shape[1:] or images.dtype.kind not in "uif":
            expected = " × ".join(map(str, train.shape[1:]))
            raise InputError(
                f"images of type {images.dtype} and shape {images.shape}, expected numbers, M × {expected}"
            )
        if not number:
            raise InputError("no examples")
        for name, array in (("labels", labels), ("item_id", ids)):
            if array.shape != (number,):
                raise InputError(f"{name} of shape {array.shape}, expected one for each of {number:,} images")
        rows = range(number)  # where they are
        require_ids(rows, [str(one) for one in ids], "item_id")
        low, high = (0, scale) if train.dtype == np.uint8 else (-np.finfo(train.dtype).max, np.finfo(train.dtype).max)
        outside = ~((images >= low) & (images <= high)).all(axis=(1, 2, 3))
        if outside.any():
            raise InputError(f"item {str(ids[outside][0])!r} has values outside of {low:g} to {high:g}")
        numbers = [
            label_number(str(label).strip().lower(), classes, row) for row, label in zip(rows, labels, strict=True)
        ]
    if train.dtype == np.uint8:
        images = images.round()
    return Split(images.astype(train.dtype), np.array(numbers, np.int32), np.array([str(one) for one in ids]))
