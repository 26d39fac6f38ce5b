"""Tables from CSV files: every row has as many cells as the header, and ids stay text."""

import csv
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from irtjax.errors import InputError

EMPTY = ["", "NA", "N/A", "n/a", "nan", "NaN", "null", "NULL", "None"]  # cells that count as empty, except ids


def read_table(path: str | Path, ids: str | int | None = None, *, text: bool = False) -> pd.DataFrame:
    """The table of a CSV file in UTF-8 with a header.

    Args:
        path: of the file.
        ids: the column, by name or position, whose cells are ids: text as it stands ("NA" is an id too), each once.
        text: whether all other columns are text too; else the type of each is inferred from its cells.

    Raises:
        InputError: names the file, and the line or column that is wrong: it cannot be read, a row has more or fewer
            cells than the header, two columns have one name, an id is missing or there twice.
    """
    try:
        header = _header(path)
        name = header[ids] if isinstance(ids, int) else ids
        if name is not None and name not in header:
            raise InputError(f"{path}: no column {name}")
        empty = {column: [] if column == name else EMPTY for column in header}
        kinds = str if text else {} if name is None else {name: str}
        table = pd.read_csv(
            path, names=header, header=0, dtype=kinds, keep_default_na=False, na_values=empty, index_col=False,
            encoding="utf-8-sig",
        )  # fmt: skip
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (ValueError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read ({' '.join(str(error).split())})") from error
    if name is not None:
        _check_ids(table[name], path)
    return table


def _header(path: str | Path) -> list[str]:
    """The names of the columns, after every row was compared with them."""
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        rows = _rows(file)
        _, header = next(rows, (0, []))
        if not header:
            raise InputError(f"{path}: is empty, expected a header and rows")
        for at, column in enumerate(header):
            if column in header[:at]:
                raise InputError(f"{path}: two columns are called {column!r}")
        for line, row in rows:
            if len(row) != len(header):
                raise InputError(f"{path}: line {line} has {len(row)} cells, expected {len(header)} as in the header")
    return header


def _rows(file: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank, with the lines that they end in."""
    reader = csv.reader(file)
    for row in reader:
        if row:
            yield reader.line_num, row


def _check_ids(ids: pd.Series, path: str | Path) -> None:
    if (ids == "").any():
        raise InputError(f"{path}: row {(ids == '').idxmax() + 1} below the header has no {ids.name}")
    if ids.duplicated().any():
        raise InputError(f"{path}: {ids.name} {ids[ids.duplicated()].iloc[0]!r} is there twice")
