"""Numbers that describe items, from arrays and tables in any order."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.storage.frames import as_frame
from irtjax.types import AnyArray, Float, Int

MOST = 1e100  # of a feature, the square of which is a number, too


class ItemFeatures(NamedTuple):
    """Features of items, in blocks whose weights have a variance of their own.

    Attributes:
        values: (I, F).
        blocks: (F,) number of the block that each belongs to, from 0 on.
        names: of the columns of tables, after those of their blocks; of the block for an array. Empty without either.
    """

    values: Float[np.ndarray, "I F"]
    blocks: Int[np.ndarray, " F"]
    names: tuple[str, ...] = ()

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
        InputError: items without features, other numbers of them, values that are no finite numbers up to `MOST`,
            or a table whose index has several levels.
    """
    if isinstance(features, ItemFeatures):
        return features
    features = _blocks(features)
    if not features:
        raise InputError("`features` has no blocks")
    found = [_block(part, item_ids, f"features {name!r}" if name else "features") for name, part in features.items()]
    blocks = np.repeat(np.arange(len(found)), [x.shape[1] for x in found])
    names = [name for block, part in features.items() for name in _names(str(block), part)]
    return ItemFeatures(np.concatenate(found, axis=1), blocks, tuple(names))


def _blocks(features: Any) -> dict[str, Any]:
    """Blocks by name, of one that has none "", with the ids of tables in their indices."""
    blocks = features if isinstance(features, Mapping) else {"": features}
    return {name: as_frame(part, "features", "item_id") for name, part in blocks.items()}


def _names(block: str, part: Any) -> list[str]:
    """The names of a block's columns, of which an array has one for all, if the block has one."""
    if isinstance(part, pd.DataFrame) and all(isinstance(name, str) for name in part):
        return [f"{block}: {name}" if block else name for name in part]
    return [block] if block else []


def new_items(features: Any) -> tuple[np.ndarray, ItemFeatures]:
    """Ids of items and their features, which `item_features` takes; item_1, item_2 and so on without a table.

    Raises:
        InputError: see `item_features`.
    """
    if isinstance(features, ItemFeatures):
        parts = [features.values]
    else:
        features = _blocks(features)
        parts = list(features.values())
    tables = [part for part in parts if isinstance(part, pd.DataFrame | pd.Series)]
    if tables:
        item_ids = np.asarray(_ids(tables[0], "features"))
    else:
        item_ids = np.array([f"item_{at + 1}" for at in range(len(np.atleast_1d(parts[0])) if parts else 0)])
    return item_ids, item_features(features, item_ids)


def require_same_names(given: Sequence[str], expected: Sequence[str]) -> None:
    """Refuses features in another order than those of a fit, where both have names.

    Raises:
        InputError: names the first that differs.
    """
    if not given or not expected or list(given) == list(expected):
        return
    pairs = itertools.zip_longest(given, expected, fillvalue="none")
    one, other = next(pair for pair in pairs if pair[0] != pair[1])
    raise InputError(f"features {one!r} where the fit had {other!r}: give the same ones in the same order")


def _block(features: Any, item_ids: np.ndarray, name: str) -> Float[np.ndarray, "I F"]:
    if isinstance(features, pd.Series):
        features = features.to_frame()
    if isinstance(features, pd.DataFrame):
        table = features.set_axis(_ids(features, name))
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
    bad = ~(np.abs(x) <= MOST)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        what = f"{x[row, column]:g}, of {MOST:g} at most" if np.isfinite(x[row, column]) else "not finite"
        raise InputError(f"{name} of item {str(item_ids[row])!r}: column {column + 1} is {what}")
    return x


def _ids(table: pd.DataFrame | pd.Series, name: str) -> pd.Index:
    """The ids of the items of a table, its index as text.

    Raises:
        InputError: the index has several levels.
    """
    if table.index.nlevels > 1:
        levels = ", ".join(map(repr, table.index.names))
        raise InputError(f"{name} have an index of {table.index.nlevels} levels ({levels}): expected one, of item ids")
    return table.index.astype(str)
