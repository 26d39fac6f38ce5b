"""What the checkpoints of one training say of each example: dataset cartography and forgetting events."""

from typing import NamedTuple

import numpy as np

from irtjax.types import Float, Int


class Cartography(NamedTuple):
    """Dataset cartography (Swayamdipta et al. 2020, section 2): (N,) each, NaN where nothing was predicted.

    Attributes:
        confidence: mean over checkpoints of the probability p of the label. Examples that are low are hard to learn.
        variability: sqrt(mean (p - confidence)²). Examples that are high are ambiguous.
    """

    confidence: Float[np.ndarray, " N"]
    variability: Float[np.ndarray, " N"]


def cartography(confidence: Float[np.ndarray, "M N"]) -> Cartography:
    """Mean and standard deviation over checkpoints (or models) of the probability of the label.

    Args:
        confidence: (M, N) probability of the label, NaN where nothing was predicted.
    """
    known = ~np.isnan(confidence)
    number = known.sum(axis=0)
    with np.errstate(invalid="ignore"):
        mean = np.where(known, confidence, 0).sum(axis=0, dtype=float) / number
        variance = np.where(known, confidence - mean, 0.0) ** 2
        return Cartography(mean, np.sqrt(variance.sum(axis=0) / number))


def forgetting_events(right: Int[np.ndarray, "E N"]) -> Float[np.ndarray, " N"]:
    """How often each example was forgotten: right at one checkpoint and wrong at the next (Toneva et al. 2019).

    Args:
        right: (E, N) of checkpoints in order: 1 right, 0 wrong, -1 not predicted. These are passed over: the
            checkpoints before and after them are neighbours.

    Returns:
        (N,) counts; inf of an example that was never right, which counts as forgotten most (their section 3).
    """
    events, before = np.zeros(right.shape[1]), np.zeros(right.shape[1], bool)
    for row in right:
        events += before & (row == 0)
        before = np.where(row < 0, before, row == 1)
    return np.where((right == 1).any(axis=0), events, np.inf)
