"""What the formats share: codes of cells, ids that arrays can hold, a matrix from answers one by one."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from irtjax.errors import InputError
from irtjax.responses.matrix import MISSING, ResponseMatrix
from irtjax.storage.sources import shown
from irtjax.types import AnyArray, Shaped

Answer = tuple[str, str, str, int]  # place in the file, subject, item, code
Ids = Sequence[str] | Shaped[np.ndarray, " N"]
# A cell as written by us, by people, by pandas (whose columns turn to floats where a cell is empty) and by R.
CELLS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "": MISSING, "NA": MISSING, "NaN": MISSING}
CELLS |= {word: code for code, words in enumerate(("FALSE False false", "TRUE True true")) for word in words.split()}
ID_WORDS = {"id", "ids", "subject", "userid", "uuid", "model", "person", "student", "user", "respondent", "name"}
LARGE, SPARSE = 2**30, 1e-3  # responses, and the share of them that is not missing, below which a matrix is a mistake
PADDED, PADDING = 2**28, 10  # characters of ids as NumPy keeps them, and how often as many as were read


class Collected(NamedTuple):
    """Answers one by one, in the order of their first appearance.

    Attributes:
        subjects: ids, and the position of each.
        items: ids, and the position of each.
        codes: for each subject its answers, by the position of the item.
    """

    subjects: dict[str, int]
    items: dict[str, int]
    codes: list[dict[int, int]]


def gather(answers: Iterable[Answer]) -> ResponseMatrix:
    """The matrix of some answers; those that are not given are missing.

    Raises:
        InputError: see `collect` and `as_matrix`.
    """
    return as_matrix(collect(answers))


def collect(answers: Iterable[Answer]) -> Collected:
    """The answers, sorted by subject.

    Raises:
        InputError: an answer lacks an id, or answers are given again, such as trials; names the place of the first.
    """
    found = Collected({}, {}, [])
    first, repeats = "", 0
    for place, subject, item, code in answers:
        if not subject or not item:
            raise InputError(f"{place} has no {'item' if subject else 'subject'} id")
        row = found.subjects.setdefault(subject, len(found.subjects))
        if row == len(found.codes):
            found.codes.append({})
        column = found.items.setdefault(item, len(found.items))
        if column in found.codes[row]:
            first = first or f"{place}: subject {shown(subject)} answers item {shown(item)} a second time"
            repeats += 1
        found.codes[row][column] = code
    if repeats:
        number = "the only such response" if repeats == 1 else f"the first of {repeats:,} such responses"
        raise InputError(f"{first}, {number}: keep one response (one trial) per subject and item")
    return found


def as_matrix(found: Collected) -> ResponseMatrix:
    """The matrix of answers; those that are not given are missing.

    Raises:
        InputError: nearly all are missing from a large matrix, or ids are none that arrays can hold.
    """
    subjects, items, codes = found
    size, number = len(subjects) * len(items), sum(map(len, codes))
    if size > LARGE and number < size * SPARSE:
        raise InputError(
            f"{number:,} responses of {len(subjects):,} subjects to {len(items):,} items would take "
            f"{size / 2**30:.0f} GiB, nearly all of it missing: look for ids that are different in every row"
        )
    values = np.full((len(subjects), len(items)), MISSING, np.int8)
    for row, given in enumerate(codes):
        values[row, list(given)] = list(given.values())
    return matrix_of(values, list(subjects), list(items))


def matrix_of(values: AnyArray, subject_ids: Ids, item_ids: Ids) -> ResponseMatrix:
    """A matrix of what was read, once its ids are known to be some that arrays can hold.

    Raises:
        InputError: they are not, or see `ResponseMatrix`.
    """
    require_sound_ids(subject_ids, "subject")
    require_sound_ids(item_ids, "item")
    return ResponseMatrix(values, subject_ids, item_ids)


def refuse_responses_as_ids(name: str, ids: Iterable[str]) -> None:
    """Refuses a first column of a matrix that looks like an item: it has responses only, and no name of ids.

    Raises:
        InputError: says what to do; where 0 and 1 are ids indeed, too.
    """
    words = set(re.findall(r"[a-z]+", name.lower()))
    if words & ID_WORDS or not name.strip() or name.startswith("Unnamed"):
        return
    found = {cell.strip() for cell in ids}
    if found and found <= CELLS.keys():
        raise InputError(
            f"the first column, {shown(name)}, has only responses where subject ids belong: put a column subject_id "
            "with an id for each subject before it, or call it subject_id if these are ids"
        )


def require_sound_ids(ids: Ids, what: str) -> None:
    """Refuses ids that are empty, and one so long that an array of them, each as long as it, would be huge.

    Raises:
        InputError: names the position of the id, counted from 1.
    """
    lengths = np.char.str_len(ids) if isinstance(ids, np.ndarray) else np.fromiter(map(len, ids), int, len(ids))
    if not lengths.size:
        return
    if not lengths.all():
        raise InputError(f"{what} {int(lengths.argmin()) + 1} has no id")
    padded = int(lengths.max()) * lengths.size
    if padded > PADDED and padded > PADDING * int(lengths.sum()):
        at = int(lengths.argmax())
        raise InputError(f"{what} {at + 1} has an id of {lengths[at]:,} characters, {shown(ids[at])}: shorten it")
