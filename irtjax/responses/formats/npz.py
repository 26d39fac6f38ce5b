"""NPZ files of responses: three arrays, never unpickled."""

import warnings
import zipfile
from pathlib import Path

import numpy as np

from irtjax.errors import InputError
from irtjax.responses.formats.answers import matrix_of
from irtjax.responses.matrix import ResponseMatrix
from irtjax.storage.sources import one_line

ARRAYS = ("responses", "subject_ids", "item_ids")


def read(path: Path) -> ResponseMatrix:
    """The matrix of an NPZ file, see `read_responses`."""
    values, *ids = _arrays(path)
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


def _arrays(path: Path) -> list[np.ndarray]:
    try:
        with warnings.catch_warnings(), path.open("rb") as file, zipfile.ZipFile(file) as archive:
            warnings.simplefilter("ignore")  # of headers that old versions of NumPy wrote
            names = archive.namelist()
            missing = [name for name in ARRAYS if f"{name}.npy" not in names]
            arrays = [] if missing else [_array(archive, f"{name}.npy") for name in ARRAYS]
    except Exception as error:  # whatever zipfile, its decoders and NumPy raise on damaged files
        raise InputError(f"not an NPZ file of plain arrays ({one_line(error)})") from error
    if missing:
        raise InputError(f"has no array {missing[0]}; expected {', '.join(ARRAYS)}")
    if len(set(names)) < len(names):
        raise InputError("has an array twice")
    return arrays


def _array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """An array, read to the end of its member, where the checksum is compared; `numpy.load` may stop before."""
    with archive.open(name) as member:
        array = np.lib.format.read_array(member, allow_pickle=False)
        if member.read(1):
            raise ValueError(f"{name} has more bytes than its header says")
    return array


def _texts(ids: np.ndarray, name: str) -> list[str]:
    try:
        return ids.astype(str).tolist()
    except (ValueError, SystemError) as error:  # bytes that are not ASCII; numbers that are no character
        raise InputError(f"{name} hold something that is no text ({one_line(error)})") from error
