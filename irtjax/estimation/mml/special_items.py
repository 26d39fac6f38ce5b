"""Items that are not estimated like the others: anchors, and items that everyone or no one answered right."""

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.kernels.models import ItemParameters, from_table
from irtjax.responses.matrix import ResponseMatrix
from irtjax.types import Bool, Shaped


def anchored_items(responses: ResponseMatrix, anchors: pd.DataFrame | None) -> Bool[np.ndarray, " I"]:
    """Which items are anchors.

    Raises:
        InputError: there are anchors, and none of them is among the items.
    """
    if anchors is None:
        return np.zeros(responses.num_items, bool)
    anchored = np.isin(responses.item_ids, anchors["item_id"].astype(str))
    if not anchored.any():
        raise InputError("no anchor item is among the items of the responses: compare the item ids")
    return anchored


def check_extremes(responses: ResponseMatrix, extreme: Bool[np.ndarray, " I"], choice: str) -> None:
    """Refuses extreme items where the choice is to refuse them.

    Raises:
        InputError: an unknown choice, or refused items; it names the first five.
    """
    if choice not in ("refuse", "keep"):
        raise InputError(f"unknown choice {choice!r} for extreme items, expected refuse or keep")
    if choice == "refuse" and extreme.any():
        names = ", ".join(f"'{item}'" for item in responses.item_ids[extreme][:5])
        more = f" and {extreme.sum() - 5} more" if extreme.sum() > 5 else ""
        raise InputError(
            f"everyone or no one answered {names}{more} right, so their difficulty has no finite maximum: "
            "remove them, or keep them under a prior (`extremes`=keep)"
        )


def place_anchors(
    items: ItemParameters,
    anchors: pd.DataFrame,
    item_ids: Shaped[np.ndarray, " I"],
    anchored: Bool[np.ndarray, " I"],
) -> ItemParameters:
    """Writes the anchors' parameters over the starting values.

    Raises:
        InputError: anchors of more than one dimension, or without parameters.
    """
    table = anchors.assign(item_id=anchors["item_id"].astype(str)).set_index("item_id").loc[item_ids[anchored]]
    held = from_table(table)
    if held.slope.shape[1] > 1:
        raise InputError("anchor items need one discrimination and a difficulty")
    placed = ItemParameters(*(np.array(leaf, float) for leaf in items))
    for leaf, values in zip(placed, held, strict=True):
        leaf[anchored] = values
    return placed
