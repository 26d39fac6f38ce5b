"""Images from a file, for networks to answer that were trained on a task of images."""

from pathlib import Path

import numpy as np

from irtjax.errors import InputError
from irtjax.storage.archives import read_arrays
from irtjax.storage.sources import naming, shown
from irtjax.tasks.item_ids import LONGEST_ID
from irtjax.tasks.task import Split

ARRAYS = ("images", "labels", "item_id")


def read_images(path: str | Path, train: np.ndarray, scale: float, classes: tuple[str, ...]) -> Split:
    """The examples of an NPZ file with the arrays `images`, `labels` and `item_id`.

    Args:
        path: the file. Images (M, H, W, channels), or (M, H, W) of one channel, are of the size and on the scale of
            those trained on; labels (M,) are names of classes, or their numbers.
        train: images of the task, (N, H, W, channels).
        scale: values of the task's images run from 0 to this.
        classes: names of the labels.

    Raises:
        InputError: names the file, and the array or item that is wrong: an array is missing or of another length, an
            image is of another size or has a value out of range, images are on another scale, an id is there twice, a
            label is none of the task.
    """
    with naming(str(path)):
        images, labels, item_ids = read_arrays(path, ARRAYS).values()
        given = f"images of type {images.dtype} and shape {images.shape}"
        if images.shape[1:] == train.shape[1:3] and train.shape[3] == 1:
            images = images[..., None]
        if images.ndim < 1 or images.shape[1:] != train.shape[1:] or images.dtype.kind not in "uif":
            raise InputError(f"{given}, expected numbers, M × {' × '.join(map(str, train.shape[1:]))}")
        if not len(images):
            raise InputError("no examples")
        ids, names = _texts("item_id", item_ids, len(images)), _texts("labels", labels, len(images))
        _require_ids(ids)
        _require_scale(images, train, scale, ids)
        numbers = _numbers(names, classes, ids)
    images = images.round() if train.dtype.kind in "iu" else images
    return Split(images.astype(train.dtype), numbers, ids)


def _texts(name: str, array: np.ndarray, number: int) -> np.ndarray:
    """Texts or whole numbers, one for each image, as texts."""
    if array.shape != (number,):
        raise InputError(f"{name} of shape {array.shape}, expected one for each of {number:,} images")
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8", "replace")
    if array.dtype.kind not in "Uiu":
        raise InputError(f"{name} of type {array.dtype}, expected texts or integers")
    return array.astype(str)


def _require_ids(ids: np.ndarray) -> None:
    for at, name in enumerate(ids.tolist()):
        if not name.strip() or len(name) > LONGEST_ID or not name.isprintable():
            raise InputError(
                f"image {at} (counted from 0) has the item_id {shown(name)}, expected 1 to {LONGEST_ID:,} printable "
                "characters"
            )
    names, counts = np.unique(ids, return_counts=True)
    if counts.max() > 1:
        raise InputError(f"item_id {shown(str(names[np.argmax(counts)]))} is there twice")


def _require_scale(images: np.ndarray, train: np.ndarray, scale: float, ids: np.ndarray) -> None:
    """Refuses values that no image of the task has, and images whose range says that they are on another scale."""
    if train.dtype.kind in "iu":
        low, high = 0.0, scale
        if images.dtype.kind == "f" and images.max() <= 1 < scale:
            raise InputError(f"values up to {images.max():g}, those of the task go up to {scale:g}: multiply them")
    else:  # any images of the user's own, of which only those trained on say what is usual
        low, high = float(train.min()), float(train.max())
        low, high = low - (high - low), high + (high - low)
    outside = ~((images >= low) & (images <= high)).all(axis=(1, 2, 3))
    if outside.any():
        raise InputError(f"item {shown(str(ids[outside][0]))} has values outside of {low:g} to {high:g}")


def _numbers(labels: np.ndarray, classes: tuple[str, ...], ids: np.ndarray) -> np.ndarray:
    """The class of each image, by its name or its number."""
    number_of = {str(at): at for at in range(len(classes))} | {name.lower(): at for at, name in enumerate(classes)}
    found = [number_of.get(label.strip().lower(), -1) for label in labels.tolist()]
    if -1 in found:
        at = found.index(-1)
        raise InputError(
            f"item {shown(str(ids[at]))} has the label {shown(str(labels[at]))}, expected one of {', '.join(classes)}"
        )
    return np.array(found, np.int32)
