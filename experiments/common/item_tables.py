"""Items by their ids: what other files than the responses say of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from absl import flags

from irtjax.errors import InputError
from irtjax.storage.tables import read_table
from irtjax.types import Bool, Shaped


def by_id(path: str, *, text: bool = False) -> pd.DataFrame:
    """A CSV with ids in its first column, indexed by id."""
    table = read_table(path, 0, text=text)
    return table.set_index(table.columns[0])


def column(items: pd.DataFrame, name: str, ids: Sequence[str] | np.ndarray, path: str, responses: str) -> pd.Series:
    """A column of a table of items, as text, for the items of a file of responses.

    Args:
        items: indexed by id.
        name: of the column, which the table has.
        ids: of the items.
        path: of the table, for messages.
        responses: path of the responses, for messages.

    Raises:
        InputError: an item has no row, or nothing in the column.
    """
    unknown = [item for item in ids if item not in items.index]
    if unknown:
        raise InputError(f"{path}: no row for item '{unknown[0]}' of {responses} (1 of {len(unknown)} such)")
    found = items.loc[ids, name]
    if found.isna().any():
        raise InputError(f"{path}: item '{found.index[found.isna()][0]}' has no {name}")
    return found.astype(str)


def named_by(flag: str, ids: np.ndarray, responses: str) -> list[str]:
    """The item ids that a flag names, in itself or in a file with one per line.

    Args:
        flag: its name; it takes a list.
        ids: of all items.
        responses: path of the responses, for messages.

    Raises:
        InputError: the file cannot be read, or there is no such item.
    """
    given: Any = flags.FLAGS[flag].value
    if len(given) == 1 and Path(given[0]).is_file():
        try:
            given = Path(given[0]).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"--{flag}={given[0]}: cannot be read ({error})") from error
    given, known = [item.strip() for item in given if item.strip()], set(ids.tolist())
    unknown = [item for item in given if item not in known]
    if unknown:
        raise InputError(f"--{flag}: item '{unknown[0]}' is not in {responses}")
    return given


def with_parameters(
    ids: Shaped[np.ndarray, " I"], bank: Shaped[np.ndarray, " N"], responses: str, source: str
) -> Bool[np.ndarray, " I"]:
    """Which items of a file of responses have parameters in a bank; how many others there are, on either side, is said.

    Args:
        ids: of the items of the file.
        bank: ids of the items with parameters.
        responses: path of the file, for messages.
        source: what messages call the bank.

    Raises:
        InputError: none has.
    """
    ids, bank = ids.astype(str), bank.astype(str)
    chosen = np.isin(ids, bank)
    if not chosen.any():
        raise InputError(f"none of its {len(ids):,} items, such as '{ids[0]}', has parameters in {source}")
    if not chosen.all():
        left = ids[~chosen]
        print(f"note: {left.size:,} of {chosen.size:,} items, such as '{left[0]}', have no parameters: left out")
    absent = ~np.isin(bank, ids)
    if absent.any():
        print(
            f"note: {absent.sum():,} of {absent.size:,} items of the bank, such as '{bank[absent][0]}', are not in "
            f"{responses}: the bank is without them"
        )
    return chosen
