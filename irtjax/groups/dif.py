"""Differential item functioning: do items measure the same for groups of subjects?"""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import chi2, false_discovery_control

from irtjax.arguments import checks_types
from irtjax.choices import AUTO
from irtjax.errors import InputError
from irtjax.estimation.diagnostics import FitWarning, one_warning_of_each_kind
from irtjax.estimation.grouping import FEWEST, Membership, membership
from irtjax.fits.reading import read
from irtjax.groups.by_fits import Choose, Flagged, Tests, by_model, by_separate_fits
from irtjax.groups.choices import BY_MODEL, BY_SCORES, BY_SEPARATE_FITS, DIF_METHODS, TESTS
from irtjax.groups.mantel_haenszel import chi_squares, mantel_haenszel
from irtjax.groups.matching import Graded, answered_some, purified
from irtjax.groups.score_regression import score_regression
from irtjax.responses.values import in_memory, on_scales
from irtjax.scale.tested import one_by_one
from irtjax.types import Bool, Shaped

PURIFIED = ": give `anchors`, or `purify=False`"  # what can be done where too few answered those that are left
BY_ANCHORS = (*BY_SCORES, "score")  # subjects are matched on their answers to the anchors
OF_ONE_SLOPE = ("rasch", "1pl", "pcm", "rsm")
MODERATE, LARGE = 0.035, 0.07  # change of R² of classes B and C (Jodoin and Gierl 2001)
LESS_LIKE, UNLIKE = 0.05, 0.10  # the same of differences of shares right (Dorans 1989)


@checks_types
def dif(
    responses: Any,
    groups: Any,
    method: str = "score",
    *,
    test: str = "both",
    purify: bool = True,
    anchors: Sequence[str | int] | None = None,
    level: float = 0.05,
    continuity: bool = True,
    model: str = AUTO,
    guessing: float | None = None,
    **choice: Any,
) -> pd.DataFrame:
    """Tests every item for DIF: whether subjects of equal score, but of different groups, respond differently.

    * "score": score tests of a fit with groups, whose abilities are integrated out (Glas 1998). The effect is the
      difference of expected responses of subjects of the same ability (`irtjax.groups.score_test`); of right/wrong
      items with the classes of the standardised difference (Dorans 1989: .05 and .10).
    * "likelihood_ratio" and "wald": fits in which the item has parameters of its own in each group, at maximum
      likelihood, with the same effect (`irtjax.groups.model_tests`). They take a fit for each item.
    * "lord": Lord's chi-square (1980; of several groups Kim, Cohen and Park 1995): the items' parameters in fits of
      each group by itself, linked by the anchors, with the same effect (`irtjax.groups.lord`).
    * "raju": areas between the two curves of right/wrong items, by the same fits (Raju 1988, 1990;
      `irtjax.groups.areas`). The effect is the area, and the statistic its z²: with `test` "uniform" the signed area,
      positive where the item is harder for the second group; with "both" the unsigned one, whose p-value is by its own
      distribution and not by chi-square.
    * "mantel_haenszel": strata of equal scores (Mantel and Haenszel 1959; of grades Mantel 1963). Of right/wrong items
      and two groups the effect is ETS's Δ, -2.35 times the common log odds ratio: negative where the item is harder for
      the second group. Else it is the difference of mean responses in the strata, the group that differs most minus the
      first. DIF that changes its sign along the scale is not seen.
    * "logistic": regression on score, group and their product (Swaminathan and Rogers 1990; of grades Zumbo 1999). The
      effect is the change of Nagelkerke's R², with classes of Jodoin and Gierl (2001). Where groups differ in ability
      it flags too many items.

    Scores are sums of responses to the anchors and the item itself. Anchors are all items, and with `purify` those that
    were not flagged, at `level` without adjustment, until they stay (Candell and Drasgow 1988). With "score",
    "mantel_haenszel" and "logistic" subjects who answered no anchor are left out.

    Args:
        responses: right and wrong answers, or grades, as of `irtjax.fit`.
        groups: of each subject, as of `irtjax.fit`; the first is the reference.
        method: one of these.
        test: but for "mantel_haenszel" of "uniform" DIF, of "nonuniform" beside it, or of "both" at once.
        purify: whether flagged items are no anchors.
        anchors: ids of the items that are the same for all groups; they stay.
        level: of the tests that purify.
        continuity: whether 1/2 is taken off Mantel and Haenszel's sum.
        model: but for "mantel_haenszel" and "logistic" of all items, as of `irtjax.fit`; by default the 2PL, of grades
            "graded".
        guessing: for "lord" and "raju", lower asymptote that is held.
        **choice: `columns`, `grades`, `metric` and `filter` as of `irtjax.fit`.

    Returns:
        One row per item: `item_id`, `statistic` (chi-square), `df`, `p_value`, `p_adjusted` (false-discovery rate,
        Benjamini and Hochberg 1995), `effect`, `class` (A negligible, B moderate, C large; empty where none is
        defined), `anchor`, and for "logistic" `p_uniform`, `p_nonuniform` and the `log_odds` of a higher response in
        the group that differs most. `attrs["rounds"]` has the rounds of purification.

    Raises:
        InputError: an unknown method, counts or shares, groups that are not given for each subject, fewer than two
            anchors, or anchors that fewer than two subjects of a group answered; with "lord" and "raju" a group whose
            answers do not determine a fit; with "raju" grades, more than two groups, or asymptotes that differ.

    Warns:
        FitWarning: what is doubtful about the fits, each kind once; how many subjects are left out.
    """
    for name, value, known in (("method", method, DIF_METHODS), ("test", test, TESTS)):
        if value not in known:
            raise InputError(f"unknown {name} {value!r}, expected one of {', '.join(known)}")
    if not 0 < level < 1:
        raise InputError(f"`level` {level:g}: expected a share between 0 and 1")
    _check_options(method, test, model, guessing)
    given = in_memory(read(responses, AUTO, None, **choice)[0])
    found, number, by_anchors = membership(groups, given.subject_ids), given.num_subjects, method in BY_ANCHORS
    fixed = None if anchors is None else _given_anchors(anchors, given.item_ids.astype(str))
    if by_anchors:
        given, found = _with_anchors(given, found, fixed)
    data = _matched(given, found)

    def choose(flagged: Flagged) -> tuple[Bool[np.ndarray, " I"], int]:
        def checked(tried: Bool[np.ndarray, " I"]) -> Bool[np.ndarray, " I"]:
            if by_anchors:
                _require_groups(
                    answered_some(data.responses, tried), found, "an anchor that purification left", PURIFIED
                )
            return flagged(tried)

        chosen = purified(given.num_items, checked, purify) if fixed is None else (fixed, 0)
        if by_anchors and fixed is None:
            answered = answered_some(data.responses, chosen[0])
            _require_groups(answered, found, "an anchor that purification left", PURIFIED)
        return chosen

    if model == AUTO and not on_scales(given):
        model = "2pl"
    if method in (*BY_MODEL, *BY_SEPARATE_FITS):
        with one_warning_of_each_kind(stacklevel=5):
            if method in BY_MODEL:
                tests = by_model(given, found, method, test, choose, level, model)
            else:
                options = {"model": model} if guessing is None else {"model": model, "guessing": guessing}
                tests = by_separate_fits(given, found, method, test, choose, level, options)
        table = _table(tests, {"class": _classes(given, method, tests, level)})
    elif method == "logistic":
        table = _by_regression(data.responses, test, choose, level)
    else:
        table = _by_strata(data.responses, choose, level, continuity)
    table.insert(0, "item_id", data.item_ids)
    matched = answered_some(data.responses, table["anchor"].to_numpy()).sum() if by_anchors else number
    if matched < number:
        message = f"{number - matched:,} of {number:,} subjects answered no anchor item and are left out of the tests"
        warnings.warn(message, FitWarning, stacklevel=3)
    return table


def _with_anchors(given: Any, found: Membership, anchors: Bool[np.ndarray, " I"] | None) -> tuple[Any, Membership]:
    """The subjects who answered one of these anchors, or any item; and their groups."""
    some = given if anchors is None else given.choose_items(np.flatnonzero(anchors))
    answered = some.counts(axis=1)[1] > 0
    if answered.all():
        return given, found
    what, hint = ("an item", "") if anchors is None else ("one of these `anchors`", ": give others")
    _require_groups(answered, found, what, hint)
    return given.choose_subjects(answered), found._replace(member=found.member[answered])


def _require_groups(answered: Bool[np.ndarray, " J"], found: Membership, what: str, hint: str) -> None:
    """Refuses items that no group, or not every one, answered.

    Args:
        answered: who did.
        found: the groups.
        what: the items, for the message.
        hint: what can be done.

    Raises:
        InputError: names the first such group.
    """
    left = np.bincount(found.member[answered], minlength=len(found.names))
    if left.min() < FEWEST:
        name = found.names[int(left.argmin())]
        raise InputError(
            f"{left.min() or 'no'} subject of group '{name}' answered {what}, expected {FEWEST} or more{hint}"
        )


def _check_options(method: str, test: str, model: str, guessing: float | None) -> None:
    """Refuses options that the method, or the model, has no use for.

    Raises:
        InputError: names the option.
    """
    with_model = (*BY_MODEL, *BY_SEPARATE_FITS)
    for name, given, methods in (
        ("model", model != AUTO, with_model),
        ("guessing", guessing is not None, BY_SEPARATE_FITS),
    ):
        if given and method not in methods:
            known = f"{', '.join(methods[:-1])} and {methods[-1]}"
            raise InputError(f"`{name}` is of methods {known}, and not of {method}: leave it out")
    if test == "nonuniform" and method == "raju":
        raise InputError("`test` nonuniform: raju has the signed area (uniform) and the unsigned (both); take lord")
    if test == "nonuniform" and model in OF_ONE_SLOPE:
        raise InputError(f"`test` nonuniform: items of the {model} have no slope of their own")


def _classes(given: Any, method: str, tests: Tests, level: float) -> Shaped[np.ndarray, " I"]:
    """Of differences of expected right answers; grades, and areas, have none."""
    if on_scales(given) or method == "raju":
        return np.full(given.num_items, "")
    size = np.where(tests.p_value < level, np.abs(tests.effect), 0.0)
    return np.select([np.isnan(tests.p_value), size >= UNLIKE, size >= LESS_LIKE], ["", "C", "B"], "A")


def _given_anchors(anchors: Sequence[str | int], item_ids: Shaped[np.ndarray, " I"]) -> Bool[np.ndarray, " I"]:
    """Which items are the anchors.

    Raises:
        InputError: one is not there, or there are fewer than two.
    """
    absent = [str(one) for one in anchors if str(one) not in item_ids]
    if absent:
        raise InputError(f"`anchors`: no item '{absent[0]}'")
    if len(set(anchors)) < 2:
        raise InputError(f"`anchors`: {len(set(anchors))} item, expected two or more")
    return np.isin(item_ids, np.asarray(anchors, str))


class Matched(NamedTuple):
    """Responses as numbers with the groups of the subjects; ids of the items (I,), names of the groups (G,)."""

    responses: Graded
    item_ids: Shaped[np.ndarray, " I"]
    names: Shaped[np.ndarray, " G"]


def matched(responses: Any, groups: Any, **choice: Any) -> Matched:
    """Reads responses and groups, both as of `dif`.

    Raises:
        InputError: counts or shares, or groups that are not given for each subject.
    """
    given = in_memory(read(responses, AUTO, None, **choice)[0])
    return _matched(given, membership(groups, given.subject_ids))


def _matched(given: Any, found: Membership) -> Matched:
    """Responses as numbers, with the groups.

    Raises:
        InputError: counts or shares.
    """
    single = one_by_one(given)
    numbers = single.answers.astype(float)
    if on_scales(single):
        without = [scale.labels is None for scale in single.scales]
        if any(without):
            item = str(single.item_ids[int(np.argmax(without))])
            raise InputError(f"item '{item}' has counts or shares: expected right and wrong answers, or grades")
        numbers = single.worths()
    data = Graded(numbers, single.subjects, single.items, single.num_items, found.member, len(found.names))
    return Matched(data, np.asarray(given.item_ids).astype(str), found.names)


def _by_strata(data: Graded, choose: Choose, level: float, continuity: bool) -> pd.DataFrame:
    """As `dif`."""
    df = data.num_groups - 1

    def flagged(anchors: Bool[np.ndarray, " I"]) -> Bool[np.ndarray, " I"]:
        return chi2.sf(chi_squares(data, anchors, continuity=continuity), df) < level

    anchors, rounds = choose(flagged)
    found = mantel_haenszel(data, anchors, continuity=continuity)
    effect = np.where(np.isnan(found.log_odds), found.difference, found.delta)
    p_value = chi2.sf(found.statistic, df)
    return _table(Tests(found.statistic, df, effect, anchors, rounds, p_value), {"class": found.ets_class()})


def _by_regression(data: Graded, test: str, choose: Choose, level: float) -> pd.DataFrame:
    """As `dif`."""
    df = (data.num_groups - 1) * (2 if test == "both" else 1)

    def flagged(anchors: Bool[np.ndarray, " I"]) -> Bool[np.ndarray, " I"]:
        return chi2.sf(getattr(score_regression(data, anchors), test), df) < level

    anchors, rounds = choose(flagged)
    found = score_regression(data, anchors)
    first, last = {"both": (0, 2), "uniform": (0, 1), "nonuniform": (1, 2)}[test]
    statistic = getattr(found, test)
    effect = np.where(np.isnan(statistic), np.nan, found.nagelkerke[:, last] - found.nagelkerke[:, first])
    kinds = np.where(np.isnan(effect), "", np.where(effect < MODERATE, "A", np.where(effect < LARGE, "B", "C")))
    most = np.abs(np.nan_to_num(found.log_odds)).argmax(axis=1)
    others = {
        "class": kinds,
        "p_uniform": chi2.sf(found.uniform, data.num_groups - 1),
        "p_nonuniform": chi2.sf(found.nonuniform, data.num_groups - 1),
        "log_odds": np.take_along_axis(found.log_odds, most[:, None], axis=1)[:, 0],
    }
    return _table(Tests(statistic, df, effect, anchors, rounds, chi2.sf(statistic, df)), others)


def _table(tests: Tests, others: dict[str, np.ndarray]) -> pd.DataFrame:
    """The table of a method, which has the class among its other columns."""
    adjusted, known = np.full(len(tests.p_value), np.nan), np.isfinite(tests.p_value)
    adjusted[known] = false_discovery_control(tests.p_value[known])
    table = pd.DataFrame(
        {"statistic": tests.statistic, "df": tests.df, "p_value": tests.p_value, "p_adjusted": adjusted}
        | {"effect": tests.effect, "class": others["class"], "anchor": tests.anchor}
        | others
    )
    table.attrs["rounds"] = tests.rounds
    return table
