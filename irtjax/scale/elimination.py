"""Which items stay in the scale? Items are removed and the rest refitted until no test speaks against any of them."""

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm, pearsonr

from irtjax.errors import InputError
from irtjax.fits.result import Fit
from irtjax.responses.matrix import ResponseMatrix
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.values import whole
from irtjax.scale.duplicates import duplicates
from irtjax.scale.item_tests import GRADED, ItemTests, how_to_test
from irtjax.types import Float, Int

REMOVAL_COLUMNS = ["item_id", "reason", "round", "statistic", "p_value", "partner"]
LEAST_ITEMS = 4  # items that a scale needs for its fit to be tested


class TooFewItems(InputError):
    """So many items were removed that no scale is left; `removals` says which and why."""

    def __init__(self, message: str, removals: pd.DataFrame) -> None:
        super().__init__(message)
        self.removals = removals


@dataclasses.dataclass(frozen=True)
class Rules:
    """When an item is removed.

    Attributes:
        level: of the tests of dependence and fit; p-values are adjusted by Holm's method over all pairs, or all items,
            of a round.
        communality: least share of variance explained; 0.15 is a slope of 0.71.
        slope_level: of the one-sided tests that a slope, or the correlation with the rest, is above zero; the smaller,
            the fewer items pass.
        duplicate: two items whose responses correlate by this much or more, and not by chance, are one item twice.
        triplets: whether an item of a dependent triplet is removed as well.
    """

    level: float = 0.05
    communality: float = 0.15
    slope_level: float = 0.05
    duplicate: float = 0.9
    triplets: bool = False


@dataclasses.dataclass(frozen=True)
class Scale:
    """A scale and how it came about.

    Attributes:
        fit: of the retained items.
        types: the model of each retained item: "2pl" or "3pl"; "graded" or "gpcm" of grades.
        removals: one row per removed item, in the order of removal: `item_id`, `reason`, `round`, `statistic`,
            `p_value` (adjusted), `partner` (the other item of a dependent pair, or both others of a triplet).
        item_fit: S-X2 of the retained items, see `irtjax.scale.item_fit`, with `p_holm`.
        dependence: of pairs of retained items, see `irtjax.scale.item_tests`.
        triplets: of triplets, see `irtjax.scale.dependence`; only the 1,000 largest residuals, and none of grades.
    """

    fit: Fit
    types: tuple[str, ...]
    removals: pd.DataFrame
    item_fit: pd.DataFrame
    dependence: pd.DataFrame
    triplets: pd.DataFrame


def before_fitting(
    responses: ResponseMatrix | ScaledResponses, expert: Collection[str] = (), rules: Rules = Rules()
) -> pd.DataFrame:
    """Removals that need no fit: items removed by reading, items that all subjects answered alike, and duplicates.

    Of items that repeat one another (`irtjax.scale.duplicates`) the first stays: fitted together, they would become the
    ability that the scale measures.

    Raises:
        InputError: an id in `expert` that is not among the responses.
    """
    unknown = sorted(set(expert) - set(responses.item_ids.tolist()))
    if unknown:
        raise InputError(f"item '{unknown[0]}' is to be removed but not among the responses: compare the ids")
    by_reading = np.isin(responses.item_ids, list(expert))
    values = np.where(np.asarray(responses.values) < 0, np.nan, responses.values)
    alike = (np.nanmin(values, axis=0) == np.nanmax(values, axis=0)) & ~by_reading
    rows = [_removal(item, 0, "by reading") for item in responses.item_ids[by_reading]]
    rows += [_removal(item, 0, "answered alike by all") for item in responses.item_ids[alike]]
    left = responses.item_ids[~by_reading & ~alike]
    if left.size > 1:
        for one in duplicates(values[:, ~by_reading & ~alike], rules.duplicate, rules.level):
            rows.append(_removal(left[one.item], 0, "duplicate", one.correlation, partner=left[one.earlier]))
    return pd.DataFrame(rows, columns=REMOVAL_COLUMNS)


def eliminate(
    responses: ResponseMatrix | ScaledResponses,
    guessed: Collection[str] = (),
    rules: Rules = Rules(),
    expert: Collection[str] = (),
    guessing: Mapping[str, float] | None = None,
    on_round: Callable[[int, int], None] = lambda number, items: None,
    model: str = GRADED[0],
) -> Scale:
    """Fits, tests and removes items, round by round, until no test speaks against any item that is left.

    Items that need no fit to be removed go first (`before_fitting`). Each round fits all items that are left and takes
    the first of these steps that applies:

    1. It removes all items that do not discriminate at once, because they hardly change the fit of the others: *flat*,
       with a communality a²/(a² + 1.702²) below `rules.communality`; *reversed*, with a slope below zero, as a wrong
       key gives; *uncertain slope*, with neither a slope above zero, by a one-sided Wald test at `rules.slope_level`,
       nor a correlation with the mean of the other items (a steep slope beside a free asymptote has a large error);
       *below guessing*, with so few right answers that no finite difficulty goes with the fixed guessing.
    2. It removes one *dependent* item. Of the pairs that share more, or less, than the ability explains, by X² of Chen
       and Thissen and by Q3 (`irtjax.scale.item_tests`), it takes the one with the largest X², and of its items that in
       more such pairs, or, if both are in equally many, the one with the lower slope, which measures less. One at a
       time, because removing one item of a pair often ends the dependence of others. With `rules.triplets` the same
       follows for triplets, by the largest significant residual: *dependent triplet*.
    3. It removes one *misfit*: the item with the smallest significant p-value of S-X2. One at a time, because the
       misfit of one item bends the scale for the others.

    Args:
        responses: complete, or missing by design (`irtjax.scale.forms`), because S-X2 needs number-right scores.
        guessed: ids of items that get a lower asymptote (3PL); all others are 2PL.
        rules: when an item is removed.
        expert: ids of items that an expert has removed after reading them.
        guessing: fixed lower asymptotes, by item id; others are 0, or as above.
        on_round: called with the number of the round and the number of items in it.
        model: of `ScaledResponses`, "graded" or "gpcm" (`irtjax.scale.item_tests.Graded`): Q3 is in the place of X²,
            and small departures of pairs and items remove nothing.

    Raises:
        InputError: an id in `expert` that is not among the responses.
        TooFewItems: fewer than four items are left.
    """
    tests = how_to_test(responses, guessed, guessing, model)
    removals = before_fitting(responses, expert, rules).to_dict("records")
    number = 0
    while True:
        gone = {removal["item_id"] for removal in removals}
        if responses.num_items - len(gone) < LEAST_ITEMS:
            message = (
                f"{responses.num_items - len(gone)} items are left after round {number}, a scale needs {LEAST_ITEMS}"
            )
            raise TooFewItems(message, pd.DataFrame(removals, columns=REMOVAL_COLUMNS))
        left = responses.choose_items(~np.isin(responses.item_ids, list(gone))).with_responses()
        number += 1
        on_round(number, left.num_items)
        fit, types = tests.fit(left)
        removed = _undiscriminating(fit, tests, rules, number)
        if not removed:
            pairs = tests.pairs(fit)
            removed = _dependent(fit, pairs, tests, rules, number)
        if not removed and rules.triplets:
            removed = _dependent_triplet(fit, tests.triplets(fit), rules, number)
        if not removed:
            fits = tests.items(fit, types)
            removed = _misfit(fit, fits, tests, rules, number)
        if not removed:
            table = pd.DataFrame(removals, columns=REMOVAL_COLUMNS)
            return Scale(fit, types, table, fits, pairs, tests.triplets(fit))
        removals += removed


def _removal(
    item: str, number: int, reason: str, statistic: float = np.nan, p_value: float = np.nan, partner: str = ""
) -> dict[str, Any]:
    return {
        "item_id": str(item), "round": number, "reason": reason,
        "statistic": statistic, "p_value": p_value, "partner": str(partner),
    }  # fmt: skip


def _undiscriminating(fit: Fit, tests: ItemTests, rules: Rules, number: int) -> list[dict[str, Any]]:
    explained, slope = tests.explained(fit), fit.item_columns["discrimination"]
    p_value = norm.sf(slope / fit.item_columns["discrimination_se"])
    ids, uncertain = fit.responses.item_ids, p_value > rules.slope_level
    uncertain[uncertain] = _with_rest(fit, np.flatnonzero(uncertain)) > rules.slope_level
    reasons = np.select(
        [tests.below_guessing(fit), explained < rules.communality, slope < 0, uncertain],
        ["below guessing", "flat", "reversed", "uncertain slope"],
        "",
    )
    return [_removal(ids[i], number, reasons[i], explained[i], p_value[i]) for i in np.flatnonzero(reasons != "")]


def _with_rest(fit: Fit, items: Int[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """One-sided p-values of the correlations of these items with the mean of all others."""
    values = np.asarray(whole(fit.responses).values).astype(float)
    seen = values >= 0
    values = np.where(seen, values - np.where(seen, values, 0).sum(axis=0) / seen.sum(axis=0), 0.0)
    rest = (values.sum(axis=1)[:, None] - values[:, items]) / np.maximum(seen.sum(axis=1)[:, None] - seen[:, items], 1)
    pairs = zip(values[:, items].T, rest.T, seen[:, items].T, strict=True)
    return np.array([pearsonr(one[there], other[there], alternative="greater").pvalue for one, other, there in pairs])


def _dependent(fit: Fit, pairs: pd.DataFrame, tests: ItemTests, rules: Rules, number: int) -> list[dict[str, Any]]:
    size = pairs[tests.of_pairs].abs()
    significant = pairs[(pairs["p_holm"] < rules.level) & (size >= tests.least_of_pairs)]
    if significant.empty:
        return []
    worst = significant.loc[significant[tests.of_pairs].abs().idxmax()]
    goes, stays = _one_of(fit, significant[["first", "second"]], worst)
    return [_removal(goes, number, "dependent", worst[tests.of_pairs], worst["p_holm"], stays)]


def _dependent_triplet(fit: Fit, triplets: pd.DataFrame, rules: Rules, number: int) -> list[dict[str, Any]]:
    significant = triplets[triplets["p_holm"] < rules.level]
    if significant.empty:
        return []
    worst = significant.iloc[0]
    goes, stay = _one_of(fit, significant[["first", "second", "third"]], worst)
    return [_removal(goes, number, "dependent triplet", worst["residual"], worst["p_holm"], stay)]


def _one_of(fit: Fit, significant: pd.DataFrame, worst: pd.Series) -> tuple[str, str]:
    """Of the items of the worst pair or triplet, the one in most of them, or of lowest slope; and the others."""
    together = [str(worst[name]) for name in significant]
    often = {item: int((significant == item).to_numpy().sum()) for item in together}
    slope = dict(zip(fit.responses.item_ids.tolist(), fit.item_columns["discrimination"], strict=True))
    goes = min(together, key=lambda item: (-often[item], slope[item]))
    return goes, ", ".join(item for item in together if item != goes)


def _misfit(fit: Fit, fits: pd.DataFrame, tests: ItemTests, rules: Rules, number: int) -> list[dict[str, Any]]:
    significant = fits[(fits["p_holm"] < rules.level) & (fits["rmsd"] >= tests.least_rmsd)]
    if significant.empty:
        return []
    worst = int(significant["p_value"].idxmin())
    return [_removal(fit.responses.item_ids[worst], number, "misfit", *fits.loc[worst, ["s_x2", "p_holm"]])]
