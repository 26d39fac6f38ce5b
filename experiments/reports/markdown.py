"""Pieces of reports."""

import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from irtjax.errors import printable
from irtjax.selection.summary import interval


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def p_value(value: float) -> str:
    """A p-value as `p = …`; nothing for NaN."""
    if value != value:
        return ""
    return "p < 0.0001" if value < 1e-4 else f"p = {value:.4f}"


def _yes(value: object) -> str:
    return "yes" if value else "no"


class _Cells(string.Formatter):
    """Cells from the fields of a row: nothing for NaN.

    Conversions: `!i` and `!c` are `inline` and `code_cell`, `!p` is `p_value`, `!y` yes or no.
    """

    def convert_field(self, value: Any, conversion: Any) -> Any:
        made: dict[str, Callable[[Any], str]] = {"i": inline, "c": code_cell, "p": p_value, "y": _yes}
        return made[conversion](value) if conversion in made else super().convert_field(value, conversion)

    def format_field(self, value: Any, format_spec: str) -> str:
        return "" if value is None or value != value else super().format_field(value, format_spec)


_CELLS = _Cells()


def table_of(rows: pd.DataFrame, columns: Mapping[str, Any] | Sequence[tuple[str, Any]], **others: str) -> str:
    """A Markdown table with a line per row.

    Args:
        rows: with any fields.
        columns: by their heads, what is in their cells: a format of the fields, such as `{item_id!i}` or
            `{difficulty:.2f}` (nothing where that is NaN), or a function of the row. `{index}` is that of the row.
            Pairs if two columns have the same head.
        others: `head` and `cell`, formats of the name and of the value, for a column of each other field.
    """
    heads, cells = zip(*(columns.items() if isinstance(columns, Mapping) else columns), strict=True)
    named = {field for cell in cells if not callable(cell) for _, field, *_ in _CELLS.parse(cell)}
    more = [name for name in rows if others and name not in named]
    lines = [
        [cell(row) if callable(cell) else _CELLS.vformat(cell, (), row) for cell in cells]
        + [_CELLS.vformat(others["cell"], (row[name],), {}) for name in more]
        for row in rows.assign(index=rows.index).to_dict("records")
    ]
    return table([*heads, *(_CELLS.vformat(others["head"], (name,), {}) for name in more)], lines)


class Mean(NamedTuple):
    """A mean with the half width of its interval.

    Formatted without, if there is one value only or all are the same; as nothing, if it is NaN.
    """

    value: float
    half_width: float

    def __format__(self, form: str) -> str:
        if np.isnan(self.value):
            return ""
        bare = f"{self.value:{form}}"
        if np.isnan(self.half_width) or self.half_width == 0:
            return bare
        return f"{bare} ± {self.half_width:{form.removeprefix('+')}}"


def mean_of(values: pd.Series) -> Mean:
    """The mean with its 95% interval."""
    return Mean(values.mean(), interval(values))


class Limits(NamedTuple):
    """A number with the limits of its interval, which is not symmetric; formatted without where these are NaN.

    Without a number it is an empty cell.
    """

    value: float
    low: float
    high: float

    def __format__(self, form: str) -> str:
        bare = "" if np.isnan(self.value) else f"{self.value:{form}}"
        return bare if np.isnan(self.low) else f"{bare} ({self.low:{form}} to {self.high:{form}})"


def intervals(table: pd.DataFrame, suffix: str) -> pd.DataFrame:
    """The table with `Mean`s in place of numbers whose half widths are in the columns of their names and the suffix."""
    names = [name for name in table if f"{name}{suffix}" in table]
    return table.assign(**{name: list(map(Mean, table[name], table[f"{name}{suffix}"])) for name in names})


def ratio(value: float, low: float, high: float) -> Limits:
    """A ratio with its interval, if it has one."""
    return Limits(value, low if low != high else np.nan, high)


def seeds(number: int) -> str:
    """What a mean is taken over."""
    return "1 seed" if number == 1 else f"{number} seeds ± 95% interval"


def inline(text: str) -> str:
    """A text from outside, such as an id or a label, that stands for itself in a table, a heading or a sentence."""
    escaped = re.sub(r"([\\`*\[\]<>|~$&])", r"\\\1", printable(str(text)))
    escaped = re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\\_", escaped)  # within words it is no emphasis
    return re.sub(r"^([#+=-]|\d+(?=[.)]))", r"\\\1", escaped)  # at the start of a line it would begin a list or heading


def code(text: str) -> str:
    """A text from outside as code; between more backticks than it has in a row. In tables, `code_cell`."""
    text = printable(str(text))
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}" if text else ""


def code_cell(text: str) -> str:
    """`code` in a cell of a table, where a bar must be escaped."""
    return code(text).replace("|", "\\|")
