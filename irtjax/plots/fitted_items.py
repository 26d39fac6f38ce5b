"""What pictures need of the items of a fit, whatever their responses are: curves, information, places."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from irtjax.errors import InputError
from irtjax.evaluation.scaled_trials import recorded_trials, trials_of
from irtjax.fits.result import Fit
from irtjax.kernels.models import information, probabilities
from irtjax.responses.scaled import Scale, ScaledResponses
from irtjax.responses.values import on_scales, whole
from irtjax.scoring.family_items import KnownItems, known_items
from irtjax.scoring.family_worth import information_at, of_scales, worth_at
from irtjax.types import Float, Int

ORDERED_THRESHOLDS = "graded"
MOST_TICKS = 11
WIDEST = 3.0  # standard deviations of the population, on either side, that curves are drawn over


class ResponseAxis(NamedTuple):
    """The axis that responses are drawn on.

    Attributes:
        label: what it shows.
        low: its lower end.
        high: its upper end.
        ticks: where it is labelled.
        texts: the labels there.
    """

    label: str
    low: float
    high: float
    ticks: list[float]
    texts: list[str]


RIGHT = ResponseAxis("probability of a right answer", 0.0, 1.0, [0, 0.5, 1], ["0.0", "0.5", "1.0"])
FROM_LOWEST = RIGHT._replace(label="expected response, from the lowest (0) to the highest (1)")
COUNTED = RIGHT._replace(label="expected share of successes")
SHARED = RIGHT._replace(label="expected share")


def of_families(fit: Fit) -> KnownItems | None:
    """The items of a fit whose responses are not right or wrong; else None."""
    return known_items(fit) if on_scales(fit.responses) else None


def response_axis(scales: Sequence[Scale], counts: bool) -> ResponseAxis:
    """The unit in which responses to items are drawn: that of the data, where they have one scale.

    Args:
        scales: of the items.
        counts: whether those without categories are counts.
    """
    if all(scale.labels is None for scale in scales):
        return COUNTED if counts else SHARED
    common = common_scale(scales)
    if common is None or common.labels is None:
        return FROM_LOWEST
    shown = np.unique(np.linspace(0, common.top, min(common.top + 1, MOST_TICKS)).round().astype(int))
    texts = [str(common.labels[k]) for k in shown]
    worth = common.worth
    return ResponseAxis("expected grade", float(worth[0]), float(worth[-1]), worth[shown].tolist(), texts)


def common_scale(scales: Sequence[Scale]) -> Scale | None:
    """The scale of items some of which lack categories: all numbers, or the longest that holds all texts; or None."""
    found = {label for scale in scales for label in scale.labels or ()}
    if any(scale.labels is None for scale in scales):
        return None
    if all(isinstance(label, int | float) for label in found):
        return Scale(tuple(sorted(found)))
    longest = max(scales, key=lambda scale: scale.top)
    return longest if found == set(longest.labels or ()) else None


def drawn(responses: ScaledResponses) -> Float[np.ndarray, "J I"]:
    """Responses in the unit of their `response_axis`, NaN where missing."""
    common = common_scale(responses.scales)
    if common is not None:
        return responses.worths_on([common.worth_of(scale) for scale in responses.scales])
    low, high = _ends(responses.scales)
    return (responses.worths() - low) / (high - low)


def _ends(scales: Sequence[Scale]) -> Float[np.ndarray, "2 I"]:
    """The least and the most that a response to each item is worth."""
    return np.array([(0, 1) if scale.labels is None else scale.worth[[0, -1]] for scale in scales], float).T


def expected(fit: Fit, chosen: Int[np.ndarray, " N"], theta: Float[np.ndarray, " Q"]) -> Float[np.ndarray, "Q N"]:
    """The model's mean response to some items, in the unit of their `response_axis`."""
    known = of_families(fit)
    if known is None:
        return np.asarray(probabilities(fit.parameters.take(chosen), theta[:, None])[0])
    if "nominal" in {fit.item_models[i] for i in chosen}:
        raise InputError("the nominal model has no expected response: irtjax.plots.categories shows its categories")
    some = known.take(chosen)
    return expected_of(some, theta, some.scales, common_scale(some.scales))


def expected_of(
    known: KnownItems, theta: Float[np.ndarray, " Q"], scales: Sequence[Scale], common: Scale | None
) -> Float[np.ndarray, "Q N"]:
    """Mean responses to items in the unit of a common scale; without one as shares from their lowest to their highest.

    Args:
        known: the items.
        theta: abilities.
        scales: of the items, with all the categories that they have.
        common: that they are drawn on.
    """
    if common is not None:
        return worth_at(known, theta, of_scales(known, (common,) * len(scales))).mean
    low, high = _ends(scales)
    return (worth_at(known, theta, of_scales(known, tuple(scales))).mean - low) / (high - low)


def information_of_items(fit: Fit, theta: Float[np.ndarray, " Q"]) -> Float[np.ndarray, "Q I"]:
    """Fisher information of a response to each item; of counts with the mean number of trials that it had."""
    known = of_families(fit)
    if known is None:
        return np.asarray(information(fit.parameters, theta[:, None]))
    of_trials = trials_of(known, 1 if fit.responses.trials is None else recorded_trials(whole(fit.responses)))
    return information_at(of_trials.known, theta) * of_trials.times


def places(fit: Fit) -> tuple[Float[np.ndarray, " N"], list[str]]:
    """Where items are on the scale of ability, and names of these places: difficulties, or thresholds of grades.

    `speech ≥ 3` is the ability at which a 3 or more has probability 1/2 (graded), `speech 2|3` that at which a 3 is
    as likely as a 2 (partial credit).
    """
    ids = fit.responses.item_ids.tolist()
    if not on_scales(fit.responses):
        return fit.difficulty, ids
    found, names_of = [], []
    for i, (item, model, scale) in enumerate(zip(ids, fit.item_models, fit.responses.scales, strict=True)):
        if model == "nominal":
            raise InputError(f"item {item!r} has categories in no order (nominal), and so no place on the scale")
        if scale.labels is None or scale.top == 1:
            found.append(fit.difficulty[i])
            names_of.append(item)
            continue
        for k in range(1, scale.top + 1):
            found.append(fit.item_columns[f"threshold_{k}"][i])
            below, label = scale.labels[k - 1], scale.labels[k]
            names_of.append(f"{item} ≥ {label}" if model == ORDERED_THRESHOLDS else f"{item} {below}|{label}")
    return np.array(found), names_of
