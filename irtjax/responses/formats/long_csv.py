"""CSV files with one row per response, a part at a time."""

import contextlib
import csv
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.csv

from irtjax.errors import InputError, NotScoredError
from irtjax.responses.formats.answers import CELLS, Answer
from irtjax.responses.formats.cells import Cells, objects
from irtjax.responses.formats.collecting import (
    AT_ONCE,
    How,
    InMemory,
    Part,
    as_held,
    collect,
    parts_of,
)
from irtjax.responses.formats.given import Given, refuse_counts, rule_of
from irtjax.responses.formats.given_rows import Answer as GivenAnswer
from irtjax.responses.formats.given_rows import Rows, of_answers, of_rows
from irtjax.responses.formats.long_tables import (
    LONG_COLUMNS,
    UNNAMED,
    Column,
    Names,
    beside,
    guessed_names,
    how_to_name,
    long_names,
)
from irtjax.storage.sources import csv_rows, shown

BLOCK, MOST = 2**22, 2**26  # bytes that are read at a time, and the most of one row
QUOTE = ord('"')
AROUND_QUOTES = np.isin(np.arange(256), np.frombuffer(b'",\r\n', np.uint8))  # at the beginning or end of a cell
NumberedRows = Iterator[tuple[int, list[str]]]


@contextlib.contextmanager
def table(path: Path) -> Iterator[tuple[list[str], NumberedRows]]:
    """The header of a CSV file, and the rows below it."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv_rows(file)
        _, header = next(rows, (0, [""]))
        yield header, rows


def read(path: Path, header: list[str], names: Names, how: How) -> InMemory:
    """The responses of a file, see `read_responses`.

    Arrow reads a plain file in a tenth of the time. What it cannot read, or what is no response, Python's own reader
    reads again, which knows the line.
    """

    def again() -> Iterator[Answer]:
        return _scored(_rows(path, header, names), header.index(names.response) + 1)

    place = functools.partial(_place, path)
    own, found = names._replace(facet=None), None
    with contextlib.suppress(_NotPlainError):
        found = collect((_part(*block) for block in _blocks(path, header, own)), place, how.repeats)
    if found is None:  # what was read is gone with the error
        found = collect(parts_of(again()), place, how.repeats)
    return as_held(found, how.sparse)


def read_given(path: Path, header: list[str], names: Names) -> Given:
    """The responses of a file as they were given."""
    with contextlib.suppress(_NotPlainError):
        return of_rows(_given_parts(path, header, names), functools.partial(_place, path))
    return of_answers(lambda: _rows(path, header, names))


def _given_parts(path: Path, header: list[str], names: Names) -> Iterator[Rows]:
    for subjects, items, *columns in _blocks(path, header, names):
        rest = iter([Cells(objects(one.dictionary.to_pylist()), one.indices.to_numpy()) for one in columns])
        of_roles: list[Any] = [None if name is None else next(rest) for name in names[2:]]
        yield Rows(subjects, items, *of_roles)


def _place(path: Path, at: int) -> str:
    """What messages call an answer."""
    with table(path) as (_, rows):
        return f"line {next(itertools.islice(rows, at, None))[0]}"


def names_in(path: Path, header: list[str], columns: Mapping[str, str] | None, scored: bool) -> Names | None:
    """The columns of a file with one row per response; None if it is another.

    Args:
        path: of the file.
        header: of it.
        columns: that were named.
        scored: whether responses are right or wrong; else grades, counts or shares.

    Raises:
        InputError: see `long_names`; or columns were named, and the others cannot be told.
    """
    if (names := long_names(header, columns)) is not None:
        return names
    others = beside(header, columns)
    names = guessed_names(_columns(path, header, others, _are_scored if scored else rule_of(others)), others)
    if names is None and columns:
        raise (NotScoredError if scored else InputError)(how_to_name(header))
    return names


def _are_scored(cells: Iterable[str]) -> bool:
    return {cell.strip() for cell in cells} <= CELLS.keys()


def _columns(
    path: Path, header: list[str], others: Mapping[str, str], are_responses: Callable[[Iterable[str]], bool]
) -> list[Column]:
    """What the columns of a file look like that may have one row per response; none of a wider one or a damaged one."""
    if len(header) - (header[0] in UNNAMED) - len(others) != len(LONG_COLUMNS):
        return []
    number, cells = 0, [set[str]() for _ in header]
    with table(path) as (_, rows):
        while some := list(itertools.islice(rows, AT_ONCE)):
            if any(len(row) != len(header) for _, row in some):
                return []
            number += len(some)
            for found, column in zip(cells, zip(*(row for _, row in some), strict=True), strict=True):
                found.update(column)
    return [
        Column(name, are_responses(found), all(map(str.isdecimal, found)), len(found) < number)
        for name, found in zip(header, cells, strict=True)
    ]


class _NotPlainError(Exception):
    """A file that Python's own reader should read."""


def _blocks(path: Path, header: list[str], names: Names) -> Iterator[list[pyarrow.DictionaryArray]]:
    """The columns of `names.known` of a plain file, some rows at a time.

    Raises:
        _NotPlainError: it is none, or something is wrong with it.
    """
    if len(set(header)) < len(header):
        raise _NotPlainError
    wanted = names.known
    texts = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    convert = pyarrow.csv.ConvertOptions(include_columns=wanted, column_types=dict.fromkeys(wanted, texts))
    columns = None  # the first rows have the header
    for rows in _whole_rows(path):
        parse = pyarrow.csv.ParseOptions(newlines_in_values=_has_quotes(rows))
        options = pyarrow.csv.ReadOptions(use_threads=False, block_size=len(rows) + 1, column_names=columns)
        try:
            block = pyarrow.csv.read_csv(pyarrow.py_buffer(rows), options, parse, convert)
        except (pyarrow.ArrowException, KeyError) as error:
            raise _NotPlainError from error
        columns = header
        if block.num_rows:
            found = [column.combine_chunks() for column in block.columns]
            for cells in found:
                longest = pyarrow.compute.max(pyarrow.compute.utf8_length(cells.dictionary)).as_py()
                if longest > csv.field_size_limit():
                    raise _NotPlainError
            yield found


def _whole_rows(path: Path) -> Iterator[bytes]:
    """A file, some rows at a time.

    Raises:
        _NotPlainError: a row is too long, or a quote is not closed.
    """
    rest = b""
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            rest += block
            end = rest.rfind(b"\n") + 1
            while end and rest.count(b'"', 0, end) % 2:  # it ends within quotes, the last of which opens a cell
                end = rest.rfind(b"\n", 0, rest.rfind(b'"', 0, end)) + 1
            if end:
                yield rest[:end]
            rest = rest[end:]
            if len(rest) > MOST:
                raise _NotPlainError
    if rest.count(b'"') % 2:
        raise _NotPlainError
    if rest:
        yield rest


def _has_quotes(rows: bytes) -> bool:
    """Whether some cells are in quotes.

    Raises:
        _NotPlainError: a quote is within a cell, where Arrow's reader lets pass what is no CSV.
    """
    if b'"' not in rows:
        return False
    text = np.frombuffer(b"\n" + rows + b"\n\n", np.uint8)
    at = np.flatnonzero(text == QUOTE)
    before, after, next_but_one = (text[at + step] for step in (-1, 1, 2))
    begins_empty = AROUND_QUOTES[before] & (before != QUOTE) & (after == QUOTE) & ~AROUND_QUOTES[next_but_one]
    if begins_empty.any() or not (AROUND_QUOTES[before] | AROUND_QUOTES[after]).all():
        raise _NotPlainError
    return True


def _part(
    subjects: pyarrow.DictionaryArray,
    items: pyarrow.DictionaryArray,
    responses: pyarrow.DictionaryArray,
    trials: pyarrow.DictionaryArray | None = None,
) -> Part:
    """Right and wrong answers.

    Raises:
        _NotPlainError: they are others.
    """
    codes = [CELLS.get(cell.strip()) for cell in responses.dictionary.to_pylist()]
    if None in codes or (trials is not None and set(trials.dictionary.to_pylist()) != {"1"}):
        raise _NotPlainError
    return Part(subjects, items, np.array(codes, np.int8)[responses.indices.to_numpy()])


def _rows(path: Path, header: list[str], names: Names) -> Iterator[GivenAnswer]:
    """The rows below the header, one by one."""
    for name in names.known:
        if header.count(name) > 1:
            raise InputError(f"{header.count(name)} columns are called {name}, expected one")
    at = [None if name is None else header.index(name) for name in names]
    with table(path) as (_, rows):
        for line, row in rows:
            if len(row) != len(header):
                raise InputError(f"line {line} has {len(row)} cells, the header {len(header)}")
            cells: list[Any] = [None if column is None else row[column] for column in at]
            yield GivenAnswer(f"line {line}", *cells)


def _scored(answers: Iterable[GivenAnswer], column: int) -> Iterator[Answer]:
    for place, subject, item, cell, trials, _ in answers:
        code = CELLS.get(cell.strip())
        if code is None:
            raise NotScoredError(
                f"{place}, column {column} (subject {shown(subject)}, item {shown(item)}): "
                f"{shown(cell)} is not a response; use 0, 1 or an empty cell for missing"
            )
        refuse_counts(place, trials)
        yield place, subject, item, code
