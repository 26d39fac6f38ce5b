"""CSV files of responses: a matrix, or one row per response."""

import contextlib
import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from irtjax.errors import InputError, NotScoredError
from irtjax.responses.formats.answers import CELLS, Answer, gather, refuse_responses_as_ids
from irtjax.responses.formats.given import Answer as GivenAnswer
from irtjax.responses.formats.given import Given, of_answers, of_cells, refuse_counts, rule_of
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
from irtjax.responses.matrix import ResponseMatrix, matrix_of
from irtjax.storage.sources import csv_rows, shown

_TO_QUOTE = re.compile(r'[",\r\n]')
NumberedRows = Iterator[tuple[int, list[str]]]


def read(path: Path, columns: Mapping[str, str] | None = None) -> ResponseMatrix:
    """The matrix of a CSV file, see `read_responses`."""
    with _table(path) as (header, rows):
        names = _names(path, header, columns, scored=True)
        if names is None:
            return _wide(rows, header)
        return gather(_scored(_long(rows, header, names), header.index(names.response) + 1))


def read_given(path: Path, columns: Mapping[str, str] | None = None) -> Given:
    """The responses of a CSV file as they were given."""
    with _table(path) as (header, rows):
        names = _names(path, header, columns, scored=False)
        if names is not None:
            return of_answers(_long(rows, header, names))
        lines = list(_rows(rows, header))
    subjects = [subject for _, subject, _ in lines]
    refuse_responses_as_ids(header[0], subjects)
    return of_cells([cells for _, _, cells in lines], subjects, header[1:], header)


@contextlib.contextmanager
def _table(path: Path) -> Iterator[tuple[list[str], NumberedRows]]:
    """The header of a CSV file, and the rows below it."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv_rows(file)
        _, header = next(rows, (0, [""]))
        yield header, rows


def _are_scored(cells: Iterable[str]) -> bool:
    return {cell.strip() for cell in cells} <= CELLS.keys()


def _names(
    path: Path,
    header: list[str],
    columns: Mapping[str, str] | None,
    scored: bool,
) -> Names | None:
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


def _columns(
    path: Path, header: list[str], others: Mapping[str, str], are_responses: Callable[[Iterable[str]], bool]
) -> list[Column]:
    """What the columns of a file look like that may have one row per response; none of a wider one or a damaged one."""
    if len(header) - (header[0] in UNNAMED) - len(others) != len(LONG_COLUMNS):
        return []
    number, cells = 0, [set[str]() for _ in header]
    with _table(path) as (_, rows):
        for _, row in rows:
            if len(row) != len(header):
                return []
            number += 1
            for found, cell in zip(cells, row, strict=True):
                found.add(cell)
    return [
        Column(name, are_responses(found), all(map(str.isdecimal, found)), len(found) < number)
        for name, found in zip(header, cells, strict=True)
    ]


def _rows(rows: NumberedRows, header: list[str]) -> Iterator[tuple[int, str, list[str]]]:
    """Line, subject and cells of each row of a matrix."""
    item_ids = header[1:]
    if not item_ids and (";" in header[0] or "\t" in header[0]):
        raise InputError("the header has no comma: separate the cells by commas")
    if "" in item_ids:
        raise InputError(f"column {item_ids.index('') + 2} of the header has no item id")
    for line, (subject, *cells) in rows:
        if len(cells) != len(item_ids):
            raise InputError(
                f"line {line} (subject {shown(subject)}) has {len(cells)} responses, "
                f"the header names {len(item_ids)} items"
            )
        if not subject:
            raise InputError(f"line {line} has no subject id")
        yield line, subject, cells


def _wide(rows: NumberedRows, header: list[str]) -> ResponseMatrix:
    item_ids = header[1:]
    subject_ids: list[str] = []
    coded: list[np.ndarray] = []
    for line, subject, cells in _rows(rows, header):
        codes = list(map(CELLS.get, cells))
        if None in codes:
            codes = [CELLS.get(cell.strip()) for cell in cells]
        if None in codes:
            column = codes.index(None)
            raise NotScoredError(
                f"line {line} (subject {shown(subject)}), column {column + 2} (item {shown(item_ids[column])}): "
                f"{shown(cells[column])} is not a response; use 0, 1 or an empty cell for missing"
                + ("" if subject_ids else f"; {how_to_name(header)}")  # the first row: is it a matrix at all?
            )
        subject_ids.append(subject)
        coded.append(np.array(codes, dtype=np.int8))
    refuse_responses_as_ids(header[0], subject_ids)
    values = np.stack(coded) if coded else np.zeros((0, len(item_ids)), np.int8)
    return matrix_of(values, subject_ids, item_ids)


def _long(rows: NumberedRows, header: list[str], names: Names) -> Iterator[GivenAnswer]:
    """The rows of a table with one row per response."""
    for name in names.known:
        if header.count(name) > 1:
            raise InputError(f"{header.count(name)} columns are called {name}, expected one")
    at = [None if name is None else header.index(name) for name in names]
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


def write(responses: ResponseMatrix, path: Path) -> None:
    """Writes a matrix as CSV.

    Raises:
        InputError: it could not be read back: an id is too long, or items are called as the columns of long files.
    """
    if set(LONG_COLUMNS[1:]) <= set(responses.item_ids.tolist()):
        raise InputError("with items called item_id and response it would be read as long CSV: write .npz")
    for ids in (responses.item_ids, responses.subject_ids):
        if (longest := max(map(len, ids))) > csv.field_size_limit():
            raise InputError(f"an id of {longest:,} characters is too long for CSV: write .npz")
    # Cells are one of three short byte strings, so whole rows are built at once: a loop over the cells of a
    # crowd's answers would take longer than training it.
    text = np.array([b"0", b"1", b""], dtype="S1")  # index -1 is the last: missing
    with path.open("w", newline="", encoding="utf-8") as file:
        file.write(",".join(["subject_id", *map(_quoted, responses.item_ids)]) + "\n")
        for subject, row in zip(responses.subject_ids, responses.values, strict=True):
            file.write(",".join([_quoted(subject), *text[row].astype(str)]) + "\n")


def _quoted(cell: str) -> str:
    """A cell, in quotes where it needs them; Python's writer leaves a carriage return bare."""
    return f'"{cell.replace(chr(34), chr(34) * 2)}"' if _TO_QUOTE.search(cell) else cell
