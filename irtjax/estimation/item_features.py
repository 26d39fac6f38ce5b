"""Numbers that describe items, from arrays and tables in any order."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.types import AnyArray, Float, Int


class ItemFeatures(NamedTuple):
    """Features of items, in blocks whose weights have a variance of their own.

    Attributes:
        values: (I, F).
        blocks: (F,) number of the block that each belongs to, from 0 on.
    """

    values: Float[np.ndarray, "I F"]
    blocks: Int[np.ndarray, " F"]

    def choose(self, items: AnyArray) -> "ItemFeatures":
        """Those of some items, by their positions or a mask."""
        return self._replace(values=self.values[items])


def item_features(features: Any, item_ids: np.ndarray) -> ItemFeatures:
    """Features of items in their order.

    Args:
        features: an array, a table whose index has the ids, or several of these by name, each of which is a block; (I,)
            is one feature.
        item_ids: (I,) of the items.

    Raises:
        InputError: items without features, other numbers of them, or values that are no finite numbers.
    """
    if isinstance(features, ItemFeatures):
        return features
    if not isinstance(features, Mapping):
        features = {"": features}
    if not features:
        raise InputError("`features` has no blocks")
    found = [_block(part, item_ids, f"features {name!r}" if name else "features") for name, part in features.items()]
    return ItemFeatures(np.concatenate(found, axis=1), np.repeat(np.arange(len(found)), [x.shape[1] for x in found]))


def new_items(features: Any) -> tuple[np.ndarray, Float[np.ndarray, "I F"]]:
    """Ids of items and their features, which `item_features` takes; of an array the ids are numbers from 0 on.

    Raises:
        InputError: see `item_features`.
    """
    first = next(iter(features.values()), ()) if isinstance(features, Mapping) else features
    labelled = isinstance(first, pd.DataFrame | pd.Series)
    item_ids = np.asarray(first.index if labelled else np.arange(np.atleast_1d(first).shape[0])).astype(str)
    return item_ids, item_features(features, item_ids).values


def _block(features: Any, item_ids: np.ndarray, name: str) -> Float[np.ndarray, "I F"]:
    if isinstance(features, pd.Series):
        features = features.to_frame()
    if isinstance(features, pd.DataFrame):
        table = features.set_axis(features.index.astype(str))
        if table.index.has_duplicates:
            raise InputError(f"{name} of item {str(table.index[table.index.duplicated()][0])!r} are there twice")
        missing = np.setdiff1d(item_ids, table.index)
        if missing.size:
            raise InputError(f"no {name} of item {str(missing[0])!r} ({missing.size:,} such)")
        features = table.loc[item_ids]
    try:
        x = np.asarray(features, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} are not all numbers ({error})") from error
    x = x[:, None] if x.ndim == 1 else x
    if x.ndim != 2 or len(x) != len(item_ids) or not x.shape[1]:
        raise InputError(f"{name} of shape {x.shape}, expected one row for each of {len(item_ids):,} items")
    if not np.isfinite(x).all():
        row, column = np.argwhere(~np.isfinite(x))[0]
        raise InputError(f"{name} of item {str(item_ids[row])!r}: column {column + 1} is not finite")
    return x
