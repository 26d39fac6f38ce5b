"""CSV files of responses: a matrix, or one row per response."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from irtjax.errors import InputError, NotScoredError
from irtjax.responses.formats import long_csv
from irtjax.responses.formats.answers import CELLS, refuse_responses_as_ids
from irtjax.responses.formats.collecting import AS_IT_COMES, How, InMemory
from irtjax.responses.formats.given import Given, of_cells
from irtjax.responses.formats.long_csv import NumberedRows, names_in, table
from irtjax.responses.formats.long_tables import LONG_COLUMNS, how_to_name
from irtjax.responses.matrix import ResponseMatrix, matrix_of
from irtjax.responses.sparse import SparseResponses
from irtjax.storage.sources import shown

_TO_QUOTE = re.compile(r'[",\r\n]')


def read(path: Path, columns: Mapping[str, str] | None = None, how: How = AS_IT_COMES) -> InMemory:
    """The responses of a CSV file, see `read_responses`."""
    with table(path) as (header, rows):
        names = names_in(path, header, columns, scored=True)
        return _wide(rows, header) if names is None else long_csv.read(path, header, names, how)


def read_given(path: Path, columns: Mapping[str, str] | None = None) -> Given:
    """The responses of a CSV file as they were given."""
    with table(path) as (header, rows):
        names = names_in(path, header, columns, scored=False)
        if names is not None:
            return long_csv.read_given(path, header, names)
        lines = list(_rows(rows, header))
    subjects = [subject for _, subject, _ in lines]
    refuse_responses_as_ids(header[0], subjects)
    return of_cells([cells for _, _, cells in lines], subjects, header[1:], header)


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


def write(responses: InMemory, path: Path) -> None:
    """Writes a matrix as CSV; single answers with one row for each.

    Raises:
        InputError: it could not be read back: items are called as the columns of long files.
    """
    if isinstance(responses, ResponseMatrix) and set(LONG_COLUMNS[1:]) <= set(responses.item_ids.tolist()):
        raise InputError("with items called item_id and response it would be read as long CSV: write .npz")
    if isinstance(responses, SparseResponses):
        return _write_long(responses, path)
    # Cells are one of three short byte strings, so whole rows are built at once: a loop over the cells of a
    # crowd's answers would take longer than training it.
    text = np.array([b"0", b"1", b""], dtype="S1")  # index -1 is the last: missing
    with path.open("w", newline="", encoding="utf-8") as file:
        file.write(",".join(["subject_id", *map(_quoted, responses.item_ids)]) + "\n")
        for subject, row in zip(responses.subject_ids, responses.values, strict=True):
            file.write(",".join([_quoted(subject), *text[row].astype(str)]) + "\n")


def _write_long(responses: SparseResponses, path: Path) -> None:
    """Subject by subject. Who or what has no answer is in a row without one, so that ids are kept."""
    subjects, items = ([_quoted(one) for one in ids.tolist()] for ids in (responses.subject_ids, responses.item_ids))
    with path.open("w", newline="", encoding="utf-8") as file:
        file.write(",".join(LONG_COLUMNS) + "\n")
        for j, subject in enumerate(subjects):
            own = slice(responses.starts[j], responses.starts[j + 1])
            answers = zip(responses.items[own].tolist(), responses.answers[own].tolist(), strict=True)
            file.write(
                "".join(f"{subject},{items[i]},{answer}\n" for i, answer in answers) or f"{subject},{items[0]},\n"
            )
        for i in np.flatnonzero(responses.counts(axis=0)[1] == 0):
            if i or responses.starts[1]:  # else it is there already
                file.write(f"{subjects[0]},{items[i]},\n")


def _quoted(cell: str) -> str:
    """A cell, in quotes where it needs them; Python's writer leaves a carriage return bare."""
    return f'"{cell.replace(chr(34), chr(34) * 2)}"' if _TO_QUOTE.search(cell) else cell
