"""Response files: CSV matrix, long CSV, py-irt JSON lines, Parquet and NPZ, told by ending and content."""

import csv
import json
import lzma
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.responses.matrix import MISSING, ResponseMatrix
from irtjax.storage.files import whole_file

Answer = tuple[str, str, str, int]  # place in the file, subject, item, code
LONG_COLUMNS = ("subject_id", "item_id", "response")
LARGE, SPARSE = 2**32, 1e-3  # responses, and the share of them that is not missing, below which a matrix is a mistake


def read_responses(path: str | Path) -> ResponseMatrix:
    """Reads graded responses.

    * `.csv`, a matrix: a header of item ids, the subject id first in each row, cells 0, 1 or empty (missing).
    * `.csv`, long: columns subject_id, item_id and response, one row per response, in any order; other columns are
      ignored.
    * `.jsonl`, `.jsonlines`: py-irt's lines `{"subject_id": "s", "responses": {"i": 1, ...}}`.
    * `.parquet`: a matrix, its first column the subject ids, or the long columns.
    * `.npz`: arrays `responses` (J, I) int8 with -1 for missing, `subject_ids` and `item_ids`.

    Subjects and items come in the order in which they first appear.

    Raises:
        InputError: names the file and, where one value is at fault, its row and column.
    """
    path = Path(path)
    readers = {
        ".csv": _read_csv,
        ".jsonl": _read_json_lines,
        ".jsonlines": _read_json_lines,
        ".parquet": _read_parquet,
        ".npz": _read_npz,
    }
    if path.suffix not in readers:
        raise InputError(f"{path}: unknown ending {path.suffix!r}, expected one of {', '.join(readers)}")
    try:
        return readers[path.suffix](path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except csv.Error as error:
        raise InputError(f"{path}: not a CSV file ({error})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from error
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def write_responses(responses: ResponseMatrix, path: str | Path) -> None:
    """Writes a response matrix in the format that the ending says (`.csv` or `.npz`, see `read_responses`).

    Raises:
        InputError: another ending, or a folder that cannot be written to.
    """
    path = Path(path)
    writers = {".csv": _write_csv, ".npz": _write_npz}
    if path.suffix not in writers:
        raise InputError(f"{path}: unknown ending {path.suffix!r}, expected one of {', '.join(writers)}")
    with whole_file(path) as partial:
        writers[path.suffix](responses, partial)


# A cell as written by us, by people and by pandas (whose columns turn to floats where a cell is empty).
_CELLS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "": MISSING}


def _read_csv(path: Path) -> ResponseMatrix:
    subject_ids, rows = [], []
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        header = next((row for row in reader if row), [""])
        item_ids = header[1:]
        if set(LONG_COLUMNS) <= set(header):
            return _read_long(reader, header)
        if not item_ids and (";" in header[0] or "\t" in header[0]):
            raise InputError("the header has no comma: separate the cells by commas")
        for row in reader:
            if not row:
                continue
            subject, cells = row[0], row[1:]
            if len(cells) != len(item_ids):
                raise InputError(
                    f"line {reader.line_num} (subject {subject!r}) has {len(cells)} responses, "
                    f"the header names {len(item_ids)} items"
                )
            codes = [_CELLS.get(cell) for cell in cells]
            if None in codes:
                codes = [_CELLS.get(cell.strip()) for cell in cells]
            if None in codes:
                column = codes.index(None)
                raise InputError(
                    f"line {reader.line_num} (subject {subject!r}), column {column + 2} (item {item_ids[column]!r}): "
                    f"{cells[column]!r} is not a response; use 0, 1 or an empty cell for missing"
                )
            subject_ids.append(subject)
            rows.append(np.array(codes, dtype=np.int8))
    values = np.stack(rows) if rows else np.zeros((0, len(item_ids)), np.int8)
    return ResponseMatrix(values=values, subject_ids=subject_ids, item_ids=item_ids)


def _read_long(reader: Any, header: list[str]) -> ResponseMatrix:
    for name in LONG_COLUMNS:
        if header.count(name) > 1:
            raise InputError(f"{header.count(name)} columns are called {name}, expected one")
    at = [header.index(name) for name in LONG_COLUMNS]

    def answers() -> Iterator[Answer]:
        for row in reader:
            if not row:
                continue
            if len(row) != len(header):
                raise InputError(f"line {reader.line_num} has {len(row)} cells, the header {len(header)}")
            subject, item, cell = (row[column] for column in at)
            code = _CELLS.get(cell.strip())
            if code is None:
                raise InputError(
                    f"line {reader.line_num}, column {at[2] + 1} (subject {subject!r}, item {item!r}): "
                    f"{cell!r} is not a response; use 0, 1 or an empty cell for missing"
                )
            yield f"line {reader.line_num}", subject, item, code

    return _gather(answers())


def _read_json_lines(path: Path) -> ResponseMatrix:
    kinds: dict[str, type] = {}

    def answers() -> Iterator[Answer]:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                try:
                    record = json.loads(line, object_pairs_hook=_without_repeats)
                    identity, responses = record["subject_id"], dict(record["responses"])
                    if type(identity) not in (str, int):
                        raise TypeError(f"a subject_id that is a text or a whole number, not {identity!r}")
                    subject = str(identity)
                    if kinds.setdefault(subject, type(identity)) is not type(identity):
                        raise ValueError(f"subject {subject} is a text in one line and a number in another")
                    if not responses:
                        raise ValueError(f"subject {subject!r} has no responses")
                except (ValueError, KeyError, TypeError, RecursionError) as error:
                    raise InputError(
                        f'line {number}: expected {{"subject_id": ..., "responses": {{item: 0 or 1}}}} ({error!r})'
                    ) from error
                for item, value in responses.items():
                    code = MISSING if value is None else value
                    if value is not None and (not isinstance(value, int | float) or value not in (0, 1)):
                        raise InputError(
                            f"line {number} (subject {subject!r}), item {item!r}: {value!r} is not a response; "
                            "use 0, 1 or null for missing"
                        )
                    yield f"line {number}", subject, item, int(code)

    return _gather(answers())


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, in which each key is there once."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} is there twice")
    return found


def _gather(answers: Iterable[Answer]) -> ResponseMatrix:
    """The matrix of some answers; those that are not given are missing, and those given twice are refused."""
    subjects: dict[str, int] = {}
    items: dict[str, int] = {}
    codes: dict[tuple[int, int], int] = {}
    for place, subject, item, code in answers:
        cell = subjects.setdefault(subject, len(subjects)), items.setdefault(item, len(items))
        if cell in codes:
            raise InputError(f"{place}: subject {subject!r} answers item {item!r} a second time")
        codes[cell] = code
    size = len(subjects) * len(items)
    if size > LARGE and len(codes) < size * SPARSE:
        raise InputError(
            f"{len(codes):,} responses of {len(subjects):,} subjects to {len(items):,} items would take "
            f"{size / 2**30:.0f} GiB, nearly all of it missing: look for ids that are different in every row"
        )
    values = np.full((len(subjects), len(items)), MISSING, np.int8)
    if codes:
        values[tuple(np.array(list(codes)).T)] = list(codes.values())
    return ResponseMatrix(values, list(subjects), list(items))


def _read_parquet(path: Path) -> ResponseMatrix:
    try:
        table = pd.read_parquet(path)
    except ValueError as error:  # pyarrow's own errors are ValueErrors
        raise InputError(f"not a Parquet file ({error})") from error
    _check_columns(table)
    if set(LONG_COLUMNS) <= set(table.columns):
        return of_long_table(table)
    if table.columns.size and isinstance(table.index, pd.RangeIndex):
        table = table.set_index(table.columns[0])
    return of_table(table)


def of_long_table(table: pd.DataFrame) -> ResponseMatrix:
    """The responses of a table with the columns subject_id, item_id and response.

    Raises:
        InputError: names the row and column of what is no id or no response, or a response that is there twice.
    """
    _check_columns(table)
    subjects, items = (_texts(table[name], name) for name in LONG_COLUMNS[:2])
    coded = _codes(table[["response"]], subjects)[:, 0]
    rows = zip(subjects.tolist(), items.tolist(), coded, strict=True)
    return _gather((f"row {at}", *row) for at, row in enumerate(rows, start=1))


def of_table(table: pd.DataFrame) -> ResponseMatrix:
    """The responses of a table of subjects, which its index names, by items.

    Raises:
        InputError: names the row and column of what is no id or no response.
    """
    _check_columns(table)
    subjects = _texts(table.index.to_series(), "subject ids")
    items = _texts(table.columns.to_series(), "item ids")
    return ResponseMatrix(_codes(table, subjects), subjects, items)


def _check_columns(table: pd.DataFrame) -> None:
    if table.columns.nlevels > 1 or table.index.nlevels > 1:
        raise InputError("columns or rows of several levels, expected one")
    if table.columns.has_duplicates:
        raise InputError(f"two columns are called {str(table.columns[table.columns.duplicated()][0])!r}")


def _texts(ids: pd.Series, what: str) -> np.ndarray:
    """Ids as text, none of which is null."""
    if ids.isna().any():
        raise InputError(f"row {int(np.argmax(ids.isna().to_numpy())) + 1} has no id among the {what}")
    return ids.astype(str).to_numpy(str)


def _codes(table: pd.DataFrame, subject_ids: np.ndarray) -> np.ndarray:
    """Int8 codes of a table of numbers, missing where they are null."""
    for column in table.columns:
        if table[column].dtype.kind in "mMc":
            what = "complex numbers" if table[column].dtype.kind == "c" else "dates or times"
            raise InputError(f"column {str(column)!r} holds {what}; use 0, 1 or null for missing")
    # columns that can be null hold pd.NA, which is neither equal nor unequal to a number
    columns = [pd.to_numeric(table[column], errors="coerce").to_numpy(float, na_value=np.nan) for column in table]
    numbers = np.stack(columns, axis=1) if columns else np.zeros(table.shape)
    wrong = ~(np.isin(numbers, [0, 1]) | table.isna().to_numpy(bool))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise InputError(
            f"row {row + 1} (subject {str(subject_ids[row])!r}), column {str(table.columns[column])!r}: "
            f"{table.iat[row, column]} is not a response; use 0, 1 or null for missing"
        )
    return np.where(np.isnan(numbers), MISSING, numbers).astype(np.int8)


def _write_csv(responses: ResponseMatrix, path: Path) -> None:
    # Cells are one of three short byte strings, so whole rows are built at once: a loop over the cells of a
    # crowd's answers would take longer than training it.
    text = np.array([b"0", b"1", b""], dtype="S1")  # index -1 is the last: missing
    with path.open("w", newline="", encoding="utf-8") as file:
        write = csv.writer(file, lineterminator="\n").writerow
        write(["subject_id", *responses.item_ids])
        for subject, row in zip(responses.subject_ids, responses.values, strict=True):
            write([subject, *text[row].astype(str)])


def _read_npz(path: Path) -> ResponseMatrix:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return ResponseMatrix(arrays["responses"], arrays["subject_ids"], arrays["item_ids"])
    except KeyError as error:
        raise InputError(f"{error.args[0]}; expected responses, subject_ids and item_ids") from error
    except InputError:
        raise
    except MemoryError as error:
        raise InputError(f"claims arrays that do not fit into memory ({error})") from error
    # of a damaged archive, of one that is encrypted or compressed in another way, and of a damaged header of an array
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, tokenize.TokenError) as error:
        raise InputError(f"not an NPZ file of plain arrays ({error})") from error
    except (EOFError, TypeError, ValueError, RuntimeError, SyntaxError, OverflowError) as error:
        raise InputError(f"not an NPZ file of plain arrays ({error})") from error


def _write_npz(responses: ResponseMatrix, path: Path) -> None:
    np.savez_compressed(
        path, responses=responses.values, subject_ids=responses.subject_ids, item_ids=responses.item_ids
    )
