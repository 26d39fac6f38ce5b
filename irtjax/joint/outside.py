"""Examples that are of none of a task's classes, and how well they are told from those that are."""

from collections.abc import Sequence

import numpy as np
from sklearn.metrics import roc_auc_score

from irtjax.errors import InputError
from irtjax.networks import is_table
from irtjax.tasks import Task, load
from irtjax.tasks.extra_items import in_words_of
from irtjax.tasks.item_texts import ItemTexts
from irtjax.tasks.task import ImageFormat, Split, TextFormat
from irtjax.types import AnyArray, Float

MNIST_BOX = 20  # pixels that a digit of 28 × 28 is drawn in


def has_images(task: Task) -> bool:
    """Whether examples are images, not texts or rows of features."""
    return isinstance(task.format, ImageFormat) and not is_table(task)


def outside_images(task: Task, seed: int = 0) -> dict[str, Split]:
    """Images that a network for the task should be doubtful of; their labels mean nothing.

        =======  ====================================================================================
        rotated  the test images by a right angle
        noise    as many images of independent pixels, uniform over all values
        digits   scikit-learn's digits, drawn as large as those of `mnist`; for gray images of 28 × 28
        =======  ====================================================================================

    Raises:
        InputError: the task has no images.
    """
    if not has_images(task):
        raise InputError(f"{task.name} has no images")
    assert isinstance(task.format, ImageFormat)
    images = np.asarray(task.test.inputs)
    values = np.random.default_rng(seed).integers(0, int(task.format.scale) + 1, images.shape)
    found = {"rotated": np.rot90(images, axes=(1, 2)), "noise": values.astype(images.dtype)}
    if images.shape[1:] == (28, 28, 1):
        found["digits"] = _large_digits(task.format.scale).astype(images.dtype)
    return {name: _unlabelled(array, name) for name, array in found.items()}


def _large_digits(scale: float) -> np.ndarray:
    from scipy.ndimage import zoom  # takes a while to import, and few need it

    small = load("digits")
    images = np.concatenate([small.split(name).inputs for name in small.splits])[..., 0].astype(float)
    large = np.clip(zoom(images, (1, MNIST_BOX / 8, MNIST_BOX / 8), order=1), 0, 16) * scale / 16
    margin = (28 - MNIST_BOX) // 2
    return np.pad(large, ((0, 0), (margin, margin), (margin, margin)))[..., None]


def outside_texts(task: Task, items: ItemTexts) -> Split:
    """Texts in the words of a task, of as many sentences each; their labels mean nothing.

    Raises:
        InputError: the task has no texts, or ones of another number of sentences.
    """
    if not isinstance(task.format, TextFormat):
        raise InputError(f"{task.name} has no texts")
    expected = task.format.sentences
    if len(items.sentences) != expected:
        raise InputError(f"{len(items.sentences)} sentences per item, those of {task.name} have {expected}")
    inputs = in_words_of(task.format, items.sentences)
    return Split(inputs, np.zeros(len(items.ids), np.int32), items.ids, items.shown())


def _unlabelled(images: np.ndarray, name: str) -> Split:
    ids = np.array([f"{name}_{at}" for at in range(len(images))])
    return Split(np.ascontiguousarray(images), np.zeros(len(images), np.int32), ids)


def auc(inside: Float[AnyArray, " N"], outside: Float[AnyArray, " M"]) -> float:
    """The chance that an example from outside has a larger score than one from inside; ties count half."""
    scores: Sequence[np.ndarray] = [np.asarray(inside, float), np.asarray(outside, float)]
    return float(roc_auc_score(np.repeat([0, 1], [part.size for part in scores]), np.concatenate(scores)))
