"""How precisely a scale measures, as a whole, without its most informative item, and by a few of its items."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from irtjax.fits.result import Fit
from irtjax.scale import information
from irtjax.scoring.family_items import known_items

SHORT_FORM_RULES = ("information", "slope")


class Precision(NamedTuple):
    """How precisely a scale and its short form measure.

    Attributes:
        full: information of the scale, from `irtjax.scale.information.information_table`.
        short: the same for the short form of largest information.
        dominant: id of the most informative item at the maximum.
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


def precision(fit: Fit, size: int, ability_range: tuple[float, float] = information.RANGE) -> Precision:
    """The precision of a scale.

    Args:
        fit: of its items.
        size: of its short form, if the scale has so many items.
        ability_range: lowest and highest ability that the short form is chosen for.
    """
    ids, items = fit.responses.item_ids, known_items(fit) or fit.parameters
    size = min(size, len(ids))
    chosen = {rule: information.short_form(items, size, rule, ability_range) for rule in SHORT_FORM_RULES}
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


def reliability_of(fit: Fit) -> float:
    """Marginal reliability of the items of a fit."""
    return information.marginal_reliability(known_items(fit) or fit.parameters)
