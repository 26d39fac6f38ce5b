"""What subjects of different groups are matched on: their scores on items that measure the same for all."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from irtjax.types import Bool, Float, Int

MOST_ROUNDS = 20  # of purification
MOST_CELLS = 4  # keys for each entry, up to which counting them is faster than sorting
FEW = 0.01  # of the items: so few that come or go change no score to speak of


class Graded(NamedTuple):
    """Responses as numbers one by one, and the groups.

    Attributes:
        y: (N,) grades, 1 and 0 of right and wrong.
        subjects: (N,) who gave each, in increasing order.
        items: (N,) to what.
        num_items: I.
        member: (J,) the number of each subject's group; the first is the reference.
        num_groups: G.
    """

    y: Float[np.ndarray, " N"]
    subjects: Int[np.ndarray, " N"]
    items: Int[np.ndarray, " N"]
    num_items: int
    member: Int[np.ndarray, " J"]
    num_groups: int

    def those(self, chosen: Bool[np.ndarray, " N"]) -> "Graded":
        """Some of the responses; all subjects and items stay."""
        return self._replace(y=self.y[chosen], subjects=self.subjects[chosen], items=self.items[chosen])


def of_matrix(y: Float[np.ndarray, "J I"], member: Int[np.ndarray, " J"], num_groups: int) -> Graded:
    """Responses in a matrix, NaN where missing."""
    subjects, items = np.nonzero(~np.isnan(y))
    return Graded(y[subjects, items], subjects, items, y.shape[1], member, num_groups)


def responses_to(data: Graded, items: Int[np.ndarray, " n"]) -> Float[np.ndarray, "J n"]:
    """Responses of all subjects to some items, NaN where missing."""
    found = np.full((len(data.member), len(items)), np.nan)
    place = np.full(data.num_items, -1)
    place[items] = np.arange(len(items))
    own = place[data.items] >= 0
    found[data.subjects[own], place[data.items[own]]] = data.y[own]
    return found


def answered_some(data: Graded, anchors: Bool[np.ndarray, " I"]) -> Bool[np.ndarray, " J"]:
    """Which subjects answered an anchor: others have nothing that they are matched on."""
    return np.bincount(data.subjects[anchors[data.items]], minlength=len(data.member)) > 0


def anchor_scores(data: Graded, anchors: Bool[np.ndarray, " I"]) -> Float[np.ndarray, " J"]:
    """Sums over the anchors; where answers are missing, what the mean of those given would add up to, as an integer.

    NaN of subjects who answered no anchor.
    """
    chosen, number = anchors[data.items], len(data.member)
    answered = np.bincount(data.subjects[chosen], minlength=number)
    total = np.bincount(data.subjects[chosen], data.y[chosen], number)
    some = answered > 0
    if (answered[some] == anchors.sum()).all():
        return np.where(some, total, np.nan)
    return np.round(np.divide(total, answered, out=np.full(number, np.nan), where=some) * anchors.sum())


def matched_on(data: Graded, anchors: Bool[np.ndarray, " I"]) -> tuple[Graded, Float[np.ndarray, " N"]]:
    """The responses of those who answered an anchor, and their subject's score on the anchors, with the item itself."""
    score = anchor_scores(data, anchors)[data.subjects]
    known = np.isfinite(score)
    if not known.all():
        data, score = data.those(known), score[known]
    return data, score + np.where(anchors[data.items], 0.0, data.y)


def numbered(keys: Int[np.ndarray, " N"], size: int) -> tuple[Int[np.ndarray, " K"], Int[np.ndarray, " N"]]:
    """The keys from 0 to `size` - 1 that are there, in order, and which of them each entry is."""
    if size > MOST_CELLS * len(keys):
        return np.unique(keys, return_inverse=True)
    there = np.zeros(size, bool)
    there[keys] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[keys]


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
