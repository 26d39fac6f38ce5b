"""Inputs of any usual form as texts, pairs of texts, features or images."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.storage.frames import as_frame
from irtjax.storage.sources import shown

Place = Callable[[int], str]


class Texts(NamedTuple):
    """N examples of one or two sentences: a list of N texts for each."""

    sentences: tuple[list[str], ...]


class Features(NamedTuple):
    """N examples as numbers: (N, F) float64, and the names of the columns."""

    values: np.ndarray
    columns: tuple[str, ...]


class Pictures(NamedTuple):
    """N images (N, H, W, channels), uint8 or float32, and the value that counts as one."""

    images: np.ndarray
    scale: float


Inputs = Texts | Features | Pictures
KINDS = {Texts: "texts", Features: "features", Pictures: "images"}


def read_inputs(inputs: Any, place: Place) -> Inputs:
    """Inputs of whatever form.

        ================================================  =========================================================
        a list, an array or a column of texts             texts
        a list of pairs of texts, two columns of texts    pairs of texts
        (N, F) numbers, a table of numbers                features
        (N, H, W) or (N, H, W, channels)                  images: uint8, integers from 0 to 255, or floating-point ones
        a list of images                                  images
        ================================================  =========================================================

    Args:
        inputs: N examples.
        place: where an example stands, by its position, for errors.

    Raises:
        InputError: names the example, and the column, that is missing, not finite, or of another kind or shape; or
            inputs are of none of these forms.
    """
    if not hasattr(inputs, "dtype"):  # columns of Polars are arrays, and its tables lists of columns
        inputs = as_frame(inputs, "inputs")
    if isinstance(inputs, pd.DataFrame):
        return _of_table(inputs, place)
    if not hasattr(inputs, "__len__") or isinstance(inputs, (str, bytes, dict)):
        raise InputError(f"inputs are {shown(inputs)}, expected texts, features (N, F) or images")
    if hasattr(inputs, "toarray"):
        raise InputError("inputs are a sparse matrix: give inputs.toarray()")
    if isinstance(inputs, tuple) and len(inputs) == 2 and all(_is_column(part) for part in inputs):
        return _pairs(list(inputs[0]), list(inputs[1]), place)
    found = list(inputs) if not hasattr(inputs, "dtype") else inputs
    if not len(found):
        raise InputError("no examples")
    if not hasattr(found, "dtype"):
        if isinstance(found[0], str) or found[0] is None:
            return Texts((_texts(found, place),))
        if isinstance(found[0], (list, tuple)) and len(found[0]) and isinstance(found[0][0], str):
            return _of_lists(found, place)
        found = _stacked(found, place)
    array = np.asarray(found)
    if array.dtype.kind == "S":
        raise InputError("inputs are bytes, expected texts: give [text.decode() for text in inputs]")
    if array.dtype.kind in "OUT" and isinstance(array.flat[0], str):
        columns = array.reshape(len(array), -1).T
        if array.ndim == 1 or len(columns) == 1:
            return Texts((_texts(columns[0].tolist(), place),))
        if array.ndim == 2 and len(columns) == 2:
            return _pairs(columns[0].tolist(), columns[1].tolist(), place)
        raise InputError(f"inputs are texts of shape {array.shape}, expected one or two columns")
    if array.dtype.kind == "O" and array.ndim == 1:
        return Texts((_texts(array.tolist(), place),))
    if array.ndim == 2:
        return _of_table(pd.DataFrame(array), place)
    if array.ndim in (3, 4):
        return _pictures(array, place)
    advice = ": of one feature, give inputs[:, None]" if array.ndim == 1 else ""
    raise InputError(
        f"inputs of type {array.dtype} and shape {array.shape}, expected texts, features (N, F) or images "
        f"(N, height, width, channels){advice}"
    )


def _is_column(part: Any) -> bool:
    """Whether a part of a tuple is a column of texts, not one text and no array of numbers."""
    return (
        not isinstance(part, str) and hasattr(part, "__len__") and len(part) > 0 and isinstance(next(iter(part)), str)
    )


def _of_lists(rows: Sequence[Sequence[Any]], place: Place) -> Texts:
    for at, row in enumerate(rows):
        if not isinstance(row, (list, tuple)) or len(row) != len(rows[0]):
            raise InputError(f"{place(at)} is {shown(row)}, expected {len(rows[0])} texts as the first has")
    if len(rows[0]) > 2:
        raise InputError(f"examples of {len(rows[0])} texts, expected one or two")
    if len(rows[0]) == 1:
        return Texts((_texts([row[0] for row in rows], place),))
    return _pairs([row[0] for row in rows], [row[1] for row in rows], place)


def _pairs(first: list[Any], second: list[Any], place: Place) -> Texts:
    if len(first) != len(second):
        raise InputError(f"pairs of {len(first)} first and {len(second)} second texts")
    return Texts((_texts(first, place), _texts(second, place)))


def _texts(values: list[Any], place: Place) -> list[str]:
    for at, value in enumerate(values):
        if not isinstance(value, str):
            missing = value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value))
            what = "has no text: leave it out" if missing else f"is {shown(value)}, expected a text as others are"
            raise InputError(f"{place(at)} {what}")
    return [str(value) for value in values]


def _stacked(parts: list[Any], place: Place) -> np.ndarray:
    """Examples that are arrays or images one by one, as one array."""
    arrays = [np.asarray(part) for part in parts]
    for at, array in enumerate(arrays):
        if array.shape != arrays[0].shape:
            raise InputError(
                f"{place(at)} has the shape {array.shape}, the first one {arrays[0].shape}: bring all to one size"
            )
    return np.stack(arrays)


def _of_table(table: pd.DataFrame, place: Place) -> Inputs:
    if not table.shape[1] or not len(table):
        raise InputError(f"a table of {len(table)} rows and {table.shape[1]} columns has no inputs")
    columns = [table.iloc[:, at] for at in range(table.shape[1])]
    if table.shape[1] <= 2 and all(isinstance(column.iloc[0], str) for column in columns):
        texts = tuple(_texts(column.tolist(), place) for column in columns)
        return Texts(texts)
    names = tuple(map(str, table.columns))
    values = np.empty(table.shape)
    for at, (column, name) in enumerate(zip(columns, names, strict=True)):
        try:
            if column.dtype.kind in "mMc":
                raise TypeError
            values[:, at] = pd.to_numeric(column).to_numpy(float, na_value=np.nan)
        except (ValueError, TypeError):
            numbers = pd.to_numeric(column, errors="coerce") if column.dtype.kind not in "mMc" else column
            wrong = int(np.argmax((numbers.isna() & column.notna()).to_numpy()))
            raise InputError(
                f"{place(wrong)}, column {name}: {shown(str(column.iloc[wrong]))} is not a number; leave the column "
                "out, or give each of its words a column of 0 and 1 (pandas.get_dummies)"
            ) from None
        bad = ~np.isfinite(values[:, at])
        if bad.any():
            row = int(np.argmax(bad))
            what = "no value" if np.isnan(values[row, at]) else f"{values[row, at]}, which is not finite"
            raise InputError(f"{place(row)}, column {name}: {what}; fill it in, or leave the row or the column out")
    return Features(values, names)


def _pictures(images: np.ndarray, place: Place) -> Pictures:
    if images.dtype.kind not in "buif":
        raise InputError(f"inputs of type {images.dtype} and shape {images.shape}, expected images of numbers")
    if images.ndim == 3:
        images = images[..., None]
    if images.shape[1] in (1, 3) and images.shape[3] > 4 and images.shape[2] > 4:
        raise InputError(
            f"images {images.shape} have their channels first, expected (N, height, width, channels): give "
            "numpy.moveaxis(inputs, 1, -1)"
        )
    if images.dtype == bool:
        return Pictures(images.astype(np.uint8), 1.0)
    if images.dtype.kind in "iu" and images.min() >= 0 and images.max() <= 255:
        return Pictures(np.asarray(images, np.uint8), 255.0)
    with np.errstate(over="ignore"):  # infinite then, which is said
        images = np.asarray(images, np.float32)
    finite = np.isfinite(images).reshape(len(images), -1).all(1)
    if not finite.all():
        raise InputError(f"{place(int(np.argmin(finite)))} has a pixel that is missing or not finite")
    return Pictures(images, 1.0)
