"""The flag --guessing: lower asymptotes that are fixed while the rest is estimated."""

import numpy as np
import pandas as pd
from absl import flags

from experiments.common.shared_flags import GUESSING
from irtjax import InputError
from irtjax.storage.tables import read_table
from irtjax.types import Float, Shaped


def held(
    item_ids: Shaped[np.ndarray, " I"], items: pd.DataFrame | None = None
) -> float | Float[np.ndarray, " I"] | None:
    """What the flag says: one value, one per item (NaN where the cell is empty: not held), or None if not given.

    Args:
        item_ids: of the responses.
        items: table of items, indexed by id, of which the flag may name a column.

    Raises:
        InputError: no number from 0 to below 1, no such column or file, or an item without a row in it.
    """
    given = flags.FLAGS[GUESSING].value
    if given is None:
        return None
    try:
        value = float(given)
    except ValueError:
        return _column(given, item_ids, items)
    if not 0 <= value < 1:
        raise InputError(f"--{GUESSING}={given}: expected 0 to below 1")
    return value


def _column(given: str, item_ids: np.ndarray, items: pd.DataFrame | None) -> np.ndarray:
    if items is not None and given in items:
        source, column = f"column {given} of --items", items[given]
    else:
        table = read_table(given, 0, text=True)
        if GUESSING not in table:
            raise InputError(f"{given}: no column {GUESSING}")
        source, column = given, table.set_index(table.columns[0])[GUESSING]
    missing = item_ids[~np.isin(item_ids, column.index.to_numpy(str))]
    if missing.size:
        raise InputError(f"--{GUESSING}={given}: no row for item '{missing[0]}' (1 of {missing.size} such)")
    cells = column.loc[item_ids]
    values = pd.to_numeric(cells, errors="coerce").to_numpy(float)
    empty = (cells.isna() | (cells == "")).to_numpy()
    bad = ~empty & ~((values >= 0) & (values < 1))
    if bad.any():
        raise InputError(f"{source}, item '{item_ids[bad][0]}': '{cells[bad].iloc[0]}', expected 0 to below 1")
    if empty.all():
        raise InputError(f"{source}: no item has a value")
    return values
