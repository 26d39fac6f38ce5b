"""Items that are worded the other way round."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from irtjax.errors import InputError
from irtjax.responses.matrix import MISSING
from irtjax.responses.scaled import Scale, ScaledResponses


def reversed_items(responses: Any, item_ids: Sequence[str]) -> Any:
    """Responses in which some items are scored the other way round: the highest grade is the lowest.

    Args:
        responses: grades, or a matrix of right and wrong answers.
        item_ids: of these items.

    Raises:
        InputError: one of the items has counts or shares.
    """
    turned, values = np.isin(responses.item_ids, list(item_ids)), np.array(responses.values)
    if not isinstance(responses, ScaledResponses):
        return dataclasses.replace(responses, values=np.where(turned & (values >= 0), 1 - values, values))
    scales = list(responses.scales)
    for i in np.flatnonzero(turned):
        labels = scales[i].labels
        if labels is None:
            raise InputError(f"item {str(responses.item_ids[i])!r} has counts or shares: grades alone are reversed")
        if all(isinstance(label, int | float) for label in labels):
            scales[i] = Scale(tuple(labels[0] + labels[-1] - label for label in reversed(labels)))
        else:
            scales[i] = Scale(tuple(reversed(labels)))
        values[:, i] = np.where(values[:, i] >= 0, len(labels) - 1 - values[:, i], MISSING)
    return dataclasses.replace(responses, values=values, scales=tuple(scales))
