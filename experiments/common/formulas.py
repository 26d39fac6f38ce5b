"""Cells of CSV files that a spreadsheet would run: ids such as =1+1 or @sum, which may come from anyone."""

import csv
from pathlib import Path
from typing import Any

from absl import flags

FIRST = ("=", "+", "-", "@", "\t", "\r")  # of what spreadsheets take for a formula

flags.disclaim_key_flags()  # the flag belongs to the binary that defines it


def define_guard() -> Any:
    """The flag --guard_formulas."""
    return flags.DEFINE_bool(
        "guard_formulas",
        False,
        "put an apostrophe before ids that a spreadsheet would run as formulas; files then have other ids than the input",
    )


def guard(folder: Path) -> None:
    """Puts an apostrophe before each cell of the CSV files below a folder that a spreadsheet would run, numbers aside."""
    for path in folder.rglob("*.csv"):
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
        safe = [
            [f"'{cell}" if cell.startswith(FIRST) and not _is_number(cell) else cell for cell in row] for row in rows
        ]
        if safe != rows:
            with path.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerows(safe)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
