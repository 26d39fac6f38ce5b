"""DIF by fits in which an item has parameters of its own in each group: likelihood ratios and Wald tests.

Anchors are the same in all groups, all other items are free. An anchor is tested by a fit in which it is free as well,
another item by one in which it is the same for all (Thissen, Steinberg and Wainer 1993), or, by Wald tests, with the
covariance of its parameters in the groups (Lord 1980; Cai, Thissen and du Toit 2011).
"""

import functools
import itertools
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np

from irtjax.estimation.free_items import answers_by_group
from irtjax.estimation.grouping import ALL, DIFFICULTY, Membership
from irtjax.estimation.problem import as_array
from irtjax.fits.result import Fit
from irtjax.fitting import fit as fit_responses
from irtjax.kernels.models import probabilities
from irtjax.kernels.quadrature import gauss_hermite
from irtjax.populations.groups import FittedGroups
from irtjax.scoring.family_items import known_items
from irtjax.scoring.family_worth import categories_at
from irtjax.types import Bool, Float, Int

KINDS = {"both": ALL, "uniform": DIFFICULTY}
MOST_KEPT = 4  # fits, with their responses
NODES = 21  # of a population, over which a difference is averaged


class ModelTest(NamedTuple):
    """Of each item (I,).

    Attributes:
        statistic: chi-square.
        df: parameters that may differ.
        effect: the largest difference of expected responses between a group and the first, at equal ability, averaged
            over the group's population (signed item difference in the sample: Meade 2010).
    """

    statistic: Float[np.ndarray, " I"]
    df: Int[np.ndarray, " I"]
    effect: Float[np.ndarray, " I"]


def fits_of(responses: Any, model: str, found: Membership) -> Callable[[frozenset[tuple[str, str]]], Fit]:
    """Fits by what is free in them, pairs of item id and kind; the last are kept.

    Args:
        responses: right and wrong answers, or grades.
        model: of all items.
        found: the groups.
    """

    @functools.lru_cache(maxsize=MOST_KEPT)
    def fit(free: frozenset[tuple[str, str]]) -> Fit:
        return fit_responses(responses, model, groups=found, free_by_group=dict(free) or None, priors=None)

    return fit


def testable(responses: Any, found: Membership, test: str) -> set[str]:
    """Ids of items that two groups answered or more, none of them alike: others have no finite maximum.

    Where a part of the item stays the same (`test` is not "both"), they also have to use the same categories.
    """
    some = set()
    for item, name in enumerate(responses.item_ids.astype(str)):
        given = answers_by_group(responses, found, item)
        same = test == "both" or len({tuple(values) for values in given.values()}) == 1
        if len(given) > 1 and same and all(len(values) > 1 for values in given.values()):
            some.add(str(name))
    return some


def likelihood_ratios(
    fit: Callable[[frozenset[tuple[str, str]]], Fit],
    items: list[str],
    anchors: Bool[np.ndarray, " I"],
    test: str,
    tested: Collection[str],
) -> ModelTest:
    """Twice the difference of log-likelihoods with the item free and the same for all.

    Args:
        fit: see `fits_of`.
        items: ids.
        anchors: (I,) which items are the same for all.
        test: "both", "uniform" (with the slope the same) or "nonuniform" (all free, against all but the slope).
        tested: ids of the items that have a test (`testable`); of others all is NaN.
    """
    rows: list[tuple[float, int, float]] = []
    for item in items:
        if item not in tested:
            rows.append((np.nan, 0, np.nan))
            continue
        free = _others(items, anchors, item)
        more = fit(free | {(item, KINDS.get(test, ALL))})
        less = fit(free | {(item, DIFFICULTY)}) if test == "nonuniform" else fit(free)
        statistic = max(2 * (more.log_likelihood - less.log_likelihood), 0.0)
        rows.append((statistic, more.num_parameters - less.num_parameters, _effect(more, item)))
    return _as_arrays(rows)


def wald_tests(
    fit: Callable[[frozenset[tuple[str, str]]], Fit],
    items: list[str],
    anchors: Bool[np.ndarray, " I"],
    test: str,
    tested: Collection[str],
) -> ModelTest:
    """Differences δ between the groups of an item's parameters, all free: δ' V⁻¹ δ, with V their covariance.

    Args:
        fit: see `fits_of`.
        items: ids.
        anchors: (I,) which items are the same for all.
        test: "both", or of all parameters but the slope ("uniform"), or of the slope ("nonuniform").
        tested: ids of the items that have a test (`testable`); of others all is NaN.
    """
    rows: list[tuple[float, int, float]] = []
    for item in items:
        if item not in tested:
            rows.append((np.nan, 0, np.nan))
            continue
        found = fit(_others(items, anchors, item) | {(item, ALL)})
        rows.append((*_wald(found, _copies(found, item), test), _effect(found, item)))
    return _as_arrays(rows)


def _others(items: list[str], anchors: Bool[np.ndarray, " I"], item: str) -> frozenset[tuple[str, str]]:
    """The items that are free whatever is tested."""
    return frozenset((other, ALL) for other, anchor in zip(items, anchors, strict=True) if not anchor and other != item)


def _copies(fit: Fit, item: str) -> Int[np.ndarray, " n"]:
    """The columns of an item that is free by group."""
    ids, groups = (np.asarray(fit.details["free_by_group"][name]) for name in ("item", "group"))
    return np.flatnonzero((groups != "") & np.isin(ids, [f"{item} ({group})" for group in fit.groups()["group"]]))


def _wald(fit: Fit, copies: Int[np.ndarray, " n"], test: str) -> tuple[float, int]:
    """The statistic and its degrees of freedom; NaN where the covariance is not known."""
    if fit.covariance is None or len(copies) < 2:
        return np.nan, 0
    places, number = fit.covariance.places[copies], len(copies)
    is_slope = np.arange(places.shape[1]) < np.asarray(fit.parameters.slope).shape[1]
    own = (places >= 0).all(axis=0) & (places[1:] != places[0]).all(axis=0)  # one slope of all items is no group's
    tested = own & {"both": True, "uniform": ~is_slope, "nonuniform": is_slope}[test]
    given = as_array(fit.parameters)[copies, : places.shape[1]]
    given = np.where(places >= 0, given, 0.0)  # asymptotes that are held are infinite
    columns, size = np.flatnonzero(tested), places.shape[1]
    contrast = np.zeros(((number - 1) * len(columns), number * size))
    for row, (other, column) in enumerate(itertools.product(range(1, number), columns)):
        contrast[row, other * size + column], contrast[row, column] = 1.0, -1.0
    change = contrast @ given.ravel()
    variance = contrast @ fit.covariance.of(copies) @ contrast.T
    return float(change @ np.linalg.solve(variance, change)), len(change)


def _effect(fit: Fit, item: str) -> float:
    """The difference that is largest."""
    assert isinstance(fit.population, FittedGroups)
    copies, rule = _copies(fit, item), gauss_hermite(NODES)
    if len(copies) < 2:
        return np.nan
    groups = np.asarray(fit.details["free_by_group"]["group"])[copies]
    differences = []
    for at in range(1, len(copies)):
        population = fit.population.of(str(groups[at]))
        theta = float(population.mean[0]) + float(population.sd[0]) * rule.nodes[:, 0]
        expected = _expected(fit, copies[[0, at]], theta)
        differences.append(float(np.exp(rule.log_weights) @ (expected[:, 1] - expected[:, 0])))
    return max(differences, key=abs)


def _expected(fit: Fit, columns: Int[np.ndarray, " n"], theta: Float[np.ndarray, " Q"]) -> Float[np.ndarray, "Q n"]:
    """Expected responses, of categories 0 … C."""
    known = known_items(fit)
    if known is None:
        return np.asarray(probabilities(fit.parameters.take(columns), theta[:, None])[0])
    p = categories_at(known.take(columns), theta)
    return p @ np.arange(p.shape[2])


def _as_arrays(rows: list[tuple[float, int, float]]) -> ModelTest:
    statistic, df, effect = zip(*rows, strict=True)
    return ModelTest(np.array(statistic), np.array(df), np.array(effect))
