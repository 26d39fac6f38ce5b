"""Pictures of a fit, whichever data it is of: a ranking, item curves, abilities beside difficulties, information."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from irtjax.arguments import checks_types, names, whole_number
from irtjax.errors import InputError
from irtjax.fits.fit_text import model_name
from irtjax.fits.result import Z_95, Fit
from irtjax.plots.fitted_items import (
    RIGHT,
    WIDEST,
    drawn,
    expected,
    information_of_items,
    of_families,
    places,
    response_axis,
)
from irtjax.plots.scale import MOST_CURVES, category_curves, item_curves
from irtjax.plots.style import COLOURS, line_styles, literal, plain, short
from irtjax.plots.wright import wright_map
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.values import on_scales
from irtjax.scale.curves import empirical_curves, empirical_means
from irtjax.scale.information import GRID
from irtjax.scoring.family_worth import categories_at

FEW = 24  # items whose curves are shown if none are named
SMOOTH = 200  # subjects from whom on the weight at single abilities suffices
BEYOND = 3.0  # logits past the abilities, where items of a Wright map are drawn at the edge
MOST_RANKED = 60  # subjects whose names one picture has room for
LONGEST_NAME = 45  # characters
FIGURE_SPACE = "\N{FIGURE SPACE}"  # as wide as a digit
REACH = 4.0  # standard deviations of the population that information is shown over


@checks_types
def curves(fit: Fit, items: str | Collection[str] | None = None) -> Figure:
    """Curves of items: the model's, and the share of right answers at each ability with its 95% band.

    Of grades, counts and shares the expected response, and the mean one, in the unit of the data; where the items that
    are shown have different scales, from 0, the lowest, to 1. With fewer than 200 subjects shares and means are those
    in up to six ranges of ability, each with as many subjects.

    Args:
        fit: of one dimension.
        items: one id or several; by default all, or 24 of them from the easiest to the hardest.

    Raises:
        InputError: an item is not in the fit or is nominal, there are more than 60, or the fit has several dimensions.
    """
    _require_one_dimension(fit)
    chosen = _chosen(fit, items)
    own, grouped = fit.responses, fit.responses.num_subjects < SMOOTH
    some = own.choose_items(chosen).read() if isinstance(own, SparseResponses) else own.read().choose_items(chosen)
    shown, theta = fit.responses.item_ids[chosen].tolist(), _shown(fit)
    model = expected(fit, chosen, theta)
    if isinstance(some, ScaledResponses):
        axis = response_axis(some.scales, some.trials is not None)
        empirical = empirical_means(fit, drawn(some), (axis.low, axis.high), grouped)
    else:
        axis, empirical = RIGHT, empirical_curves(fit, some, grouped)
    return item_curves(shown, theta, model, empirical, [""] * len(shown), _title(fit), axis)


@checks_types
def categories(fit: Fit, items: str | Collection[str] | None = None) -> Figure:
    """Category characteristic curves: the probability of each grade or category of an item at each ability.

    Args:
        fit: of one dimension.
        items: one id or several; by default all that have categories, or 24 of them from the easiest to the hardest.

    Raises:
        InputError: an item is not in the fit or has no categories, there are more than 60, or the fit has several
            dimensions.
    """
    _require_one_dimension(fit)
    known = of_families(fit)
    has = np.array([scale.labels is not None for scale in (() if known is None else known.scales)], bool)
    if known is None or not has.any():
        raise InputError("no item has grades or categories: irtjax.plots.curves shows curves of other responses")
    chosen = _chosen(fit, items, has)
    without = fit.responses.item_ids[chosen[~has[chosen]]]
    if len(without):
        raise InputError(f"item '{without[0]}' has no grades or categories: irtjax.plots.curves shows it")
    some, theta = known.take(chosen), _shown(fit)
    return category_curves(some.item_ids.tolist(), theta, categories_at(some, theta), some.scales, _title(fit))


def _chosen(fit: Fit, items: str | Collection[str] | None, of: np.ndarray | None = None) -> np.ndarray:
    """Positions of the items to show; without names a few of those `of` which is true."""
    ids = fit.responses.item_ids
    if items is None:
        order = np.argsort(fit.item_columns.get("difficulty", np.zeros(len(ids))), kind="stable")
        order = order if of is None else order[of[order]]
        return order[np.unique(np.linspace(0, len(order) - 1, min(FEW, len(order))).round().astype(int))]
    items = names(items)
    unknown = [item for item in items if item not in ids]
    if unknown:
        raise InputError(f"item '{unknown[0]}' is not in the fit")
    if not 1 <= len(items) <= MOST_CURVES:
        raise InputError(f"{len(items)} items, expected 1 to {MOST_CURVES} that fit into a picture")
    return np.array([int(np.flatnonzero(ids == item)[0]) for item in items])


def _shown(fit: Fit) -> np.ndarray:
    """Abilities that curves are drawn over: 3 logits, or that many standard deviations of a wider population."""
    if not on_scales(fit.responses):
        return GRID[np.abs(GRID) <= WIDEST]
    mean, sd = float(fit.reference.mean[0]), float(fit.reference.sd[0])
    return np.linspace(mean - WIDEST * sd, mean + WIDEST * sd, len(GRID))


@checks_types
def wright(fit: Fit) -> Figure:
    """Abilities and difficulties on one scale (Wright and Stone 1979); of grades their thresholds.

    `speech ≥ 3` is the ability at which a 3 or more has probability 1/2 (graded), `speech 2|3` that at which a 3 is as
    likely as a 2 (partial credit). Up to 60 places of items and 40 subjects are named, more are counted. Items more
    than three logits beyond all abilities are drawn at that edge; those without a difficulty are left out.

    Raises:
        InputError: the fit has several dimensions, or a nominal item, which has no place.
    """
    _require_one_dimension(fit)
    difficulty, items = places(fit)
    known = np.isfinite(difficulty)
    reach = BEYOND * (float(fit.reference.sd[0]) if on_scales(fit.responses) else 1.0)
    low, high = fit.ability.min() - reach, fit.ability.max() + reach
    subjects, named = fit.responses.subject_ids.tolist(), np.array(items)[known].tolist()
    if on_scales(fit.responses):
        extreme, what = None, "items" if len(items) == fit.responses.num_items else "thresholds of items"
    else:
        right = fit.responses.counts(axis=0)[0]
        extreme, what = np.where(fit.extreme, np.where(right == 0, 1, -1), 0)[known], "items"
    return wright_map(fit.ability, np.clip(difficulty[known], low, high), named, _title(fit), subjects, extreme, what)


@checks_types
def information(fit: Fit, items: str | Collection[str] | None = None) -> Figure:
    """Information of the test about ability, its standard error, and where the abilities are (Birnbaum 1968).

    Of counts a response has the mean number of trials of its item.

    Args:
        fit: of one dimension.
        items: whose own information is drawn as well: one id or several; by default none.

    Raises:
        InputError: an item is not in the fit, there are more than 60, or the fit has several dimensions.
    """
    _require_one_dimension(fit)
    mean, sd = float(fit.reference.mean[0]), float(fit.reference.sd[0])
    theta = np.linspace(mean - REACH * sd, mean + REACH * sd, 201)
    each = information_of_items(fit, theta)
    total = each.sum(axis=1)
    figure = Figure(figsize=(10, 3.8))
    left, right = figure.subplots(1, 2)
    chosen = [] if items is None else _chosen(fit, items).tolist()
    left.plot(theta, total, color="black" if chosen else COLOURS[0], label="all items")
    for item, style in zip(chosen, line_styles(len(chosen)), strict=True):
        left.plot(theta, each[:, item], label=short(fit.responses.item_ids[item], LONGEST_NAME), **style)
    if chosen:
        left.legend(frameon=False, fontsize=8)
    left.set(xlabel="ability", ylabel="information", xlim=theta[[0, -1]], ylim=(0, None))
    with np.errstate(divide="ignore"):
        right.plot(theta, total**-0.5, color=COLOURS[0], label="standard error of ability")
    right.set(
        xlabel="ability",
        ylabel="standard error",
        xlim=theta[[0, -1]],
        ylim=(0, min(2.0 * sd, 1.05 * max(total.min(), 1e-300) ** -0.5)),
    )
    people = right.twinx()
    people.hist(fit.ability, bins=40, color="0.8", zorder=0)
    people.set(yticks=[], ylabel="subjects (grey)")
    right.set_zorder(1)
    right.patch.set_visible(False)
    figure.suptitle(literal(_title(fit)))
    return plain(figure)


@checks_types
def ranking(fit: Fit, most: int = 30, groups: Mapping[Any, Any] | pd.Series | Sequence[Any] | None = None) -> Figure:
    """Subjects by ability, the most able first, each with its 95% interval: ability ± 1.96 standard errors.

    Intervals that overlap say that the order of two subjects may be chance. Where there are more than `most` subjects,
    the title says how many are left out.

    Args:
        fit: of one dimension.
        most: subjects to show, the most able; up to 60.
        groups: what colours stand for, such as the maker of each model: by subject id, or in the order of
            `fit.responses.subject_ids`. By default all subjects have one colour.

    Returns:
        A figure in the proportions of a slide, or taller where there are many subjects.

    Raises:
        InputError: the fit has several dimensions, `most` is out of range, or `groups` leaves out a subject or has more
            than eight groups.
    """
    _require_one_dimension(fit)
    most = whole_number("most", most, 1, MOST_RANKED)
    ids = fit.responses.subject_ids.astype(str)
    group = _groups(groups, ids)
    order = np.argsort(-fit.ability, kind="stable")[:most]
    figure = Figure(figsize=(12, 1.6 + 0.26 * max(len(order), 8)), layout="constrained")
    axis = figure.subplots()
    axis.axvline(fit.reference.mean[0], color="0.6", linewidth=1, zorder=1)
    for name, colour in zip(dict.fromkeys(group[order]), COLOURS, strict=False):
        rows = np.flatnonzero(group[order] == name)
        members = order[rows]
        reach = Z_95 * fit.ability_se[members]
        label = short(str(name), LONGEST_NAME)
        points = fit.ability[members], rows
        axis.errorbar(*points, xerr=reach, fmt="o", color=colour, markersize=7, elinewidth=2, label=label)
    labels = [f"{short(ids[subject], LONGEST_NAME)}  {rank:{FIGURE_SPACE}>2}" for rank, subject in enumerate(order, 1)]
    axis.set_yticks(range(len(order)), labels, fontsize=11)
    axis.tick_params(axis="y", length=0)
    axis.set_ylim(len(order) - 0.4, -0.6)
    axis.set_xlabel("ability (logits) with its 95% interval (grey: mean of the population)", fontsize=11)
    if groups is not None:
        axis.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5), fontsize=11)
    some = f"the {len(order)} most able of " if len(order) < len(ids) else ""
    axis.set_title(
        f"{model_name(fit.model)}: {some}{len(ids):,} subjects, by {fit.responses.num_items:,} items", fontsize=13
    )
    return plain(figure)


def _groups(groups: Mapping[Any, Any] | pd.Series | Sequence[Any] | None, ids: np.ndarray) -> np.ndarray:
    """The group of each subject.

    Raises:
        InputError: a subject has none, or there are more groups than colours.
    """
    if groups is None:
        return np.zeros(len(ids), int)
    if isinstance(groups, Mapping | pd.Series):
        missing = [name for name in ids if name not in groups]
        if missing:
            raise InputError(f"`groups` lacks subject '{missing[0]}' (1 of {len(missing)} such)")
        groups = [groups[name] for name in ids]
    found = np.array([str(group) for group in groups])
    if len(found) != len(ids):
        raise InputError(f"`groups` of {len(found):,} subjects, expected one for each of the {len(ids):,}")
    if len(set(found)) > len(COLOURS):
        raise InputError(
            f"`groups` has {len(set(found))} groups, expected {len(COLOURS)} at most, which colours tell apart"
        )
    return found


def _require_one_dimension(fit: Fit) -> None:
    if fit.parameters.slope.shape[1] > 1:
        raise InputError(f"a fit in {fit.parameters.slope.shape[1]} dimensions: pictures are of one")


def _title(fit: Fit) -> str:
    return f"{model_name(fit.model)}, {fit.responses.num_subjects:,} subjects × {fit.responses.num_items:,} items"
