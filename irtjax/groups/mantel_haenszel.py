"""DIF by strata of equal scores: Mantel and Haenszel (1959), Mantel (1963) for grades, any number of groups."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import chi2, norm

from irtjax.groups.matching import Graded, matched_on, numbered
from irtjax.types import Bool, Float, Int, Shaped

TO_DELTA = -2.35  # from log odds ratios to ETS's scale of difficulty, on which 1 is 4/15 of a standard deviation
MODERATE, LARGE = 1.0, 1.5  # |Δ| of classes B and C
LEVEL = 0.05


class Strata(NamedTuple):
    """Strata of subjects with one score, K of all items together.

    Attributes:
        items: (K,) whose stratum each is.
        num_items: I.
        number: (G, K) responses of each group.
        total: (G, K) their sums.
        square: (G, K) their sums of squares.
    """

    items: Int[np.ndarray, " K"]
    num_items: int
    number: Float[np.ndarray, "G K"]
    total: Float[np.ndarray, "G K"]
    square: Float[np.ndarray, "G K"]

    def sums(self, of_strata: Float[np.ndarray, " K"]) -> Float[np.ndarray, " I"]:
        """Over the strata of each item."""
        return np.bincount(self.items, of_strata, self.num_items)


class MantelHaenszel(NamedTuple):
    """Of each item, (I,).

    Attributes:
        statistic: chi-square, of G - 1 degrees of freedom; for right/wrong items and two groups with the correction for
            continuity, unless that was not asked for.
        log_odds: common log odds ratio, the first group over the second, of right/wrong items and two groups; else NaN.
        log_odds_se: standard error (Robins, Breslow and Greenland 1986).
        difference: mean response of the group that differs most from the first minus that of the first, in strata
            weighed by that group (Dorans and Kulick 1986; Zwick and Thayer 1996).
    """

    statistic: Float[np.ndarray, " I"]
    log_odds: Float[np.ndarray, " I"]
    log_odds_se: Float[np.ndarray, " I"]
    difference: Float[np.ndarray, " I"]

    @property
    def delta(self) -> Float[np.ndarray, " I"]:
        """Δ = -2.35 log odds ratio (Holland and Thayer 1988), negative where the second group finds the item harder."""
        return TO_DELTA * self.log_odds

    def ets_class(self) -> Shaped[np.ndarray, " I"]:
        """ETS's classes (Zwick 2012): A if |Δ| < 1 or not significant, C if |Δ| >= 1.5 and clearly above 1, else B."""
        size, error = np.abs(self.delta), -TO_DELTA * self.log_odds_se
        with np.errstate(invalid="ignore"):
            small = (size < MODERATE) | ~(self.statistic > chi2.ppf(1 - LEVEL, 1))
            large = (size >= LARGE) & (size - norm.ppf(1 - LEVEL) * error > MODERATE)
        return np.where(np.isnan(size), "", np.where(small, "A", np.where(large, "C", "B")))


def mantel_haenszel(data: Graded, anchors: Bool[np.ndarray, " I"], *, continuity: bool = True) -> MantelHaenszel:
    """Tests whether a response depends on the group, given the score on the anchors and the item itself.

    In stratum k with n_k responses, n_gk of them of group g, of mean ȳ_k and sum of squares about it SS_k, the sum of a
    group's responses has mean n_gk ȳ_k and covariances n_gk (n_k [g = h] - n_hk) / n_k · SS_k / (n_k - 1).

    Args:
        data: responses and groups; subjects who answered no anchor are left out.
        anchors: (I,) whose responses make the score.
        continuity: whether 1/2 is taken off, for right/wrong items and two groups.
    """
    strata = _strata(*matched_on(data, anchors))
    statistic, binary = _chi_squares(strata, continuity)
    log_odds, error = _odds(strata, strata.number.sum(axis=0), binary)
    return MantelHaenszel(statistic, log_odds, error, _difference(strata))


def chi_squares(data: Graded, anchors: Bool[np.ndarray, " I"], *, continuity: bool = True) -> Float[np.ndarray, " I"]:
    """The statistics of `mantel_haenszel` alone."""
    return _chi_squares(_strata(*matched_on(data, anchors)), continuity)[0]


def _strata(data: Graded, score: Float[np.ndarray, " N"]) -> Strata:
    """Sums over the responses of each group to each item with each score."""
    rank, different = pd.factorize(score, sort=True)
    used, place = numbered(data.items.astype(np.int64) * len(different) + rank, data.num_items * len(different))
    cell = data.member[data.subjects] * len(used) + place

    def sums(of_responses: Any) -> Float[np.ndarray, "G K"]:
        return np.bincount(cell, of_responses, data.num_groups * len(used)).reshape(data.num_groups, -1)

    number, total = sums(None), sums(data.y)
    square = total if ((data.y == 0) | (data.y == 1)).all() else sums(data.y**2)
    return Strata(used // len(different), data.num_items, number.astype(float), total, square)


def _chi_squares(strata: Strata, continuity: bool) -> tuple[Float[np.ndarray, " I"], Bool[np.ndarray, " I"]]:
    """Of items with these strata, and which are right/wrong ones of two groups."""
    n = strata.number.sum(axis=0)
    used = n > 1
    mean = strata.total.sum(axis=0) / n
    spread = np.maximum(strata.square.sum(axis=0) - n * mean**2, 0.0)
    variance = np.divide(spread, n * (n - 1), out=np.zeros(n.shape), where=used)
    others = range(1, len(strata.number))
    excess = np.stack(
        [strata.sums(np.where(used, strata.total[g] - strata.number[g] * mean, 0.0)) for g in others], axis=1
    )
    covariance = np.empty((strata.num_items, len(others), len(others)))
    for row, g in enumerate(others):
        for column, h in enumerate(others):
            own = n if g == h else 0.0
            covariance[:, row, column] = strata.sums(strata.number[g] * (own - strata.number[h]) * variance)
    graded = (strata.square != strata.total).any(axis=0)
    binary = (strata.sums(graded.astype(float)) == 0) & (len(others) == 1)
    correction = np.where(binary & continuity, 0.5, 0.0)[:, None]
    size = np.maximum(np.abs(excess) - correction, 0.0) * np.sign(excess) if len(others) == 1 else excess
    sound = np.linalg.det(covariance) > 0
    safe = np.where(sound[:, None, None], covariance, np.eye(len(others)))
    statistic = np.where(sound, (size * np.linalg.solve(safe, size[:, :, None])[:, :, 0]).sum(axis=1), np.nan)
    return statistic, binary


def _odds(
    strata: Strata, n: Float[np.ndarray, " K"], binary: Bool[np.ndarray, " I"]
) -> tuple[Float[np.ndarray, " I"], Float[np.ndarray, " I"]]:
    """Common log odds ratio and its standard error, NaN of other items than right/wrong ones of two groups."""
    if not binary.any():
        return np.full(len(binary), np.nan), np.full(len(binary), np.nan)
    (a, c), (b, d) = strata.total[:2], (strata.number - strata.total)[:2]
    with np.errstate(all="ignore"):
        r, s = a * d / n, b * c / n
        p, q = (a + d) / n, (b + c) / n
        all_r, all_s = strata.sums(r), strata.sums(s)
        variance = (
            strata.sums(p * r) / (2 * all_r**2)
            + strata.sums(p * s + q * r) / (2 * all_r * all_s)
            + strata.sums(q * s) / (2 * all_s**2)
        )
        log_odds = np.log(all_r / all_s)
    finite = binary & (all_r > 0) & (all_s > 0)
    return np.where(finite, log_odds, np.nan), np.where(finite, np.sqrt(variance), np.nan)


def _difference(strata: Strata) -> Float[np.ndarray, " I"]:
    """Mean response of the group that differs most minus that of the first, strata weighed by that group."""
    found = []
    for g in range(1, len(strata.number)):
        both = (strata.number[0] > 0) & (strata.number[g] > 0)
        weight = np.where(both, strata.number[g], 0.0)
        with np.errstate(all="ignore"):
            means = [np.where(both, strata.total[k] / strata.number[k], 0.0) for k in (g, 0)]
            found.append(strata.sums(weight * (means[0] - means[1])) / strata.sums(weight))
    every = np.stack(found)
    return np.take_along_axis(every, np.nan_to_num(np.abs(every)).argmax(axis=0)[None], axis=0)[0]
