"""Labels of any kind as the numbers of classes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.storage.sources import shown

MOST_CLASSES = 1000  # more different labels are seldom classes
NAMES_SHOWN = 5
ClassNames = Sequence[Any] | Mapping[Any, Any] | None


def read_labels(labels: Any, place: Callable[[int], str]) -> np.ndarray:
    """Labels as an array (N,) of bool, of integers or, as objects, of texts without spaces around them.

    Args:
        labels: bools, integers or texts, in a list, an array or a column of a table.
        place: where a label stands, by its position, for errors.

    Raises:
        InputError: names the first one that is missing, or that is a number with a fraction or of another kind than the
            first.
    """
    if not hasattr(labels, "__len__") or isinstance(labels, str):
        raise InputError(f"labels are {shown(labels)}, expected one for each example")
    values = np.asarray(labels if hasattr(labels, "dtype") else list(labels), object)  # else 1 and "a" become texts
    if values.ndim != 1:
        advice = ": of columns of 0 and 1, give labels.argmax(1)" if values.ndim == 2 else ""
        raise InputError(f"labels of shape {values.shape}, expected one for each example{advice}")
    if not values.size:
        raise InputError("no examples")
    missing = pd.isna(values) | np.array([isinstance(value, str) and not value.strip() for value in values])
    if missing.any():
        raise InputError(f"{place(int(np.argmax(missing)))} has no label: leave it out, or give it one")
    kinds = [_kind(value) for value in values]
    for at, kind in enumerate(kinds):
        if kind == "a number with a fraction":
            raise InputError(
                f"{place(at)} has the label {values[at]!s}, a number with a decimal point: classes are integers "
                "or names; if these are classes, make them integers (astype(int))"
            )
        if kind is None or kind != kinds[0]:
            beside = "" if kind is None else f", where others are {kinds[0]}"
            raise InputError(
                f"{place(at)} has the label {shown(values[at])}{beside}: expected integers, names, or true and false"
            )
    if kinds[0] == "a name":
        return np.array([str(value).strip() for value in values], object)
    return values.astype(bool if kinds[0] == "true or false" else np.int64)


def _kind(value: Any) -> str | None:
    if isinstance(value, (bool, np.bool_)):
        return "true or false"
    if isinstance(value, (int, np.integer)):
        return "an integer"
    if isinstance(value, (float, np.floating)):
        return "a number with a fraction"
    return "a name" if isinstance(value, str) else None


def number_labels(
    labels: Sequence[np.ndarray], places: Sequence[Callable[[int], str]], class_names: ClassNames = None
) -> tuple[tuple[str, ...], list[np.ndarray]]:
    """The names of the classes, and the labels of all splits as their numbers.

    Without names, classes are the different labels, in order, called by themselves. A mapping gives each label its
    name. A sequence has the names of the numbers 0, 1, …; or those of as many other numbers, in their order; of labels
    that are names, it gives the order.

    Args:
        labels: of each split, from `read_labels`.
        places: where a label of each split stands.
        class_names: names, or None.

    Returns:
        C names, and (N,) int32 labels of each split.

    Raises:
        InputError: fewer than two classes, more than `MOST_CLASSES`, splits with labels of several kinds, or a label
            without a name.
    """
    if len({part.dtype.kind for part in labels}) > 1:
        kinds = {"b": "true and false", "i": "integers", "O": "names"}
        raise InputError(f"labels are {' in one split, '.join(kinds[part.dtype.kind] for part in labels)} in another")
    different = np.unique(np.concatenate(labels))
    named = _named(different.tolist(), class_names)
    number = {value: at for at, value in enumerate(named)}
    for part, place in zip(labels, places, strict=True):
        for at, value in enumerate(part.tolist()):
            if value not in number:
                raise InputError(f"{place(at)} has the label {shown(value)}, expected one of {_some(list(number))}")
    if len(named) < 2:
        raise InputError(f"all labels are {shown(different.tolist()[0])}, expected two classes or more")
    if len(named) > MOST_CLASSES:
        raise InputError(
            f"{len(named):,} different labels, such as {_some(list(named))}; expected at most {MOST_CLASSES:,}: are "
            "these classes?"
        )
    return tuple(named.values()), [np.array([number[value] for value in part.tolist()], np.int32) for part in labels]


def _named(different: list[Any], class_names: ClassNames) -> dict[Any, str]:
    """Labels in the order of the classes, with their names."""
    if class_names is None:
        return {value: str(value) for value in different}
    if isinstance(class_names, Mapping):
        return {value: str(name) for value, name in class_names.items()}
    names = [str(name) for name in class_names]
    if isinstance(different[0], str):
        return {name: name for name in names}
    if different[0] >= 0 and different[-1] < len(names):
        return dict(enumerate(names))
    if len(names) != len(different):
        raise InputError(
            f"{len(names)} `class_names`, and {len(different)} different labels from {different[0]} to {different[-1]}"
        )
    return dict(zip(different, names, strict=True))


def _some(values: list[Any]) -> str:
    """The first few values."""
    return ", ".join(map(str, values[:NAMES_SHOWN])) + (", …" if len(values) > NAMES_SHOWN else "")
