"""NPZ files of responses: three arrays, or five of single answers, never unpickled."""

from pathlib import Path

import numpy as np

from irtjax.choices import TRIALS
from irtjax.errors import InputError, NotScoredError
from irtjax.responses.formats.collecting import InMemory
from irtjax.responses.formats.given import Given, of_array, of_sparse, with_trials
from irtjax.responses.matrix import matrix_of, require_sound_ids
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.stored import StoredResponses
from irtjax.responses.values import Responses
from irtjax.storage.archives import ArrayInArchive, names_of_arrays, read_arrays
from irtjax.storage.sources import naming, one_line
from irtjax.types import Int

RESPONSES = "responses"
SINGLE = ("starts", "items", "answers")  # as of `SparseResponses`
IDS = ("subject_ids", "item_ids")


def read(path: Path) -> InMemory:
    """The responses of an NPZ file, see `read_responses`."""
    if _has(path, SINGLE[0]):
        return _read_single(path)
    values, *ids = read_arrays(path, (RESPONSES, *IDS)).values()
    if _has(path, TRIALS):
        raise NotScoredError(f"has an array {TRIALS}, so that its responses are counts")
    _freeze(values)  # no one else has it, so that it need not be copied
    return matrix_of(values, *_texts(*ids))


def _read_single(path: Path) -> SparseResponses:
    """Single answers.

    Raises:
        InputError: the arrays do not go together.
    """
    starts, items, answers, *ids = read_arrays(path, (*SINGLE, *IDS)).values()
    subject_ids, item_ids = _texts(*ids)
    for what, names in (("subject", subject_ids), ("item", item_ids)):
        require_sound_ids(names, what)
    for name, array in zip(SINGLE, (starts, items, answers), strict=True):
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise InputError(f"{name} are of type {array.dtype} and shape {array.shape}, expected integers in a row")
    if len(answers) != len(items):
        raise InputError(f"{len(items):,} items and {len(answers):,} answers, expected as many")
    starts = starts.astype(np.int64, copy=False)  # differences of unsigned numbers are never below 0
    found = SparseResponses(starts, items, answers, subject_ids, item_ids)
    begins = np.isin(np.arange(found.num_answers), found.starts)
    if (np.diff(found.items, prepend=-1)[~begins] <= 0).any():
        raise InputError("the items of a subject do not rise")
    return found


def read_given(path: Path) -> Given:
    """The responses of an NPZ file as they were given; with an array of trials they are counts of these."""
    if _has(path, SINGLE[0]):
        return of_sparse(_read_single(path))
    values, *ids = read_arrays(path, (RESPONSES, *IDS)).values()
    given = of_array(values, *_texts(*ids))
    return with_trials(given, read_arrays(path, (TRIALS,))[TRIALS]) if _has(path, TRIALS) else given


def _has(path: Path, name: str) -> bool:
    return name in names_of_arrays(path)


def open_npz(path: Path) -> Responses:
    """The responses of an NPZ file, of which only the ids are read; single answers are all read."""
    if _has(path, SINGLE[0]):
        return _read_single(path)
    subjects, items = _texts(*read_arrays(path, IDS).values())
    if _has(path, TRIALS):
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


def write(responses: InMemory, path: Path) -> None:
    """Writes a matrix, or single answers, as NPZ."""
    if isinstance(responses, SparseResponses):
        np.savez_compressed(path, **{name: getattr(responses, name) for name in (*SINGLE, *IDS)})
        return
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
