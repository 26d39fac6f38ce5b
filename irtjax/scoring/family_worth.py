"""What responses to known items of families are worth: grades, shares of successes, shares; and their information."""

from typing import NamedTuple

import jax
import numpy as np

from irtjax.item_models.protocol import PredictorParameters
from irtjax.responses.scaled import Scale
from irtjax.scoring.family_curves import information_of
from irtjax.scoring.family_items import KnownItems
from irtjax.types import Float

MOST_ENTRIES = 2**22  # of arrays at a time


class Worth(NamedTuple):
    """What a response to each of I items is worth at Q abilities.

    Attributes:
        mean: (Q, I).
        variance: (Q, I); of counts that of a single trial.
    """

    mean: Float[np.ndarray, "Q I"]
    variance: Float[np.ndarray, "Q I"]


def worth_at(known: KnownItems, theta: Float[np.ndarray, " Q"], of_categories: Float[np.ndarray, "I C"]) -> Worth:
    """Mean and variance of what responses are worth, in float64.

    Args:
        known: the items.
        theta: (Q,) abilities.
        of_categories: (I, C) what each category is worth (`of_scales`).
    """
    items = PredictorParameters(*(np.asarray(leaf) for leaf in known.parameters))
    parts = [known.model.worth(items, some[:, None], of_categories) for some in _parts(known, theta)]
    return Worth(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def categories_at(known: KnownItems, theta: Float[np.ndarray, " Q"]) -> Float[np.ndarray, "Q I C"]:
    """Probabilities of the categories 0 … K of items that have some; 0 beyond those of an item."""
    items = PredictorParameters(*(np.asarray(leaf) for leaf in known.parameters))
    parts = [known.model.moments(items, some[:, None], asymptotes=False).mean for some in _parts(known, theta)]
    p = np.concatenate(parts).reshape(len(theta), -1, known.model.per_item)
    return np.concatenate([np.maximum(1 - p.sum(axis=2, keepdims=True), 0.0), p], axis=2)


def information_at(known: KnownItems, theta: Float[np.ndarray, " Q"]) -> Float[np.ndarray, "Q I"]:
    """Fisher information of one response, or of one trial, at abilities."""
    items = PredictorParameters(*(np.asarray(leaf) for leaf in known.parameters))
    with jax.enable_x64(True):
        parts = [
            information_of(known.model.moments(items, some[:, None], asymptotes=False), items)[2]
            for some in _parts(known, theta)
        ]
    return np.maximum(np.concatenate([np.asarray(part) for part in parts]), 0.0)


def of_scales(known: KnownItems, scales: tuple[Scale, ...] | None = None) -> Float[np.ndarray, "I C"]:
    """What each category of each item is worth, (I, C); 0 beyond those that it has, and for counts and shares.

    Args:
        known: the items, perhaps with fewer categories than their scale has.
        scales: by which categories are worth something; by default those of the items.
    """
    found = np.zeros((len(known.item_ids), known.model.per_item + 1))
    for i, scale in enumerate(known.scales):
        if scale.labels is not None:
            whole = scale if scales is None else scales[i]
            found[i, : len(scale.labels)] = whole.worth_of(scale)
    return found


def _parts(known: KnownItems, theta: Float[np.ndarray, " Q"]) -> list[np.ndarray]:
    """Abilities, some at a time."""
    size = max(1, MOST_ENTRIES // (len(known.item_ids) * (known.model.per_item + 1) ** 2))
    return [np.asarray(theta[at : at + size], float) for at in range(0, len(theta), size)]
