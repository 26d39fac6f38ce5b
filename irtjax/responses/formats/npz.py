"""NPZ files of responses: three arrays, never unpickled."""

from pathlib import Path

import numpy as np

from irtjax.errors import InputError
from irtjax.responses.formats.answers import matrix_of
from irtjax.responses.matrix import ResponseMatrix
from irtjax.storage.archives import read_arrays
from irtjax.storage.sources import one_line

ARRAYS = ("responses", "subject_ids", "item_ids")


def read(path: Path) -> ResponseMatrix:
    """The matrix of an NPZ file, see `read_responses`."""
    values, *ids = read_arrays(path, ARRAYS).values()
    for name, array in zip(ARRAYS[1:], ids, strict=True):
        if array.ndim != 1 or array.dtype.kind not in "USiu":
            raise InputError(f"{name} are of type {array.dtype} and shape {array.shape}, expected texts in a row")
    subjects, items = (_texts(array, name) for name, array in zip(ARRAYS[1:], ids, strict=True))
    return matrix_of(values, subjects, items)


def write(responses: ResponseMatrix, path: Path) -> None:
    """Writes a matrix as NPZ."""
    np.savez_compressed(
        path, responses=responses.values, subject_ids=responses.subject_ids, item_ids=responses.item_ids
    )


def _texts(ids: np.ndarray, name: str) -> list[str]:
    try:
        return ids.astype(str).tolist()
    except (ValueError, SystemError) as error:  # bytes that are not ASCII; numbers that are no character
        raise InputError(f"{name} hold something that is no text ({one_line(error)})") from error
