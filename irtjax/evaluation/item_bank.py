"""The items of a test, from whatever holds their parameters."""

from typing import Any, NamedTuple

import numpy as np

from irtjax.errors import InputError
from irtjax.estimation.fit_files import holds_fit
from irtjax.estimation.result import Fit, load_fit
from irtjax.estimation.scoring import item_table
from irtjax.item_models.tables import from_columns
from irtjax.kernels.models import ItemParameters
from irtjax.populations.normal import STANDARD, Population
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


def item_bank(items: Any, population: Any = None) -> ItemBank:
    """Items as `irtjax.score` takes them, and the population that abilities come from.

    Args:
        items: a `Fit`, the folder of a saved one, a table like `items.csv`, or the path of one; or `ItemParameters`,
            whose ids are their positions.
        population: mean and standard deviation; None for that of the fit, or for others the standard normal.

    Raises:
        InputError: items that cannot be read, or a fit whose dimensions have different populations.
    """
    if isinstance(items, ItemParameters):
        ids = np.arange(len(items.intercept)).astype(str)
        return ItemBank(ids, items, STANDARD if population is None else Population(*population))
    source = load_fit(items) if holds_fit(items) else items
    table = item_table(source)
    if population is None:
        population = _of_fit(source) if isinstance(source, Fit) else STANDARD
    return ItemBank(table.index.to_numpy(str), from_columns(table), Population(*population))


def _of_fit(fit: Fit) -> Population:
    mean, sd = (np.unique(np.asarray(leaf, float)) for leaf in fit.population)
    if mean.size > 1 or sd.size > 1:
        raise InputError("the dimensions of the fit have different populations: give one `population`")
    return Population(float(mean[0]), float(sd[0]))
