"""The items of a test, from whatever holds their parameters; and the shares of a test by category."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.fits.fit_files import holds_fit
from irtjax.fits.result import Fit, load_fit
from irtjax.item_models.tables import from_columns
from irtjax.kernels.models import ItemParameters
from irtjax.populations.normal import STANDARD, Population
from irtjax.scoring.abilities import item_table
from irtjax.scoring.family_items import KnownItems, known_items
from irtjax.storage.tables import read_table
from irtjax.types import Shaped


class ItemBank(NamedTuple):
    """Items that may be asked.

    Attributes:
        ids: (I,) of the items.
        parameters: of these, in the same order.
        population: that abilities come from.
    """

    ids: Shaped[np.ndarray, " I"]
    parameters: ItemParameters
    population: Population


def item_bank(items: Any, population: Any = None, ids: Shaped[np.ndarray, " N"] | None = None) -> ItemBank:
    """Items as `irtjax.score` takes them, and the population that abilities come from.

    Args:
        items: a `Fit`, the folder of a saved one, a table like `items.csv`, or the path of one; or `ItemParameters`,
            whose ids are their positions.
        population: mean and standard deviation; None for that of the fit, or for others the standard normal.
        ids: of those to choose; None for all.

    Raises:
        InputError: items that cannot be read, or a fit whose dimensions have different populations.
    """
    if isinstance(items, ItemParameters):
        numbers = np.arange(len(items.intercept)).astype(str)
        return ItemBank(numbers, items, STANDARD if population is None else Population(*population))
    source = load_fit(items) if holds_fit(items) else items
    table = item_table(source)
    if known_items(table) is not None:
        raise InputError(
            "these items have grades, counts or shares: `irtjax.evaluation.adaptive.adaptive_test` asks them, and "
            "irtjax.score has the abilities"
        )
    table = table if ids is None else table.loc[ids]
    if population is None:
        population = _of_fit(source) if isinstance(source, Fit) else STANDARD
    return ItemBank(table.index.to_numpy(str), from_columns(table), Population(*population))


def graded_bank(items: Any, population: Any = None) -> tuple[KnownItems, Population] | None:
    """Items with grades, counts or shares, and the population; None where they are right or wrong.

    Arguments as of `item_bank`.
    """
    if isinstance(items, ItemParameters):
        return None
    source = load_fit(items) if holds_fit(items) else items
    known = known_items(source if isinstance(source, Fit) else item_table(source))
    if known is None:
        return None
    if population is None:
        population = source.one_population if isinstance(source, Fit) else STANDARD
    return known, Population(*(float(np.squeeze(leaf)) for leaf in population))


def _of_fit(fit: Fit) -> Population:
    mean, sd = (np.unique(np.asarray(leaf, float)) for leaf in fit.reference)
    if mean.size > 1 or sd.size > 1:
        raise InputError("the dimensions of the fit have different populations: give one `population`")
    return Population(float(mean[0]), float(sd[0]))


def column_of(path: str, name: str, ids: Shaped[np.ndarray, " I"]) -> Shaped[np.ndarray, " I"]:
    """A column of text by item, such as categories, in the order of the ids.

    Raises:
        InputError: the column or an item is missing.
    """
    table = read_table(path, "item_id", text=True)
    if name not in table:
        raise InputError(f"{path}: no column {name}, expected item_id and {name}")
    series = table.set_index("item_id")[name].reindex(ids.astype(str))
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
