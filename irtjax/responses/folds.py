"""Parts of a response matrix that are held out in turn."""

import numpy as np

from irtjax.responses.matrix import MISSING
from irtjax.responses.sparse import SparseResponses
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


def folds_of_answers(responses: SparseResponses, folds: int, seed: int) -> Int[np.ndarray, " N"]:
    """The fold of each answer: that which `folds_of_cells` gives its cell of the whole matrix."""
    rng = np.random.default_rng(seed)
    fold = rng.permutation((np.arange(responses.num_answers) % folds).astype(np.int64)).astype(np.int8)
    by_item = np.argsort(responses.items, kind="stable")
    in_columns = np.concatenate([[0], np.cumsum(np.bincount(responses.items, minlength=responses.num_items))])
    for starts, order in ((responses.starts, None), (in_columns, by_item)):
        one = fold if order is None else fold[order]
        some = np.flatnonzero(np.diff(starts) > 0)
        first = starts[some]
        alike = np.maximum.reduceat(one, first) == np.minimum.reduceat(np.where(one == KEPT, folds, one), first)
        alike &= np.minimum.reduceat(one, first) != KEPT
        for row in some[alike]:
            kept = rng.choice(np.arange(starts[row], starts[row + 1]))
            fold[kept if order is None else order[kept]] = KEPT
    return fold


def folds_of(number: int, folds: int, seed: int) -> Int[np.ndarray, " number"]:
    """The fold of each of so many subjects or items: random folds that differ in size by one at most."""
    return np.random.default_rng(seed).permutation(np.arange(number) % folds)
