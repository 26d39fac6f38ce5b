"""NPZ files of responses: three arrays, never unpickled."""

from pathlib import Path

import numpy as np

from irtjax.errors import InputError, NotScoredError
from irtjax.responses.formats.given import Given, of_array, with_trials
from irtjax.responses.formats.long_tables import TRIALS
from irtjax.responses.matrix import ResponseMatrix, matrix_of, require_sound_ids
from irtjax.responses.stored import StoredResponses
from irtjax.storage.archives import ArrayInArchive, read_arrays
from irtjax.storage.sources import naming, one_line
from irtjax.types import Int

RESPONSES = "responses"
IDS = ("subject_ids", "item_ids")


def read(path: Path) -> ResponseMatrix:
    """The matrix of an NPZ file, see `read_responses`."""
    values, *ids = read_arrays(path, (RESPONSES, *IDS)).values()
    if _has_trials(path):
        raise NotScoredError(f"has an array {TRIALS}, so that its responses are counts")
    _freeze(values)  # no one else has it, so that it need not be copied
    return matrix_of(values, *_texts(*ids))


def read_given(path: Path) -> Given:
    """The responses of an NPZ file as they were given; with an array of trials they are counts of these."""
    values, *ids = read_arrays(path, (RESPONSES, *IDS)).values()
    given = of_array(values, *_texts(*ids))
    return with_trials(given, read_arrays(path, (TRIALS,))[TRIALS]) if _has_trials(path) else given


def _has_trials(path: Path) -> bool:
    with np.load(path, allow_pickle=False) as archive:
        return TRIALS in archive.files


def open_npz(path: Path) -> StoredResponses:
    """The responses of an NPZ file, of which only the ids are read."""
    subjects, items = _texts(*read_arrays(path, IDS).values())
    if _has_trials(path):
        raise NotScoredError(f"has an array {TRIALS}, so that its responses are counts")
    require_sound_ids(subjects, "subject")
    require_sound_ids(items, "item")
    return StoredResponses(Archive(path), np.array(subjects), np.array(items))


class Archive:
    """The responses in an NPZ file; a portion is read row by row, and held in memory.

    Attributes:
        name: the file.
        shape: J and I.
        by_item: False.
    """

    by_item = False

    def __init__(self, path: Path) -> None:
        self.name, self._array = str(path), ArrayInArchive(path, RESPONSES)
        shape = self._array.shape
        if len(shape) != 2:
            raise InputError(f"responses have shape {shape}, expected two dimensions")
        self.shape = shape[0], shape[1]

    def read(self, rows: range, columns: range) -> Int[np.ndarray, "_ _"]:
        """A part of it."""
        with naming(self.name):
            return self._array.read(rows, columns, np.int8)


def write(responses: ResponseMatrix, path: Path) -> None:
    """Writes a matrix as NPZ."""
    np.savez_compressed(
        path, responses=responses.values, subject_ids=responses.subject_ids, item_ids=responses.item_ids
    )


def _texts(*ids: np.ndarray) -> list[list[str]]:
    for name, array in zip(IDS, ids, strict=True):
        if array.ndim != 1 or array.dtype.kind not in "USiu":
            raise InputError(f"{name} are of type {array.dtype} and shape {array.shape}, expected texts in a row")
    return [_text(array, name) for name, array in zip(IDS, ids, strict=True)]


def _text(ids: np.ndarray, name: str) -> list[str]:
    try:
        return ids.astype(str).tolist()
    except (ValueError, SystemError) as error:  # bytes that are not ASCII; numbers that are no character
        raise InputError(f"{name} hold something that is no text ({one_line(error)})") from error


def _freeze(array: np.ndarray) -> None:
    """No one can write to the array any more."""
    owner = array
    while isinstance(owner, np.ndarray):
        owner.setflags(write=False)
        owner = owner.base  # type: ignore[assignment]
