"""Do two crowds find the same items hard? Agreement of difficulties from two sources, by their ranks.

Ranks, because the scales of two fits have origins and units of their own.
"""

import itertools
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import rankdata, spearmanr

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.types import AnyArray, Float, Int, Shaped

LEAST_ITEMS = 4  # of which a rank correlation says anything
RESAMPLES = 2000
TIED = 1e-6  # of the spread; items with equal answers are equally hard, and a fit finds them so up to rounding
ALL = "all"  # the group of all items


class RankAgreement(NamedTuple):
    """How far two sources agree on which items are hard.

    Attributes:
        num_items: I, those that both sources know.
        spearman: rank correlation, -1 to 1; NaN where one source has all difficulties equal.
        low, high: its 95% interval, by percentiles of the bootstrap over items.
        rank_difference: mean absolute difference of ranks, 0 to I/2.
        random_rank_difference: what it is on average where one source ranks at random, (I² - 1) / 3I.
    """

    num_items: int
    spearman: float
    low: float
    high: float
    rank_difference: float
    random_rank_difference: float


@checks_types
def rank_agreement(
    one: Float[AnyArray, " I"], other: Float[AnyArray, " I"], seed: int = 0, resamples: int = RESAMPLES
) -> RankAgreement:
    """Compares two sets of difficulties of the same items.

    Difficulties that differ by no more than `TIED` of their spread are tied, and have the mean of their ranks.

    Args:
        one: difficulties of one source, or anything else that orders the items alike.
        other: those of the other.
        seed: of the bootstrap.
        resamples: of the items, with replacement.

    Raises:
        InputError: there are fewer than `LEAST_ITEMS`.
    """
    one, other = _with_ties(one), _with_ties(other)
    if one.size < LEAST_ITEMS:
        raise InputError(f"{one.size} items in common, expected at least {LEAST_ITEMS}")
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        spearman, low, high = (float("nan"),) * 3
    else:
        spearman = float(spearmanr(one, other).statistic)
        low, high = _bootstrap(one, other, np.random.default_rng(seed), resamples)
    return RankAgreement(
        num_items=one.size,
        spearman=spearman,
        low=low,
        high=high,
        rank_difference=float(np.abs(rankdata(one) - rankdata(other)).mean()),
        random_rank_difference=(one.size**2 - 1) / (3 * one.size),
    )


@checks_types
def agreement_table(
    table: pd.DataFrame, labels: pd.Series | None, reliabilities: Mapping[str, float], seed: int = 0
) -> pd.DataFrame:
    """Each two sources compared, over all items and over those of each label.

    Args:
        table: of `join`: one row per item, one column per source.
        labels: of the items, in the same order; None where none are known.
        reliabilities: of the difficulties of each source; NaN where it is not known.
        seed: of the bootstrap.

    Returns:
        One row per pair and group: `one, other, group` (`ALL`, then the labels that enough items have), `items`, the
        fields of `RankAgreement`, and of all items the `disattenuated` correlation.
    """
    groups = {ALL: np.ones(len(table), bool)}
    if labels is not None:
        groups |= {str(label): (labels == label).to_numpy() for label in sorted(labels.dropna().unique())}
    rows = []
    for one, other in itertools.combinations(table, 2):
        for name, members in groups.items():
            if members.sum() < LEAST_ITEMS:
                continue
            left, right = (table[source].to_numpy()[members] for source in (one, other))
            found = rank_agreement(left, right, seed=seed)
            row = {"one": one, "other": other, "group": name, "items": found.num_items, **found._asdict()}
            if name == ALL:  # the reliability of difficulties within a class is another
                row["disattenuated"] = disattenuated(found.spearman, reliabilities[one], reliabilities[other])
            rows.append(row)
    return pd.DataFrame(rows).drop(columns="num_items")


def rank_gaps(one: Shaped[AnyArray, " I"], other: Shaped[AnyArray, " I"]) -> Float[np.ndarray, " I"]:
    """How much higher each item ranks by one source than by the other, as a share of the items: -1 to 1.

    Args:
        one: difficulties of one source, or anything else that orders the items alike.
        other: those of the other.
    """
    return (rankdata(_with_ties(one)) - rankdata(_with_ties(other))) / np.size(one)


def spearman_brown(half: float) -> float:
    """Reliability of a whole whose two halves correlate by `half`: 2r / (1 + r) (Spearman 1910; Brown 1910)."""
    return 2 * half / (1 + half)


def disattenuated(correlation: float, reliability: float, other_reliability: float) -> float:
    """What the correlation would be if both sources were free of error: r / √(r₁ r₂) (Spearman 1904).

    By chance it may be above 1. NaN where a reliability is not above 0.
    """
    product = reliability * other_reliability
    return correlation / product**0.5 if reliability > 0 and product > 0 else float("nan")


def join(difficulties: Mapping[str, pd.Series]) -> pd.DataFrame:
    """One row per item that all sources know, one column per source.

    Args:
        difficulties: by the name of the source; each has the item ids for index.

    Raises:
        InputError: too few items are in all of them.
    """
    table = pd.DataFrame(dict(difficulties)).dropna()
    # of the first source, whose order a reader knows
    first = next(iter(difficulties.values()))
    table = table.loc[first.index[first.index.isin(table.index)]]
    if len(table) < LEAST_ITEMS:
        sizes = ", ".join(f"{name} has {len(series):,}" for name, series in difficulties.items())
        raise InputError(
            f"{len(table)} items in common, expected at least {LEAST_ITEMS} ({sizes}): items are joined by their ids"
        )
    return table


def _with_ties(values: Shaped[AnyArray, " I"]) -> Float[np.ndarray, " I"]:
    """Rounded values in units of `TIED` of their spread: from the 10th to the 90th percentile, or the range."""
    values = np.asarray(values, float)
    if not values.size or not np.isfinite(values).all():
        return values
    spread = np.subtract(*np.quantile(values, [0.9, 0.1])) or np.ptp(values)
    return np.round(values / (TIED * spread)) if spread > 0 else values


def _bootstrap(
    one: Float[np.ndarray, " I"], other: Float[np.ndarray, " I"], rng: np.random.Generator, resamples: int
) -> tuple[float, float]:
    """The 2.5% and 97.5% points of the rank correlation over resamples of the items.

    A resample is a number of copies of each item. The ranks within it follow from those numbers without sorting again.
    """
    size = one.size
    codes = [np.unique(values, return_inverse=True)[1] for values in (one, other)]
    found = []
    for _ in range(resamples):
        copies = np.bincount(rng.integers(size, size=size), minlength=size)
        x, y = (_ranks(code, copies) for code in codes)
        spread = np.sqrt((copies @ x**2) * (copies @ y**2))
        found.append(copies @ (x * y) / spread if spread > 0 else np.nan)
    low, high = np.nanpercentile(found, [2.5, 97.5]) if np.isfinite(found).any() else (np.nan, np.nan)
    return float(low), float(high)


def _ranks(code: Int[np.ndarray, " I"], copies: Int[np.ndarray, " I"]) -> Float[np.ndarray, " I"]:
    """Mean rank of the copies of each item, less the mean of all.

    Args:
        code: place of each item among the values that occur; items with the same value have the same.
        copies: of each item.
    """
    numbers = np.bincount(code, weights=copies)
    return (np.cumsum(numbers) - (numbers - 1) / 2)[code] - (copies.sum() + 1) / 2
