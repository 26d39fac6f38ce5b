"""What there is to report of each group of items."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from irtjax.estimation.result import Fit
from irtjax.responses.matrix import MISSING, ResponseMatrix, proportion_correct
from irtjax.scale import information
from irtjax.scale.confirmation import Confirmation
from irtjax.scale.procedure import ScaleResult

SHORT_FORM_RULES = ("information", "slope")


class GroupFindings(NamedTuple):
    """What was found for a group of items.

    Attributes:
        name: of the group.
        result: of building its scale.
        confirmation: on fresh responses; None if there are none, or no scale.
        comparisons: of subjects, from `irtjax.scale.groups.compare_groups`; empty if there is no scale.
        levels: of subjects, from `irtjax.scale.groups.levels`; None if there is no scale, or nothing to compare.
    """

    name: str
    result: ScaleResult
    confirmation: Confirmation | None
    comparisons: dict[str, pd.DataFrame]
    levels: pd.DataFrame | None = None


class Wanted(NamedTuple):
    """What is to be told of precision.

    Attributes:
        size: items of a short form.
        ability_range: lowest and highest ability that it is chosen for.
        least: information that is enough.
    """

    size: int
    ability_range: tuple[float, float]
    least: float


class Precision(NamedTuple):
    """How precisely a scale and its short form measure.

    Attributes:
        full: information of the scale, from `irtjax.scale.information.information_table`.
        short: the same for the short form of largest information.
        dominant: id of the item that tells most at the maximum.
        others: as `full`, of all items but that one.
        short_forms: ids of the items of the short form by each of `SHORT_FORM_RULES`, the best first.
        scores: from `irtjax.scale.information.score_table`.
        reliability: marginal reliability of the scale.
        short_reliability: that of the short form of largest information.
    """

    full: pd.DataFrame
    short: pd.DataFrame
    dominant: str
    others: pd.DataFrame
    short_forms: dict[str, np.ndarray]
    scores: pd.DataFrame
    reliability: float
    short_reliability: float


def values_of_subjects(responses: ResponseMatrix, ability: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """What subjects are compared by: the number right, or the percentage of what was asked where not all was."""
    if (responses.values == MISSING).any():
        values = {"percent_correct": 100 * proportion_correct(responses.values, axis=1)}
    else:
        values = {"raw_score": responses.values.sum(axis=1)}
    return values if ability is None else values | {"ability": ability}


def precision(fit: Fit, wanted: Wanted) -> Precision:
    """The precision of a scale, with a short form of at most as many items as the scale has."""
    ids, items = fit.responses.item_ids, fit.parameters
    size = min(wanted.size, len(ids))
    chosen = {rule: information.short_form(items, size, rule, wanted.ability_range) for rule in SHORT_FORM_RULES}
    best = chosen["information"]
    short = items.take(best)
    most = information.dominant(items)
    rest = np.delete(np.arange(len(ids)), most)
    return Precision(
        full=information.information_table(items, ids),
        short=information.information_table(short, ids[best]),
        dominant=str(ids[most]),
        others=information.information_table(items.take(rest), ids[rest]),
        short_forms={rule: ids[positions] for rule, positions in chosen.items()},
        scores=information.score_table(items),
        reliability=information.marginal_reliability(items),
        short_reliability=information.marginal_reliability(short),
    )
