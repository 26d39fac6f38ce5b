"""Items whose responses can be summed to one score: those with categories, and counts of one number of trials each."""

import dataclasses

import numpy as np
from scipy.stats import binom

from irtjax.item_models.beta_binomial import BetaBinomial
from irtjax.item_models.binary import Binary
from irtjax.item_models.binomial import Binomial
from irtjax.item_models.categories import Coordinates, Indicators
from irtjax.scale.response_curves import category_curves, count_curves
from irtjax.scale.tested import Tested
from irtjax.types import Float, Int

MOST = 500  # of the sums of a test with counts


def highest_sums(test: Tested) -> Int[np.ndarray, " I"] | None:
    """The highest category of each item, of counts the number of trials; None where responses have no sum.

    They have none where an item has shares, or counts of different numbers of trials, or where counts have too many.
    """
    if test.categorical:
        return test.top
    top = np.array(test.top)
    for family, items in test.model.groups(len(top)):
        if isinstance(family, Indicators) and not isinstance(family, BetaBinomial):
            continue
        most = np.zeros(len(top))
        np.maximum.at(most, test.single.items, test.trials)
        own = np.isin(test.single.items, items)
        if not isinstance(family, Binomial | BetaBinomial) or (test.trials != most[test.single.items])[own].any():
            return None
        top[items] = most[items]
    return top if top.sum() <= MOST else None


def summed_curves(
    test: Tested, theta: Float[np.ndarray, " Q"], top: Int[np.ndarray, " I"]
) -> Float[np.ndarray, "Q I C"]:
    """Probabilities of categories, or of counts, at abilities; 0 beyond the highest of an item."""
    if test.categorical or isinstance(test.model, Binary):
        return category_curves(test.model, test.items, theta).p
    p = np.zeros((len(theta), len(top), int(top.max()) + 1))
    for family, items in test.model.groups(len(top)):
        own = test.items.take(items)
        if isinstance(family, BetaBinomial):
            for n in np.unique(top[items]):
                same = items[top[items] == n]
                p[:, same, : n + 1] = count_curves(family, test.items.take(same), theta, int(n)).p
        elif isinstance(family, Indicators):
            alone = dataclasses.replace(test.model, families=(family,), of_items=(0,))
            some = category_curves(alone, own, theta).p[:, :, : p.shape[2]]
            p[:, items, : some.shape[2]] = some
        elif len(items):
            x = theta[:, None] * np.asarray(own.slope)[:, 0] + np.asarray(own.intercept)
            right = np.asarray(family.mean(Coordinates(x, np.asarray(own.others), np.asarray(own.top)), 1))[:, :, 0]
            p[:, items] = binom.pmf(np.arange(p.shape[2]), top[items, None], right[:, :, None])
    return p
