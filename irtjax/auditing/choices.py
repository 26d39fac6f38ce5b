"""Which option each subject chose, and which is right by the key."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.responses.matrix import MISSING, ResponseMatrix
from irtjax.storage.frames import as_frame
from irtjax.types import Int, Shaped

MOST_OPTIONS = 50


class Choices(NamedTuple):
    """Options that J subjects chose at I items.

    Attributes:
        codes: (J, I) number of the option, -1 where none was chosen.
        key: (I,) number of the right one.
        options: their names.
        subject_ids: (J,).
        item_ids: (I,).
    """

    codes: Int[np.ndarray, "J I"]
    key: Int[np.ndarray, " I"]
    options: Shaped[np.ndarray, " K"]
    subject_ids: Shaped[np.ndarray, " J"]
    item_ids: Shaped[np.ndarray, " I"]

    def scored(self) -> ResponseMatrix:
        """Right and wrong answers; missing where none was chosen."""
        right = np.where(self.codes < 0, MISSING, self.codes == self.key).astype(np.int8)
        return ResponseMatrix(right, self.subject_ids, self.item_ids)


def read_choices(
    choices: Any,
    key: Any,
    subject_ids: Shaped[np.ndarray, " J"] | None = None,
    item_ids: Shaped[np.ndarray, " I"] | None = None,
) -> Choices:
    """Choices and key in one order.

    Args:
        choices: a table by subject and item, or an array in the order of the ids; empty or missing where none was made.
        key: by item id, or in the order of the ids.
        subject_ids: the order; by default that of the table.
        item_ids: the same.

    Raises:
        InputError: no key, or none of an item; ids that are not there or twice; another shape; more than 50 options.
    """
    if key is None:
        raise InputError("`choices` need a `key`: the right option of each item")
    choices = as_frame(choices, "`choices`", "subject_id")
    if isinstance(choices, pd.DataFrame):
        choices = choices.set_axis(choices.index.astype(str)).set_axis(choices.columns.astype(str), axis=1)
        subject_ids = choices.index.to_numpy(str) if subject_ids is None else subject_ids
        item_ids = choices.columns.to_numpy(str) if item_ids is None else item_ids
        for name, known, axis in (("subject", subject_ids, choices.index), ("item", item_ids, choices.columns)):
            absent = ~np.isin(known, axis)
            if absent.any():
                raise InputError(f"`choices`: no {name} '{known[absent][0]}'")
            if axis.has_duplicates:
                raise InputError(f"`choices`: {name} '{axis[axis.duplicated()][0]}' is there twice")
        choices = choices.loc[subject_ids, item_ids].to_numpy()
    if subject_ids is None or item_ids is None:
        raise InputError("`choices`: expected a table by subject and item")
    if isinstance(key, Mapping | pd.Series):
        key = pd.Series(key).rename(str).reindex(item_ids).to_numpy()
    choices, key = np.asarray(choices, object), np.asarray(key, object)
    shape = len(subject_ids), len(item_ids)
    if choices.shape != shape or key.shape != shape[1:]:
        raise InputError(f"`choices` {choices.shape} and `key` {key.shape}: expected {shape} and {shape[1:]}")
    without = pd.isna(key) | (key == "")
    if without.any():
        raise InputError(f"`key`: item '{item_ids[without][0]}' has none")
    text, right = pd.Series(choices.ravel()), key.astype(str)
    text = text.where(text.notna() & (text != ""), None)
    options = np.unique(np.concatenate([right, text.dropna().astype(str)]))
    if len(options) > MOST_OPTIONS:
        raise InputError(f"`choices` have {len(options):,} options, expected at most {MOST_OPTIONS}")
    codes = pd.Categorical(text.astype("string"), categories=options).codes.reshape(shape)
    return Choices(codes, np.searchsorted(options, right), options, subject_ids, item_ids)
