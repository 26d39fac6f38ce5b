"""Right and wrong answers one by one, a part of a file at a time, as a matrix or in compressed rows."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from irtjax.errors import InputError, NotScoredError
from irtjax.responses.formats.answers import Answer
from irtjax.responses.matrix import MISSING, ResponseMatrix, matrix_of, require_sound_ids
from irtjax.responses.sparse import SparseResponses, answered_again, is_sparse, kept_answers, order_of
from irtjax.storage.sources import shown
from irtjax.types import Int

LAST = "last"  # of several answers of a subject to an item
AT_ONCE = 2**16  # answers of a part, where each is an object of Python
LARGE, SPARSE = 2**30, 1e-3  # cells, and the share of them with an answer, below which a matrix is a mistake
Place = Callable[[int], str]
InMemory = ResponseMatrix | SparseResponses


class Part(NamedTuple):
    """Answers that follow each other in a file, by their positions in ids of their own.

    Attributes:
        subjects: (n,) who answered.
        subject_ids: in the order of their first appearance.
        items: (n,) what.
        item_ids: in the order of their first appearance.
        codes: (n,) 1 right, 0 wrong, -1 missing.
    """

    subjects: Int[np.ndarray, " n"]
    subject_ids: list[str]
    items: Int[np.ndarray, " n"]
    item_ids: list[str]
    codes: Int[np.ndarray, " n"]


class Collected(NamedTuple):
    """All answers, in compressed rows; ids in the order of their first appearance.

    Attributes:
        subject_ids: J texts; some may have no answers.
        item_ids: I texts.
        starts: (J + 1,) where the answers of each subject begin.
        items: (N,) int32.
        codes: (N,) int8, 1 right, 0 wrong.
    """

    subject_ids: list[str]
    item_ids: list[str]
    starts: Int[np.ndarray, " rows"]
    items: Int[np.ndarray, " N"]
    codes: Int[np.ndarray, " N"]


class How(NamedTuple):
    """How answers one by one are held.

    Attributes:
        sparse: whether in compressed rows; None where `is_sparse` says so.
        repeats: "last": the last answer of a subject to an item that is not missing counts; None: there is but one.
    """

    sparse: bool | None = None
    repeats: str | None = None


AS_IT_COMES = How()


def gather(again: Callable[[], Iterable[Answer]], how: How = AS_IT_COMES) -> InMemory:
    """The responses of some answers; those that are not given are missing.

    Args:
        again: the answers, from the first.
        how: they are held.

    Raises:
        InputError: see `collect` and `as_held`.
    """
    return as_held(collect(parts_of(again()), place_in(again), how.repeats), how.sparse)


def parts_of(answers: Iterable[Answer]) -> Iterator[Part]:
    """Some thousand answers at a time."""
    rest = iter(answers)
    while some := list(itertools.islice(rest, AT_ONCE)):
        _, subjects, items, codes = zip(*some, strict=True)
        yield Part(*positions(subjects), *positions(items), np.array(codes, np.int8))


def place_in(again: Callable[[], Iterable[Answer]]) -> Place:
    """What messages call an answer: the answers are gone through once more."""
    return lambda at: next(itertools.islice(again(), at, None))[0]


def positions(ids: Iterable[str]) -> tuple[Int[np.ndarray, " n"], list[str]]:
    """The position of each id among the different ones, in the order of their first appearance."""
    found: dict[str, int] = {}
    at = [found.setdefault(one, len(found)) for one in ids]
    return np.array(at, np.int32), list(found)


def collect(parts: Iterable[Part], place: Place, repeats: str | None = None) -> Collected:
    """All answers of some parts. It takes up to three times as much memory as these.

    Args:
        parts: of a file.
        place: of an answer, by its number.
        repeats: as of `How`.

    Raises:
        InputError: an answer lacks an id.
        NotScoredError: answers are given again, such as trials; names the place of the first.
    """
    known: tuple[dict[str, int], dict[str, int]] = {}, {}
    columns: tuple[list[np.ndarray], ...] = [], [], []
    number = 0
    for part in parts:
        for what, ids, own, column, at in (
            ("subject", known[0], part.subject_ids, columns[0], part.subjects),
            ("item", known[1], part.item_ids, columns[1], part.items),
        ):
            if "" in own:
                raise InputError(f"{place(number + int(np.argmax(at == own.index(''))))} has no {what} id")
            column.append(np.array([ids.setdefault(one, len(ids)) for one in own], np.int32)[at])
        columns[2].append(np.asarray(part.codes, np.int8))
        number += len(part.codes)
    subject_ids, item_ids = map(list, known)
    del known
    return _in_rows(subject_ids, item_ids, [_joined(column) for column in columns], place, repeats)


def _joined(arrays: list[np.ndarray]) -> np.ndarray:
    """The arrays as one; they are let go of, so that the next column finds room."""
    joined = np.concatenate(arrays) if arrays else np.zeros(0, np.int32)
    arrays.clear()
    return joined


def _in_rows(
    subject_ids: list[str], item_ids: list[str], columns: list[np.ndarray], place: Place, repeats: str | None
) -> Collected:
    """The answers, subject by subject; those that are missing are left out.

    Raises:
        NotScoredError: see `collect`.
    """
    subjects, items, codes = columns
    columns.clear()
    order = order_of(subjects, items, (len(subject_ids), len(item_ids)))
    lengths = np.bincount(subjects, minlength=len(subject_ids))
    del subjects
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    items = items[order]
    if repeats is None and (again := answered_again(starts, items)).any():
        first = int(order[again].min())
        j = int(np.searchsorted(starts, np.flatnonzero(order == first)[0], side="right")) - 1
        item = item_ids[items[order == first][0]]
        once = int(again.sum()) == 1
        number = "the only such response" if once else f"the first of {int(again.sum()):,} such responses"
        raise NotScoredError(
            f"{place(first)}: subject {shown(subject_ids[j])} answers item {shown(item)} a second time, {number}: "
            "keep one response (one trial) per subject and item"
        )
    codes = codes[order]
    del order
    if not (there := codes != MISSING).all():
        starts, items, codes = kept_answers(starts, items, codes, there)
    if repeats == LAST and (again := answered_again(starts, items)).any():
        starts, items, codes = kept_answers(starts, items, codes, ~np.append(again[1:], False))
    return Collected(subject_ids, item_ids, starts, items, codes)


def as_held(found: Collected, sparse: bool | None = None) -> InMemory:
    """The responses: a matrix, or in compressed rows, as asked or by `is_sparse`.

    Raises:
        InputError: ids are none that arrays can hold; nearly all cells are missing from a large matrix that was asked
            for; all are missing from compressed rows; or no subject, or no item, is there twice in a large table.
    """
    num_subjects, num_items, number = len(found.subject_ids), len(found.item_ids), len(found.items)
    size = num_subjects * num_items
    what = f"{number:,} responses of {num_subjects:,} subjects to {num_items:,} items"
    for ids, kind in ((found.subject_ids, "subject"), (found.item_ids, "item")):
        if sparse is None and size > LARGE and number <= len(ids):
            raise InputError(
                f"{what}: no {kind} has two of them: look for ids that are different in every row, or pass "
                "`sparse=True` if these are none"
            )
    if sparse or (sparse is None and is_sparse(number, num_subjects, num_items)):
        for ids, kind in ((found.subject_ids, "subject"), (found.item_ids, "item")):
            require_sound_ids(ids, kind)
        if size and not number:
            raise InputError("all responses are missing")
        return SparseResponses(found.starts, found.items, found.codes, found.subject_ids, found.item_ids)
    if size > LARGE and number < size * SPARSE:
        raise InputError(
            f"{what} would take {size / 2**30:.0f} GiB, nearly all of it missing: leave out `sparse=False`, or look "
            "for ids that are different in every row"
        )
    values = np.full((num_subjects, num_items), MISSING, np.int8)
    values[np.repeat(np.arange(num_subjects), np.diff(found.starts)), found.items] = found.codes
    return matrix_of(values, found.subject_ids, found.item_ids)
