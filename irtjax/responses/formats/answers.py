"""What the formats share: codes of cells, and a matrix from answers one by one."""

import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from irtjax.errors import InputError, NotScoredError
from irtjax.responses.matrix import MISSING, ResponseMatrix, matrix_of
from irtjax.storage.sources import shown

Answer = tuple[str, str, str, int]  # place in the file, subject, item, code
# A cell as written by us, by people, by pandas (whose columns turn to floats where a cell is empty) and by R.
CELLS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "": MISSING, "NA": MISSING, "NaN": MISSING}
CELLS |= {word: code for code, words in enumerate(("FALSE False false", "TRUE True true")) for word in words.split()}
ID_WORDS = {"id", "ids", "subject", "userid", "uuid", "model", "person", "student", "user", "respondent", "name"}
LARGE, SPARSE = 2**30, 1e-3  # responses, and the share of them that is not missing, below which a matrix is a mistake


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
        InputError: an answer lacks an id.
        NotScoredError: answers are given again, such as trials; names the place of the first.
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
        raise NotScoredError(f"{first}, {number}: keep one response (one trial) per subject and item")
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
