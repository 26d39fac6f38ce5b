"""Responses as they were given, out of tables with one row per response, a part at a time."""

import array
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow

from irtjax.errors import InputError
from irtjax.responses.formats.cells import MOST_DIFFERENT, Cells, coded, numbers_of, objects, plain
from irtjax.responses.formats.collecting import AT_ONCE, Ids, Place, go_through, numbered_ids, place_in
from irtjax.responses.formats.given import MOST_TRIALS, Given, require_some
from irtjax.storage.sources import shown
from irtjax.types import Bool, Int

MISSING = -1


class Answer(NamedTuple):
    """A response in a table with one row per response.

    Attributes:
        place: in the file.
        subject: its id.
        item: its id.
        cell: the response as it was given.
        trials: the cell that says how many it is of.
        facet: the cell that says who judged it.
    """

    place: str
    subject: str
    item: str
    cell: Any
    trials: Any = None
    facet: Any = None


class Rows(NamedTuple):
    """Rows that follow each other in a table; columns as of `Answer`.

    Attributes:
        subjects: (n,) who answered, as numbers of texts.
        items: (n,) what.
        cells: n responses.
        trials: n cells; None where there is no such column.
        facet: n cells; None where there is no such column.
    """

    subjects: pyarrow.DictionaryArray
    items: pyarrow.DictionaryArray
    cells: Cells
    trials: Cells | None = None
    facet: Cells | None = None


def of_answers(again: Callable[[], Iterable[tuple[Any, ...]]]) -> Given:
    """Of answers (`Answer`), in the order of their first appearance.

    Args:
        again: the answers, from the first.

    Raises:
        InputError: as `of_rows`.
    """
    return of_rows(_rows_of(again()), place_in(again))


def _rows_of(answers: Iterable[tuple[Any, ...]]) -> Iterator[Rows]:
    """Some thousand answers at a time."""
    rest = iter(answers)
    while some := [Answer(*one) for one in itertools.islice(rest, AT_ONCE)]:
        places, subjects, items, *columns = zip(*some, strict=True)
        ids = (numbered_ids(*of, places.__getitem__) for of in ((subjects, "subject"), (items, "item")))
        yield Rows(*ids, *(None if column[0] is None and at else coded(column) for at, column in enumerate(columns)))


def of_rows(parts: Iterable[Rows], place: Place) -> Given:
    """Of parts of a table, in the order of the first appearance. It takes about as much memory as the responses.

    Args:
        parts: of a table.
        place: of a response, by the number of its row.

    Raises:
        InputError: a response lacks an id, or an id is none that arrays can hold; trials that are none; or a text among
            more different numbers than are held by themselves.
    """
    ids, cells = (Ids("subject"), Ids("item")), _Cells(place)
    trials, facets = array.array("i"), _Facets(place)

    def add(part: Rows) -> None:
        first = len(cells)
        there = cells.add(part.cells)
        if part.trials is not None:
            trials.frombytes(_trials(part.trials, there, first, place).tobytes())
        if part.facet is not None:
            facets.add(part.facet, there, first)

    go_through(parts, add, ids, place)
    found, there = cells.found()
    columns = [own.positions() for own in ids]
    columns += [np.frombuffer(each, np.int32) for each in (trials, facets.column)]
    names = [own.different.to_pylist() for own in ids]
    if not there.all():
        found = found.some(there)
        for at, column in enumerate(columns):
            columns[at] = column[there] if len(column) else column
    subjects, items, *rest = columns
    of_trials, of_facets = (column if len(column) else None for column in rest)
    return require_some(Given(*names, subjects, items, found, of_trials, of_facets, [*facets.known]))  # type: ignore[call-arg]


class _Cells:
    """Cells so far: each different one once, and which of them each row has; or all, if they are too many numbers."""

    def __init__(self, place: Place) -> None:
        self.place, self.known = place, dict[tuple[type, Any], int]()  # the cells, in the order of their numbers
        self.column: array.array[Any] = array.array("i")
        self.has_text = False

    def __len__(self) -> int:
        return len(self.column)

    def add(self, part: Cells) -> Bool[np.ndarray, " n"]:
        """Those of the next part; whether each is there, or missing.

        Raises:
            InputError: see `of_rows`.
        """
        own = [plain(cell) for cell in part.different.tolist()]
        missing = np.array([cell is None for cell in own], bool)
        if self.column.typecode == "i":
            codes = [
                MISSING if one is None else self.known.setdefault((type(one), one), len(self.known)) for one in own
            ]
            self._extend(np.array(codes, np.int32), part)
            if len(self.known) > MOST_DIFFERENT and not self.has_text:
                self._turn_to_numbers()
        else:
            numbers = numbers_of(objects(own))
            if (wrong := np.isnan(numbers) & ~missing).any():
                self._refuse(own[int(np.argmax(wrong))], len(self) + int(np.argmax(_each(wrong, part))))
            self._extend(numbers, part)
        return ~_each(missing, part)

    def _code(self, cell: Any) -> int:
        return self.known.setdefault((type(cell), cell), len(self.known))

    def _extend(self, of_different: np.ndarray, part: Cells) -> None:
        self.column.frombytes(_each(of_different, part).tobytes())

    def _turn_to_numbers(self) -> None:
        numbers = np.append(numbers_of(objects([cell for _, cell in self.known])), np.nan)  # of what is missing
        self.has_text = bool(np.isnan(numbers[:-1]).any())
        if not self.has_text:
            column = array.array("d")
            column.frombytes(numbers[np.frombuffer(self.column, np.int32)].tobytes())
            self.column = column

    def _refuse(self, cell: Any, row: int) -> None:
        raise InputError(
            f"{self.place(row)}: {shown(cell)} is not a number, and there are more than {MOST_DIFFERENT:,} different "
            "responses: fix it, or leave it empty"
        )

    def found(self) -> tuple[Cells, Bool[np.ndarray, " N"]]:
        """All cells, and which of them are there."""
        if self.column.typecode == "d":
            numbers = np.frombuffer(self.column)
            return Cells(numbers), ~np.isnan(numbers)
        at = np.frombuffer(self.column, np.int32)
        return Cells(objects([cell for _, cell in self.known]), at), at != MISSING


class _Facets:
    """Who judged, so far."""

    def __init__(self, place: Place) -> None:
        self.place, self.known, self.column = place, dict[str, int](), array.array("i")

    def add(self, part: Cells, there: Bool[np.ndarray, " n"], first: int) -> None:
        """Those of the next part.

        Raises:
            InputError: one is missing.
        """
        names = [plain(cell) for cell in part.different.tolist()]
        if (none := _each(np.array([name is None or name == "" for name in names], bool), part) & there).any():
            raise InputError(
                f"{self.place(first + int(np.argmax(none)))} does not say who judged: fill the column of the facet in"
            )
        at = np.zeros(len(names), np.int32)
        for one in _in_order(part, there):
            at[one] = self.known.setdefault(str(names[one]), len(self.known))
        self.column.frombytes(_each(at, part).tobytes())


def _in_order(part: Cells, there: Bool[np.ndarray, " n"]) -> list[int]:
    """Which of the different cells occur in rows that are there, in the order of their first appearance."""
    at = (np.arange(len(part)) if part.at is None else part.at)[there]
    different, first = np.unique(at, return_index=True)
    return different[np.argsort(first)].tolist()


def _each(of_different: np.ndarray, part: Cells) -> np.ndarray:
    """What is said of the different cells, of each row."""
    return of_different if part.at is None else of_different[part.at]


def _trials(part: Cells, there: Bool[np.ndarray, " n"], first: int, place: Place) -> Int[np.ndarray, " n"]:
    """How many trials each response is of.

    Raises:
        InputError: it is no integer, or below 1.
    """
    numbers = numbers_of(objects([plain(cell) for cell in part.different.tolist()]))
    sound = (numbers >= 1) & (numbers <= MOST_TRIALS) & (numbers == np.floor(numbers))
    if (wrong := ~_each(sound, part) & there).any():
        at = int(np.argmax(wrong))
        raise InputError(f"{place(first + at)}: {shown(part[at])} trials: expected an integer, 1 or more")
    return _each(np.where(sound, numbers, 1).astype(np.int32), part)
