"""What subjects of different groups are matched on: their scores on items that measure the same for all."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from irtjax.errors import InputError
from irtjax.types import Bool, Float, Int

MOST_ROUNDS = 20  # of purification
FEW = 0.01  # of the items: so few that come or go change no score to speak of


class Graded(NamedTuple):
    """Responses as numbers, and the groups.

    Attributes:
        y: (J, I) grades, 1 and 0 of right and wrong; NaN where missing.
        member: (J,) the number of each subject's group; the first is the reference.
        num_groups: G.
    """

    y: Float[np.ndarray, "J I"]
    member: Int[np.ndarray, " J"]
    num_groups: int


def scores(y: Float[np.ndarray, "J I"], anchors: Bool[np.ndarray, " I"]) -> Float[np.ndarray, " J"]:
    """Sums over the anchors; where answers are missing, what the mean of those given would add up to, as an integer.

    Raises:
        InputError: a subject answered no anchor.
    """
    chosen = y[:, anchors]
    there = ~np.isnan(chosen)
    number = there.sum(axis=1)
    if (number == 0).any():
        raise InputError(f"subject {int(np.argmin(number)) + 1} of the table answered no anchor item: leave it out")
    total = np.nansum(chosen, axis=1)
    return total if there.all() else np.round(total / number * chosen.shape[1])


def purified(
    num_items: int, flagged_by: Callable[[Bool[np.ndarray, " I"]], Bool[np.ndarray, " I"]], purify: bool
) -> tuple[Bool[np.ndarray, " I"], int]:
    """Anchors that no test flags, each round tested with those of the round before; and the number of rounds.

    Ends where the anchors stay as they are, but for one item in a hundred, or come back to those of an earlier round,
    or would be fewer than two.

    Args:
        num_items: I.
        flagged_by: which items are flagged, given the anchors.
        purify: whether there is more than the first round, in which all items are anchors.
    """
    anchors = np.ones(num_items, bool)
    if not purify:
        return anchors, 0
    seen = {anchors.tobytes()}
    for number in range(1, MOST_ROUNDS + 1):
        found = ~flagged_by(anchors)
        if found.sum() < 2 or (found != anchors).mean() <= FEW:
            return anchors, number
        if found.tobytes() in seen:
            return found, number
        seen.add(found.tobytes())
        anchors = found
    return anchors, MOST_ROUNDS
