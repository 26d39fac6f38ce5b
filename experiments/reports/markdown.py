"""Pieces of reports."""

from collections.abc import Iterable, Sequence

import numpy as np


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def percent(mean: float, half_width: float) -> str:
    """A share with its interval, in percent."""
    return with_interval(100 * mean, 100 * half_width, ".1f")


def with_interval(mean: float, half_width: float, form: str) -> str:
    """A number with its interval; without, if that is NaN."""
    bare = form.removeprefix("+")
    return f"{mean:{form}}" if np.isnan(half_width) else f"{mean:{form}} ± {half_width:{bare}}"


def seeds(number: int) -> str:
    """What a mean is taken over."""
    return "1 seed" if number == 1 else f"{number} seeds ± 95% interval"


def cell(text: str) -> str:
    """A text that can stand in a cell of a table."""
    return text.replace("|", "\\|")
