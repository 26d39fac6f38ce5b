"""Parts of a response matrix that are held out in turn."""

import numpy as np

from irtjax.responses.matrix import MISSING
from irtjax.types import Int

KEPT = -1  # the fold of what is never held out


def folds_of_cells(values: Int[np.ndarray, "J I"], folds: int, seed: int) -> Int[np.ndarray, "J I"]:
    """The fold in which each observed response is held out, at random; -1 for missing ones.

    If all responses of a subject or an item fell into one fold, one of them is never held out (-1 too): nothing would
    be known of that subject or item.
    """
    rng = np.random.default_rng(seed)
    fold = np.full(values.shape, KEPT, np.int8)
    observed = values != MISSING
    number = int(observed.sum())
    fold[observed] = rng.permutation(np.arange(number) % folds)
    for one in (fold, fold.T):
        largest, smallest = one.max(axis=1), np.where(one == KEPT, folds, one).min(axis=1)
        seen = (values if one is fold else values.T) != MISSING
        for row in np.flatnonzero((largest == smallest) & ~(seen & (one == KEPT)).any(axis=1)):
            one[row, rng.choice(np.flatnonzero(seen[row]))] = KEPT
    return fold


def folds_of(number: int, folds: int, seed: int) -> Int[np.ndarray, " number"]:
    """The fold of each of so many subjects or items: random folds that differ in size by one at most."""
    return np.random.default_rng(seed).permutation(np.arange(number) % folds)
