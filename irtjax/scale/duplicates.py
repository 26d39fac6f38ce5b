"""Which items are another one once more? Their answers agree more than two items of one ability can."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import expit
from scipy.stats import norm

from irtjax.kernels.quadrature import rectangular
from irtjax.scale.conditional_tables import two_sided_p_values
from irtjax.scale.correlations import correlations_of
from irtjax.scale.tetrachoric import pair_tables
from irtjax.types import Bool, Float, Int

STEEP = 4.0  # slope, in logits for a standard deviation of ability, that hardly an item exceeds
PROBIT = 1.702  # logits of a normal ogive


class Duplicate(NamedTuple):
    """An item, the earlier one that it repeats, and the correlation of their answers."""

    item: int
    earlier: int
    correlation: float


def duplicates(values: Float[np.ndarray, "J I"], least: float, level: float) -> list[Duplicate]:
    """Items whose answers correlate by `least` or more with those to an earlier one, and not by chance.

    Answers of few subjects to very easy or hard items agree by chance, or because the same subject is able. So the
    table of both answers is compared, given its margins, with that of two items of the same shares of right answers
    that measure a normal ability as steeply as hardly an item does: no pair of different items agrees more often. The
    p-value (`irtjax.scale.conditional_tables`) times the number of all pairs is below the level.

    Args:
        values: right (1) and wrong (0), or numbers of grades, which are cut where the halves are most equal; NaN where
            missing. Every item varies.
        least: absolute value, as one of two items may have the reversed key of the other.
        level: of the test.
    """
    correlation = correlations_of(values)
    first, second = np.nonzero(np.triu(np.abs(correlation) >= least, 1))
    if not first.size:
        return []
    high, num_pairs = _upper_half(values), values.shape[1] * (values.shape[1] - 1) / 2
    sign = np.sign(correlation[first, second])
    p_value = _p_values(high, first, second, sign)
    found = np.zeros(correlation.shape, bool)
    found[first, second] = p_value * num_pairs < level
    return list(_each_once(found, correlation))


def _each_once(found: Bool[np.ndarray, "I I"], correlation: Float[np.ndarray, "I I"]) -> Iterator[Duplicate]:
    """Of items that repeat one another, all but the first."""
    stays: list[int] = []
    for item in range(len(found)):
        earlier = next((one for one in stays if found[one, item]), None)
        if earlier is None:
            stays.append(item)
        else:
            yield Duplicate(item, earlier, float(correlation[earlier, item]))


def _upper_half(values: Float[np.ndarray, "J I"]) -> Int[np.ndarray, "J I"]:
    """1 above the cut of each item, 0 below, -1 where missing."""
    result = np.full(values.shape, -1)
    for item, column in enumerate(values.T):
        seen = ~np.isnan(column)
        cuts = np.unique(column[seen])[1:]
        above = column[seen, None] >= cuts[None]
        result[seen, item] = above[:, np.argmin(np.abs(above.mean(axis=0) - 0.5))]
    return result


def _p_values(
    high: Int[np.ndarray, "J I"], first: Int[np.ndarray, " P"], second: Int[np.ndarray, " P"], sign: np.ndarray
) -> Float[np.ndarray, " P"]:
    """Of pairs, against the odds ratio of two steep items."""
    nodes = rectangular()
    theta, weights = nodes.nodes[:, 0], np.exp(nodes.log_weights)
    share = np.clip(np.where(high < 0, 0, high).sum(axis=0) / (high >= 0).sum(axis=0), 1e-6, 1 - 1e-6)
    intercept = norm.ppf(share) * np.sqrt(PROBIT**2 + STEEP**2)
    result = np.empty(len(first))
    for at, (one, other, by) in enumerate(zip(first, second, sign, strict=True)):
        table = pair_tables(high[:, [one, other]])[0, 1]
        p = expit(STEEP * theta + intercept[one])
        q = expit(STEEP * theta + by * intercept[other])  # the reversed key turned round
        table = table if by > 0 else table[:, ::-1]
        both, neither = weights @ (p * q), weights @ ((1 - p) * (1 - q))
        odds = both * neither / ((weights @ (p * (1 - q))) * (weights @ ((1 - p) * q)))
        fewer = table[1, 1] * table[0, 0] < odds * table[1, 0] * table[0, 1]
        result[at] = 1.0 if fewer else two_sided_p_values(table[None], np.array([odds]))[0]
    return result
