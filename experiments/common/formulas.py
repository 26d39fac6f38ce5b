"""Cells of CSV files that a spreadsheet would run: ids such as =1+1 or @sum, which may come from anyone."""

import contextlib
import csv
from collections.abc import Collection, Iterator
from pathlib import Path

from absl import flags

from irtjax.storage.files import whole_results

FIRST = ("=", "+", "-", "@", "\t", "\r")  # of what spreadsheets take for a formula


@contextlib.contextmanager
def guarded_results(path: str | Path, former: Collection[str] = ()) -> Iterator[Path]:
    """`whole_results`, in which no cell begins as a formula where --guard_formulas is given."""
    with whole_results(path, former) as directory:
        yield directory
        if flags.FLAGS.guard_formulas:
            guard(directory)


def guard(folder: Path) -> None:
    """Puts an apostrophe before each cell of the CSV files below a folder that a spreadsheet would run."""
    for path in folder.rglob("*.csv"):
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
        safe = [[f"'{cell}" if _is_formula(cell) else cell for cell in row] for row in rows]
        if safe != rows:
            with path.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(safe)


def _is_formula(cell: str) -> bool:
    """Whether a cell begins as one, and is no number."""
    try:
        float(cell)
    except ValueError:
        return cell.startswith(FIRST)
    return False
