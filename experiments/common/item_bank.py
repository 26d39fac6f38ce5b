"""A bank of items from files: their parameters, population, categories and texts."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from experiments.common import app
from irtjax.errors import InputError
from irtjax.estimation.result import Fit
from irtjax.estimation.scoring import item_table
from irtjax.item_models.tables import from_columns
from irtjax.kernels.models import ItemParameters
from irtjax.populations.normal import STANDARD, Population
from irtjax.storage.tables import read_table
from irtjax.types import Shaped


class Bank(NamedTuple):
    """Items that may be asked.

    Attributes:
        ids: (I,).
        items: their parameters.
        population: that abilities come from.
    """

    ids: np.ndarray
    items: ItemParameters
    population: Population


def bank_of(
    source: Fit | pd.DataFrame, path: str, population: Population | None = None, ids: np.ndarray | None = None
) -> Bank:
    """A bank of one dimension.

    Args:
        source: the items.
        path: where they are from.
        population: None for that of the fit or, for a table, the standard normal.
        ids: of the items to choose; None for all.

    Raises:
        InputError: there are none, or parameters are missing, or in several dimensions.
    """
    table = item_table(source)
    chosen = table if ids is None else table.loc[ids]
    with app.naming(path):
        items = from_columns(chosen)
        if items.slope.shape[1] > 1:
            raise InputError(
                f"items in {items.slope.shape[1]} dimensions, expected one: for more, call irtjax.evaluation.adaptive"
            )
        if not len(chosen):
            raise InputError("has no items")
    if population is None:
        of_fit = source.population if isinstance(source, Fit) else STANDARD
        population = Population(*(float(np.squeeze(x)) for x in of_fit))
    return Bank(chosen.index.to_numpy(str), items, population)


def column_of(path: str, name: str, ids: Shaped[np.ndarray, " I"]) -> Shaped[np.ndarray, " I"]:
    """A column of text by item, in the order of the ids.

    Raises:
        InputError: the column or an item is missing.
    """
    table = read_table(path, "item_id", text=True)
    if name not in table:
        raise InputError(f"{path}: no column {name}, expected item_id and {name}")
    series = table.set_index("item_id")[name].reindex(ids)
    without = series.index[series.isna()]
    if len(without):
        raise InputError(f"{path}: no {name} of item '{without[0]}' (1 of {len(without)} such)")
    return series.to_numpy(str)


def quotas_of(path: str) -> dict[str, float]:
    """Shares of a test by category.

    Raises:
        InputError: a column is missing, or a share is no number.
    """
    table = read_table(path, "category")
    if "share" not in table:
        raise InputError(f"{path}: no column share, expected category and share")
    shares = pd.to_numeric(table["share"], errors="coerce")
    bad = ~(shares >= 0)
    if bad.any():
        raise InputError(f"{path}: category '{table.category[bad].iloc[0]}': expected a share from 0 to 1")
    return dict(zip(table.category, shares.astype(float), strict=True))
