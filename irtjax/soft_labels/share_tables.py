"""Soft labels in a CSV: a column of ids, and one for each class, of shares of the answers or of their numbers."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.soft_labels.labels import check_soft_labels, soft_labels
from irtjax.storage.sources import LONGEST, reading, shown
from irtjax.storage.tables import read_rows, require_ids
from irtjax.types import Float, Int, Shaped

IDS = "item_id"
MOST_ANSWERS = 2**31 - 1  # of one class to an item


class SharesOfItems(NamedTuple):
    """Soft labels of I items.

    Attributes:
        ids: (I,) strings, unique.
        shares: (I, C) which sum to 1.
        counts: (I, C) numbers of answers, where the file has them.
    """

    ids: Shaped[np.ndarray, " I"]
    shares: Float[np.ndarray, "I C"]
    counts: Int[np.ndarray, "I C"] | None = None


def read_shares(path: str | Path, classes: Sequence[str]) -> SharesOfItems:
    """The soft labels in a CSV of `item_id` and one column per class, in any order.

    Cells are shares, or numbers of answers where all are whole and one is above 1: a row of 1, 1 and 0 among rows that
    have a single 1 is a mistake, and not two answers. All rows are checked, also of items that are not used. Another
    column is refused rather than left aside: it may be a class by a name that the task does not have.

    Raises:
        InputError: names the file, and the line, column or item: a column is missing or too many, an id is missing or
            there twice, a cell is negative or no number, shares of an item do not sum to 1, or it has no answers.
    """
    with reading(path) as file:
        rows = read_rows(file)
        expected = f"{IDS} and {', '.join(classes)}"
        if missing := [name for name in (IDS, *classes) if name not in rows.header]:
            raise InputError(f"no column {missing[0]}; expected {expected}")
        if others := [name for name in rows.header if name not in (IDS, *classes)]:
            raise InputError(f"column {shown(others[0])} is of no class; expected {expected}: leave others out")
        ids = rows.column(IDS)
        require_ids(rows.lines, ids, IDS)
        if not ids:
            raise InputError("has no rows, expected one for each item")
        columns = [pd.to_numeric(pd.Series(rows.column(name), dtype=object), errors="coerce") for name in classes]
        shares = np.stack([column.to_numpy(float) for column in columns], axis=1)
        bad = np.argwhere(~((shares >= 0) & (shares <= MOST_ANSWERS)))  # which NaN is not either
        if bad.size:
            row, at = bad[0]
            cell = shown(rows.column(classes[at])[row])
            where = f"line {rows.lines[row]}, column {classes[at]}"
            raise InputError(f"{where}: {cell}, expected a share from 0 to 1, or a number of answers")
        if (shares == np.round(shares)).all() and (shares > 1).any():
            counts = shares.astype(np.int64)
            if not counts.any(axis=1).all():
                row = int(np.argmin(counts.any(axis=1)))
                raise InputError(f"line {rows.lines[row]}: item {shown(ids[row])} has no answers: leave it out")
            return SharesOfItems(np.array(ids, str), soft_labels(counts), counts)
        check_soft_labels(shares, np.array([one if len(one) <= LONGEST else shown(one) for one in ids], object))
    return SharesOfItems(np.array(ids, str), shares)
