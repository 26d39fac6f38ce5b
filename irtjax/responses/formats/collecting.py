"""Right and wrong answers one by one, a part of a file at a time, as a matrix or in compressed rows."""

import array
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.compute

from irtjax.choices import LAST
from irtjax.errors import InputError, NotScoredError
from irtjax.responses.compressed_rows import answered_again, in_rows, kept_answers
from irtjax.responses.formats.answers import Answer
from irtjax.responses.matrix import MISSING, ResponseMatrix, as_ids, matrix_of, require_sound_ids
from irtjax.responses.sparse import SparseResponses, is_sparse
from irtjax.storage.sources import naming, shown
from irtjax.types import Bool, Int

AT_ONCE = 2**15  # answers of a part, where each is an object of Python
LARGE, SPARSE = 2**30, 1e-3  # cells, and the share of them with an answer, below which a matrix is a mistake
Place = Callable[[int], str]
T = TypeVar("T", bound=tuple[Any, ...])
InMemory = ResponseMatrix | SparseResponses


class Part(NamedTuple):
    """Answers that follow each other in a file.

    Attributes:
        subjects: (n,) who answered, as numbers of texts.
        items: (n,) what.
        codes: (n,) int8, 1 right, 0 wrong, -1 missing.
    """

    subjects: pyarrow.DictionaryArray
    items: pyarrow.DictionaryArray
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


def parts_of(answers: Iterable[Answer]) -> Iterator[Part]:
    """Some thousand answers at a time."""
    rest = iter(answers)
    while some := list(itertools.islice(rest, AT_ONCE)):
        places, subjects, items, codes = zip(*some, strict=True)
        name = places.__getitem__
        ids = numbered_ids(subjects, "subject", name), numbered_ids(items, "item", name)
        yield Part(*ids, np.array(codes, np.int8))


def numbered_ids(ids: Sequence[str], what: str, place: Place) -> pyarrow.DictionaryArray:
    """Ids of some answers by their positions among the different ones.

    Raises:
        InputError: one has a lone surrogate; names the place.
    """
    found: dict[str, int] = {}
    at = np.array([found.setdefault(one, len(found)) for one in ids], np.int32)
    try:
        return numbered(at, list(found), what)
    except InputError:
        for n, one in enumerate(ids):
            with naming(place(n)):
                as_ids([one], what)
        raise


def numbered(at: Int[np.ndarray, " n"], ids: list[str], what: str) -> pyarrow.DictionaryArray:
    """Ids by their positions among the different ones.

    Raises:
        InputError: one has a lone surrogate.
    """
    try:
        return pyarrow.DictionaryArray.from_arrays(at, pyarrow.array(ids, pyarrow.string()))
    except UnicodeEncodeError:
        as_ids(ids, what)  # which names it
        raise


def place_in(again: Callable[[], Iterable[Answer]]) -> Place:
    """What messages call an answer: the answers are gone through once more."""
    return lambda at: next(itertools.islice(again(), at, None))[0]


class Ids:
    """Who answered, or what, so far: different ids in the order of their first appearance, and which each answer has.

    Arrow holds the ids in few bytes each.
    """

    def __init__(self, what: str) -> None:
        self.what, self.different = what, pyarrow.array([], pyarrow.string())
        self.column = array.array("i")  # which grows where it is

    def add(self, column: pyarrow.DictionaryArray, place: Place) -> None:
        """Those of the next part.

        Raises:
            InputError: one is empty; names the place.
        """
        had, column = len(self.different), _in_order(column)
        before = pyarrow.DictionaryArray.from_arrays(pyarrow.array([], pyarrow.int32()), self.different)
        both = pyarrow.chunked_array([before, column]).unify_dictionaries()
        self.different, at = both.chunk(1).dictionary, both.chunk(1).indices.to_numpy()
        if (empty := pyarrow.compute.index(self.different[had:], "").as_py()) >= 0:
            number = len(self.column) + int(np.argmax(at == had + empty))
            raise InputError(f"{place(number)} has no {self.what} id")
        self.column.frombytes(memoryview(at.data).cast("B"))

    def positions(self) -> Int[np.ndarray, " N"]:
        """Of all answers."""
        return np.frombuffer(self.column, np.int32)


def go_through(parts: Iterable[T], add: Callable[[T], object], ids: tuple[Ids, Ids], place: Place) -> None:
    """Goes through parts; the memory of one is given back before the next is read.

    Args:
        parts: each with columns of subjects and of items.
        add: what else is done with a part.
        ids: to which those of the parts are added.
        place: of an answer, by its number.

    Raises:
        InputError: an answer lacks an id.
    """
    for part in parts:
        for own, column in zip(ids, part[:2], strict=True):
            own.add(column, place)
        add(part)
        del part, column
        pyarrow.default_memory_pool().release_unused()
    pyarrow.default_memory_pool().release_unused()  # of what read the last part


def _in_order(column: pyarrow.DictionaryArray) -> pyarrow.DictionaryArray:
    """The same, its different ids in the order of their first appearance, and no others."""
    at, ids = column.indices.to_numpy(), column.dictionary
    seen = pd.unique(at)
    places = np.zeros(len(ids), np.int32)
    places[seen] = np.arange(len(seen), dtype=np.int32)
    return pyarrow.DictionaryArray.from_arrays(places[at], ids.take(pyarrow.array(seen)).cast(pyarrow.string()))


def _add_codes(codes: array.array, part: Part) -> None:
    codes.frombytes(memoryview(part.codes.data).cast("B"))


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
    ids, codes = (Ids("subject"), Ids("item")), array.array("b")
    go_through(parts, functools.partial(_add_codes, codes), ids, place)
    columns = [ids[0].positions(), ids[1].positions(), np.frombuffer(codes, np.int8)]
    subject_ids, item_ids = ids[0].different, ids[1].different
    del ids, codes
    return _in_rows(subject_ids, item_ids, columns, place, repeats)


def _in_rows(
    subject_ids: pyarrow.StringArray,
    item_ids: pyarrow.StringArray,
    columns: list[np.ndarray],
    place: Place,
    repeats: str | None,
) -> Collected:
    """The answers, subject by subject; those that are missing are left out.

    Raises:
        NotScoredError: see `collect`.
    """
    subjects, items, codes = columns
    columns.clear()
    starts, order = in_rows(subjects, items, (len(subject_ids), len(item_ids)))
    del subjects
    items = items[order]
    if repeats is None and (again := answered_again(starts, items)).any():
        raise _repeated(subject_ids, item_ids, starts, items, order, again, place)
    codes = codes[order]
    del order
    if not (there := codes != MISSING).all():
        starts, items, codes = kept_answers(starts, items, codes, there)
    if repeats == LAST and (again := answered_again(starts, items)).any():
        starts, items, codes = kept_answers(starts, items, codes, ~np.append(again[1:], False))
    return Collected(subject_ids.to_pylist(), item_ids.to_pylist(), starts, items, codes)


def _repeated(
    subject_ids: pyarrow.StringArray,
    item_ids: pyarrow.StringArray,
    starts: Int[np.ndarray, " ends"],
    items: Int[np.ndarray, " N"],
    order: Int[np.ndarray, " N"],
    again: Bool[np.ndarray, " N"],
    place: Place,
) -> NotScoredError:
    """What is said of answers that are given again, of which the first in the file is named."""
    number = int(again.sum())
    at = int(np.flatnonzero(again)[np.argmin(order[again])])
    subject = subject_ids[int(np.searchsorted(starts, at, side="right")) - 1].as_py()
    first = "the only such response" if number == 1 else f"the first of {number:,} such responses"
    return NotScoredError(
        f"{place(int(order[at]))}: subject {shown(subject)} answers item {shown(item_ids[int(items[at])].as_py())} a "
        f"second time, {first}: keep one response (one trial) per subject and item, or take the last (`repeats=last`)"
    )


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
