"""Whether a task holds together: what a hand-built one gets wrong is said before anything is trained on it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.storage.sources import shown


def require_classes(name: str, classes: Sequence[str]) -> None:
    """Refuses classes that are not two names or more, each once.

    Raises:
        InputError: begins with the name of the task.
    """
    if isinstance(classes, str) or not all(isinstance(one, str) for one in classes):
        raise InputError(f"{name}: `classes` are {shown(classes)}, expected a tuple of names")
    if len(classes) < 2:
        raise InputError(f"{name}: {len(classes)} classes, expected 2 or more")
    twice = pd.Index(list(classes))
    if not twice.is_unique:
        raise InputError(f"{name}: two classes are called {shown(twice[twice.duplicated()][0])}")


def require_split(place: str, split: Any, num_classes: int, num_words: int | None, channels: Sequence[int]) -> None:
    """Refuses a split that networks could not be trained on.

    Args:
        place: names the task and the split in errors.
        split: a `Split`.
        num_classes: C.
        num_words: V, of a text task; None for images.
        channels: lengths of the mean and the deviation that the format has, by channel; empty for text.

    Raises:
        InputError: says what is wrong with it.
    """
    labels, ids = split.labels, split.ids
    _require_labels(place, labels, num_classes)
    if not isinstance(ids, np.ndarray) or ids.ndim != 1 or ids.dtype.kind not in "UOT":
        raise InputError(f"{place}: ids are {_kind(ids)}, expected an array of texts (N,)")
    arrays = split.inputs if isinstance(split.inputs, tuple) else (split.inputs,)
    if isinstance(split.inputs, tuple) != (num_words is not None):
        given, expected = ("a tuple", "images") if num_words is None else ("no tuple", "a tuple of sentences")
        raise InputError(f"{place}: inputs are {given}, and the format says that they are {expected}")
    for array in arrays:
        if num_words is None:
            _require_images(place, array, channels)
        else:
            _require_words(place, array, num_words)
    lengths = {"inputs": [len(array) for array in arrays], "ids": [len(ids)]}
    if split.texts is not None:
        lengths["texts"] = [len(split.texts)]
    for what, found in lengths.items():
        if set(found) != {len(labels)}:
            raise InputError(f"{place}: {len(labels)} labels, and {what} for {' and '.join(map(str, found))} examples")


def _require_labels(place: str, labels: Any, num_classes: int) -> None:
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "UOT" and labels.size:
        raise InputError(
            f"{place}: labels are texts such as {shown(str(labels.flat[0]))}, expected integers from 0 to "
            f"{num_classes - 1}; irtjax.tasks.from_arrays numbers them"
        )
    if np.ndim(labels) != 1 or getattr(labels, "dtype", np.dtype(object)).kind not in "iu":
        raise InputError(f"{place}: labels are {_kind(labels)}, expected an array of integers (N,)")
    wrong = np.flatnonzero((np.asarray(labels) < 0) | (np.asarray(labels) >= num_classes))
    if wrong.size:
        raise InputError(
            f"{place}: example {wrong[0]} has label {labels[wrong[0]]}, expected 0 to {num_classes - 1}, the numbers "
            "of the classes"
        )


def _require_images(place: str, images: Any, channels: Sequence[int]) -> None:
    shape, kind = np.shape(images), getattr(images, "dtype", np.dtype(object)).kind
    if len(shape) == 3:
        raise InputError(f"{place}: images {shape} have no channels: give inputs[..., None], {(*shape, 1)}")
    if len(shape) != 4 or kind not in "uif":
        advice = "; irtjax.tasks.from_arrays takes tables of features" if len(shape) == 2 else ""
        raise InputError(f"{place}: inputs are {_kind(images)}, expected images (N, height, width, channels){advice}")
    if wrong := [length for length in channels if length not in (1, shape[-1])]:
        raise InputError(f"{place}: images of {shape[-1]} channels, and a format of {wrong[0]}")
    if kind == "f":
        finite = np.isfinite(np.asarray(images)).reshape(len(images), -1).all(1)
        if not finite.all():
            raise InputError(f"{place}: example {int(np.argmin(finite))} has a value that is not finite")


def _require_words(place: str, words: Any, num_words: int) -> None:
    if np.ndim(words) != 2 or getattr(words, "dtype", np.dtype(object)).kind not in "iu":
        raise InputError(f"{place}: sentences are {_kind(words)}, expected integers (N, words)")
    if words.size and not 0 <= words.min() <= words.max() < num_words:
        wrong = words.min() if words.min() < 0 else words.max()
        raise InputError(f"{place}: a word has number {wrong}, and the vocabulary {num_words} words")


def require_ids(name: str, ids: Mapping[str, np.ndarray]) -> None:
    """Refuses an id that two examples have; the same array may serve several splits, which are then the same examples.

    Args:
        name: of the task.
        ids: of each split.

    Raises:
        InputError: names the id, and the splits.
    """
    own = {id(array): split for split, array in list(ids.items())[::-1]}
    splits = [split for split in ids if split in own.values()]
    every = pd.Index(np.concatenate([np.asarray(ids[split]).astype(object) for split in splits]))
    if every.is_unique:
        return
    where = np.repeat(splits, [len(ids[split]) for split in splits])
    twice = every[every.duplicated()][0]
    places = list(dict.fromkeys(where[every == twice].tolist()))
    found = f"of {' and of '.join(places)}" if len(places) > 1 else f"of {places[0]}, twice"
    raise InputError(f"{name}: two examples have the id {shown(twice)} ({found}): give each its own")


def _kind(value: Any) -> str:
    """What something is, as messages say it."""
    if isinstance(value, np.ndarray) or hasattr(value, "dtype"):
        return f"of type {value.dtype} and shape {tuple(value.shape)}"
    return f"a {type(value).__name__}"
