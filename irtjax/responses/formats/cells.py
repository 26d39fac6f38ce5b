"""Cells as they were given: each different one is held once, and of each response a number of 4 bytes says which."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from irtjax.responses.formats.answers import CELLS
from irtjax.responses.matrix import MISSING
from irtjax.types import Float, Int, Shaped

MOST_DIFFERENT = 2**16  # cells that are held once each; where there are more, all are numbers
TRUTH = {word: code for word, code in CELLS.items() if code != MISSING and word.isalpha()}


@dataclasses.dataclass(frozen=True, eq=False)
class Cells:
    """N cells, like a sequence of them.

    Attributes:
        different: (K,) numbers, or objects.
        at: (N,) int32, which of these each cell is; None where cell n is `different[n]`.
    """

    different: Shaped[np.ndarray, " K"]
    at: Int[np.ndarray, " N"] | None = None

    def __len__(self) -> int:
        return len(self.different if self.at is None else self.at)

    def __getitem__(self, n: int) -> Any:
        cell = self.different[n if self.at is None else self.at[n]]
        return cell.item() if isinstance(cell, np.generic) else cell

    def tolist(self) -> list[Any]:
        """All cells."""
        return self.different.tolist() if self.at is None else self.different[self.at].tolist()

    def some(self, chosen: Shaped[np.ndarray, " n"]) -> "Cells":
        """Cells by a mask (N,), or by positions."""
        return Cells(self.different[chosen]) if self.at is None else Cells(self.different, self.at[chosen])

    def numbers(self) -> Float[np.ndarray, " N"]:
        """As `numbers_of`."""
        numbers = numbers_of(self.different)
        return numbers if self.at is None else numbers[self.at]


def coded(cells: Sequence[Any]) -> Cells:
    """Of a list of objects; 1 and True are different ones."""
    found: dict[tuple[type, Any], int] = {}
    at = np.fromiter((found.setdefault((type(cell), cell), len(found)) for cell in cells), np.int32, len(cells))
    return Cells(objects([cell for _, cell in found]), at)


def of_numbers(numbers: Float[np.ndarray, " N"]) -> Cells:
    """Of numbers, none of which is NaN: each different one once, if they are few."""
    at, different = pd.factorize(numbers)
    return Cells(numbers) if len(different) > MOST_DIFFERENT else Cells(different, at.astype(np.int32))


def joined(parts: Sequence[Cells]) -> Cells:
    """The cells of several, one after the other; equal ones of different parts become one."""
    if all(part.at is None and part.different.dtype.kind == "f" for part in parts):
        return Cells(np.concatenate([part.different for part in parts]))
    every = coded([cell for part in parts for cell in part.different.tolist()])
    assert every.at is not None
    places = np.split(every.at, np.cumsum([len(part.different) for part in parts])[:-1])
    return Cells(
        every.different,
        np.concatenate([at if part.at is None else at[part.at] for part, at in zip(parts, places, strict=True)]),
    )


def objects(cells: list[Any]) -> np.ndarray:
    """An array of these objects, whatever they are."""
    array = np.empty(len(cells), object)
    array[:] = cells
    return array


def is_null(value: Any) -> bool:
    """Whether a cell of a table in memory is missing."""
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and bool(np.isnan(value)))


def plain(value: Any) -> Any:
    """A cell without space around it, None where it is missing."""
    if isinstance(value, str):
        text = value.strip()
        return None if CELLS.get(text) == MISSING else text
    return None if is_null(value) else value


def numbers_of(cells: Shaped[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Cells as numbers, right 1 and wrong 0; NaN where a cell is not a number."""
    if cells.dtype.kind == "f":
        return np.where(np.isfinite(cells), cells, np.nan)
    at, different = pd.factorize(cells)  # of which there are few; 1 and True are one of them
    plain = pd.Series([TRUTH.get(cell, cell) if isinstance(cell, str) else cell for cell in different], dtype=object)
    numbers = np.append(pd.to_numeric(plain, errors="coerce").to_numpy(float), np.nan)[at]  # of null -1, the last
    return np.where(np.isfinite(numbers), numbers, np.nan)
