"""What there is to report of each group of items."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from irtjax.estimation.result import Fit
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
        comparisons: of subjects, from `irtjax.scale.groups.compare`; empty if there is no scale.
    """

    name: str
    result: ScaleResult
    confirmation: Confirmation | None
    comparisons: dict[str, pd.DataFrame]


class ShortForms(NamedTuple):
    """How many items a short form has, and the lowest and highest ability that it is chosen for."""

    size: int
    ability_range: tuple[float, float]


class Precision(NamedTuple):
    """How precisely a scale and its short form measure.

    Attributes:
        full: information of the scale, from `irtjax.scale.information.information_table`.
        short: the same for the short form of largest information.
        short_forms: ids of the items of the short form by each of `SHORT_FORM_RULES`, the best first.
        scores: from `irtjax.scale.information.score_table`.
        reliability: marginal reliability of the scale.
        short_reliability: that of the short form of largest information.
    """

    full: pd.DataFrame
    short: pd.DataFrame
    short_forms: dict[str, np.ndarray]
    scores: pd.DataFrame
    reliability: float
    short_reliability: float


def precision(fit: Fit, wanted: ShortForms) -> Precision:
    """The precision of a scale, with a short form of at most as many items as the scale has."""
    ids, items = fit.responses.item_ids, fit.parameters
    size = min(wanted.size, len(ids))
    chosen = {rule: information.short_form(items, size, rule, wanted.ability_range) for rule in SHORT_FORM_RULES}
    best = chosen["information"]
    short = information.choose(items, best)
    return Precision(
        full=information.information_table(items, ids),
        short=information.information_table(short, ids[best]),
        short_forms={rule: ids[positions] for rule, positions in chosen.items()},
        scores=information.score_table(items),
        reliability=information.marginal_reliability(items),
        short_reliability=information.marginal_reliability(short),
    )
