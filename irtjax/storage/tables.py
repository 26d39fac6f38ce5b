"""Tables from CSV and TSV files: every row has as many cells as the header, and ids stay text."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.storage.sources import TABS, csv_rows, reading, shown, tab_rows, text_of

# cells that count as empty, except ids
EMPTY = frozenset(("", "NA", "N/A", "n/a", "nan", "NaN", "null", "NULL", "None"))

LARGE = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)[eE]\+?\d+\s*", re.ASCII)  # perhaps beyond all floating-point numbers


class Rows(NamedTuple):
    """The cells of a CSV file.

    Attributes:
        header: names of the columns, each once.
        lines: the line that each row ends in.
        cells: the rows, each as long as the header.
    """

    header: list[str]
    lines: list[int]
    cells: list[list[str]]

    def column(self, name: str) -> list[str]:
        """The cells of a column."""
        at = self.header.index(name)
        return [row[at] for row in self.cells]


def read_table(path: str | Path, ids: str | int | None = None, *, text: bool = False) -> pd.DataFrame:
    """The table of a CSV file in UTF-8 with a header.

    Args:
        path: of the file, local and not compressed.
        ids: the column, by name or position, whose cells are ids: text as it stands ("NA" is an id too), each once.
        text: whether all other columns are text too; else those are numbers whose cells all are.

    Raises:
        InputError: names the file, and the line or column that is wrong: it cannot be read, a row has more or fewer
            cells than the header, two columns have one name, an id is missing or there twice.
    """
    with reading(path) as path:
        rows = read_rows(path)
        name = rows.header[ids] if isinstance(ids, int) else ids
        if name is not None:
            if name not in rows.header:
                raise InputError(f"no column {name}")
            require_ids(rows.lines, rows.column(name), name)
    columns = zip(*rows.cells, strict=True) if rows.cells else repeat(())
    return pd.DataFrame(
        {
            column: pd.Series(cells, dtype=str) if column == name else typed(cells, text)
            for column, cells in zip(rows.header, columns, strict=False)
        }
    )


def read_rows(path: Path) -> Rows:
    """The cells of a CSV file, all of them text, or of one that ends in .tsv and has tabs between them.

    To be called within `reading`.

    Raises:
        InputError: there is no header, it has a name twice, or a row has more or fewer cells.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        numbered = tab_rows(text_of(path, newline="")) if path.suffix.lower() == TABS else csv_rows(file)
        _, header = next(numbered, (0, []))
        if not header:
            raise InputError("is empty, expected a header and rows")
        (column, times), *_ = Counter(header).most_common(1)
        if times > 1:
            raise InputError(f"{times} columns are called {shown(column)}, expected one")
        lines, cells = [], []
        for line, row in numbered:
            if len(row) != len(header):
                raise InputError(f"line {line} has {len(row)} cells, expected {len(header)} as in the header")
            lines.append(line)
            cells.append(row)
    return Rows(header, lines, cells)


def require_ids(lines: Sequence[int], ids: Sequence[str], name: str) -> None:
    """Refuses ids of which one is missing, there twice, or not kept by arrays.

    Args:
        lines: where they are in the file.
        ids: as many.
        name: of their column.

    Raises:
        InputError: names the line.
    """
    seen: dict[str, int] = {}
    for line, cell in zip(lines, ids, strict=True):
        if not cell:
            raise InputError(f"line {line} has no {name}")
        if cell.endswith("\0"):
            raise InputError(f"line {line}: {name} {shown(cell)} ends in a NUL character")
        if cell in seen:
            raise InputError(f"{name} {shown(cell)} is there twice, in lines {seen[cell]} and {line}")
        seen[cell] = line


def typed(cells: Sequence[str], text: bool = False) -> pd.Series:
    """A column of numbers if all cells are and it need not be text; missing where cells are empty."""
    filled = pd.Series([None if cell in EMPTY else cell for cell in cells], dtype=object)
    if not text:
        try:
            numbers = pd.to_numeric(filled.map(_in_range))
        except ValueError:
            pass
        else:
            if numbers.dtype.kind == "f":  # older versions of pandas are off in the last digit
                return pd.Series([np.nan if cell in EMPTY else float(cell) for cell in cells])
            if numbers.dtype.kind in "iu":  # whole numbers that no type holds come back as text
                return numbers
    return filled.astype(str).where(filled.notna(), np.nan)


def _in_range(cell: str | None) -> str | None:
    """A number too large for any type as infinity, which older versions of pandas do not make of it."""
    return str(float(cell)) if cell is not None and LARGE.fullmatch(cell) and math.isinf(float(cell)) else cell
