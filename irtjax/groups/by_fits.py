"""DIF by fits: of all groups together, or of each by itself; with the rounds in which anchors are chosen."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2

from irtjax.errors import InputError
from irtjax.estimation.grouping import Membership
from irtjax.fitting import fit as fit_responses
from irtjax.groups.areas import Areas, areas
from irtjax.groups.lord import Lord, lord
from irtjax.groups.model_tests import ModelTest, fits_of, likelihood_ratios, testable, wald_tests
from irtjax.groups.score_test import ScoreTest, score_test
from irtjax.groups.separate_fits import fits_of_groups, linked
from irtjax.integration.sparse_grid import BLAS
from irtjax.responses.values import on_scales
from irtjax.types import Bool, Float, Int

Flagged = Callable[[Bool[np.ndarray, " I"]], Bool[np.ndarray, " I"]]
Choose = Callable[[Flagged], tuple[Bool[np.ndarray, " I"], int]]  # of anchors, and the rounds that it took


class Tests(NamedTuple):
    """Of all items (I,) what `dif` has in its columns, and the rounds of purification."""

    statistic: Float[np.ndarray, " I"]
    df: int | Int[np.ndarray, " I"]
    effect: Float[np.ndarray, " I"]
    anchor: Bool[np.ndarray, " I"]
    rounds: int
    p_value: Float[np.ndarray, " I"]


@BLAS.wrap(limits=1, user_api="blas")  # threads of so many small products wait for each other
def by_model(
    given: Any,
    found: Membership,
    method: str,
    test: str,
    choose: Choose,
    level: float,
    model: str,
) -> Tests:
    """As `dif`, by fits of all groups together."""
    items = given.item_ids.astype(str).tolist()
    if method == "score":
        fit = fit_responses(given, model, groups=found, standard_errors=False)
    else:
        by_what_is_free, tested = fits_of(given, model, found), testable(given, found, test)

    @functools.lru_cache(maxsize=1)  # the last round's anchors are those of the table
    def tests(chosen: bytes) -> ScoreTest | ModelTest:
        anchors = np.frombuffer(chosen, bool)
        if method == "likelihood_ratio":
            return likelihood_ratios(by_what_is_free, items, anchors, test, tested)
        if method == "wald":
            return wald_tests(by_what_is_free, items, anchors, test, tested)
        if anchors.all():
            return score_test(fit, fit, test)
        some = given.choose_items(np.flatnonzero(anchors))
        answered = some.counts(axis=1)[1] > 0
        of_some = found._replace(member=found.member[answered])
        anchored = fit_responses(some.choose_subjects(answered), model, groups=of_some, standard_errors=False)
        return score_test(fit, anchored, test)

    def flagged(anchors: Bool[np.ndarray, " I"]) -> Bool[np.ndarray, " I"]:
        now = tests(anchors.tobytes())
        return chi2.sf(now.statistic, now.df) < level

    anchors, rounds = choose(flagged)
    now = tests(anchors.tobytes())
    return Tests(now.statistic, now.df, now.effect, anchors, rounds, chi2.sf(now.statistic, now.df))


def by_separate_fits(
    given: Any,
    found: Membership,
    method: str,
    test: str,
    choose: Choose,
    level: float,
    options: dict[str, Any],
) -> Tests:
    """As `dif`, by fits of each group; only their links depend on the anchors."""
    if method == "raju":
        _require_two_curves(given, found)
    fits = fits_of_groups(given, found, options)

    def tests(anchors: Bool[np.ndarray, " I"]) -> tuple[Lord | Areas, Float[np.ndarray, " I"]]:
        items = linked(fits, anchors)
        if method == "raju":
            found_areas = areas(items, given.item_ids, signed=test == "uniform")
            return found_areas, found_areas.p_value
        chi_squares = lord(items, test)
        return chi_squares, chi2.sf(chi_squares.statistic, chi_squares.df)

    anchors, rounds = choose(lambda chosen: tests(chosen)[1] < level)
    now, p_value = tests(anchors)
    return Tests(now.statistic, now.df, now.effect, anchors, rounds, p_value)


def _require_two_curves(given: Any, found: Membership) -> None:
    """Refuses what Raju's areas are not defined for.

    Raises:
        InputError: grades, or more than two groups.
    """
    if on_scales(given):
        item = int(np.argmax([scale.top for scale in given.scales]))
        raise InputError(f"`method` raju: item '{given.item_ids[item]}' has grades, and not one curve: take lord")
    if len(found.names) > 2:
        raise InputError(f"`method` raju: areas are between curves of two groups, not of {len(found.names)}: take lord")
