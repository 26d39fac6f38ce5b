"""What a fit says of itself: a line for each kind of estimate."""

from collections.abc import Mapping

import numpy as np

from irtjax.types import Float, Shaped

WIDTH = 17  # of the names of rows
NAMED = 3  # items named at either end of the scale


class Text(str):
    """A text that shows its lines where Python shows values."""

    def __repr__(self) -> str:
        return str(self)


def counted(number: int, noun: str) -> str:
    """A number and what it counts."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def row(name: str, text: str) -> str:
    """A line of a table."""
    return f"  {name:<{WIDTH}}{text}"


def of_items(columns: Mapping[str, Float[np.ndarray, " I"]]) -> list[str]:
    """Ranges of item parameters, by the names of `items.csv`."""
    return [
        row(name, _range(values, columns.get(f"{name}_se")))
        for name, values in columns.items()
        if not name.endswith("_se")
    ]


def of_abilities(ability: Float[np.ndarray, "J ..."], error: Float[np.ndarray, "J ..."]) -> list[str]:
    """Ranges of abilities, and their reliability: Var θ̂ / (Var θ̂ + mean SE²)."""
    lines = []
    for number, (values, errors) in enumerate(zip(np.atleast_2d(ability.T), np.atleast_2d(error.T), strict=True), 1):
        variance, noise = values.var(), np.mean(errors**2)
        reliability = f", reliability {variance / (variance + noise):.2f}" if variance + noise > 0 else ""
        lines.append(row("ability" if ability.ndim == 1 else f"ability_{number}", _range(values, errors) + reliability))
    return lines


def of_ends(item_ids: Shaped[np.ndarray, " I"], difficulty: Float[np.ndarray, " I"]) -> list[str]:
    """The easiest and the hardest items."""
    order = np.argsort(difficulty, kind="stable")
    return [
        row(name, ", ".join(f"{item_ids[i]} ({difficulty[i]:.2f})" for i in which))
        for name, which in (("easiest items", order[:NAMED]), ("hardest items", order[::-1][:NAMED]))
    ]


def _range(values: Float[np.ndarray, " N"], errors: Float[np.ndarray, " N"] | None) -> str:
    finite = values[np.isfinite(values)]
    if not finite.size:
        return "none is finite"
    low, high, middle = np.round([finite.min(), finite.max(), np.median(finite)], 2) + 0.0  # no -0.00
    text = f"{low:.2f} to {high:.2f}, median {middle:.2f}"
    if errors is None or not np.isfinite(errors).any():
        return text
    return f"{text}, standard error {np.median(errors[np.isfinite(errors)]):.2f} (median)"
