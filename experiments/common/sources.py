"""Difficulties from several files, and what to call each of them."""

import os
from pathlib import Path

import numpy as np
import pandas as pd

import irtjax
from irtjax.errors import InputError
from irtjax.storage.sources import expanded


def difficulties_of(path: str) -> pd.Series:
    """The difficulties of an items.csv or of a saved fit, by item id.

    Raises:
        InputError: there is no column of numbers called difficulty.
    """
    folder = expanded(path)
    items = irtjax.read_items(folder / "items.csv" if folder.is_dir() else folder)
    if "difficulty" not in items:
        raise InputError(f"{path}: no column difficulty; experiments.fit_irt writes it for models of one dimension")
    values = pd.to_numeric(items["difficulty"], errors="coerce").to_numpy(float)
    if not np.isfinite(values).all():
        item = items["item_id"][~np.isfinite(values)].iloc[0]
        raise InputError(f"{path}: item {item}: no number for difficulty")
    return pd.Series(values, items["item_id"].astype(str))


def names_of(paths: list[str], given: list[str], flag: str = "names") -> list[str]:
    """What sources are called: as given by a flag, or else by the last part of their paths in which they differ.

    Raises:
        InputError: there are more or fewer names than sources, or one of them twice.
    """
    if given:
        if len(given) != len(paths) or len(set(given)) < len(given) or not all(given):
            raise InputError(f"--{flag}={','.join(given)}: expected {len(paths)} different names, one per source")
        return given
    parts = [Path(os.path.abspath(path)).with_suffix("").parts for path in paths]
    for last in range(1, min(map(len, parts)) + 1):
        if len({part[-last] for part in parts}) == len(parts):
            return [part[-last] for part in parts]
    if len(set(paths)) < len(paths):
        raise InputError(f"{next(path for path in paths if paths.count(path) > 1)} is given twice")
    return paths
