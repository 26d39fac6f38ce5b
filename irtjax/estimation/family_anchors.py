"""Items that are not right or wrong and are held at known parameters: they put a fit on an earlier scale."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.estimation.driver import Estimate
from irtjax.estimation.special_items import LEAST_SPREAD, anchored_items
from irtjax.item_models.listing import MODELS
from irtjax.item_models.protocol import PredictorParameters
from irtjax.responses.scaled import ScaledResponses
from irtjax.scoring.family_curves import curves
from irtjax.scoring.family_items import KnownItems, known_items, matched, ready
from irtjax.types import Bool


class Anchors(NamedTuple):
    """Items that are held.

    Attributes:
        held: (I,) which.
        known: those of them that the responses have, in their order.
    """

    held: Bool[np.ndarray, " I"]
    known: KnownItems


def anchors_of(
    responses: ScaledResponses, models: Sequence[str], table: pd.DataFrame, dims: int
) -> tuple[ScaledResponses, Anchors]:
    """The responses, those to anchors in the categories that these have, and the anchors.

    Args:
        responses: to I items.
        models: of each.
        table: rows of an `items.csv` with the columns item_id, model and, of categories, grades.
        dims: of abilities.

    Raises:
        InputError: several dimensions, no anchor among the items, an anchor of another model or without a parameter,
            or a response that it cannot have.
    """
    if dims > 1:
        raise InputError("anchor items need dims 1")
    held = anchored_items(responses, table)
    places = np.flatnonzero(held)
    ids = responses.item_ids[places].astype(str)
    rows = table.assign(item_id=table["item_id"].astype(str)).set_index("item_id").loc[ids]
    wanted = [models[i] for i in places.tolist()]
    named = rows["model"].astype(str).tolist() if "model" in rows else wanted
    for item, name, model in zip(ids, named, wanted, strict=True):
        if name != model:
            raise InputError(f"anchor item {str(item)!r} has the model {name}, and is to be fitted by the {model}")
        if MODELS[name].family.name == "nominal":
            raise InputError(f"anchor item {str(item)!r}: items of the nominal model cannot be held")
    if "grades" not in rows and any(responses.scales[i].labels is not None for i in places):
        raise InputError("anchor items with categories need the column grades of `items.csv`, such as 1|2|3")
    known = known_items(rows.assign(model=named))
    assert known is not None
    found, known = matched(responses.choose_items(held), known)
    values, scales = np.array(responses.values), list(responses.scales)
    values[:, places] = found.values
    for i, scale in zip(places, known.scales, strict=True):
        scales[i] = scale
    moved = ScaledResponses(values, responses.subject_ids, responses.item_ids, tuple(scales), responses.trials)
    return moved, Anchors(held, known)


def placed(items: PredictorParameters, anchors: Anchors, models: Sequence[str]) -> PredictorParameters:
    """The items with the anchors at their parameters, and with what all items have in common as the anchors have it.

    These are slopes of partial credit, and the steps of a rating scale.

    Raises:
        InputError: anchors of a rating scale whose steps differ.
    """
    slope, intercept, others = (np.array(leaf, float) for leaf in (items.slope, items.intercept, items.others))
    known, width = anchors.known.parameters, min(others.shape[1], anchors.known.parameters.others.shape[1])
    if not any(MODELS[name].own_slopes for name in models):
        slope[:] = np.mean(known.slope)
    if MODELS[models[0]].common_steps:
        if not np.allclose(known.others, known.others[:1], atol=1e-6):
            raise InputError("anchor items of the rsm have different steps: they are those of one fit")
        others[:, :width] = known.others[:1, :width]
    slope[anchors.held], intercept[anchors.held] = known.slope, known.intercept
    others[anchors.held] = 0.0
    others[np.ix_(np.flatnonzero(anchors.held), np.arange(width))] = known.others[:, :width]
    return items._replace(slope=slope, intercept=intercept, others=others)


def with_error_of_the_mean(estimate: Estimate, anchors: Anchors, responses: ScaledResponses) -> Estimate:
    """As `special_items.with_error_of_the_mean`: where abilities do not vary, their errors are that of the mean."""
    mean, sd = (np.asarray(leaf, float) for leaf in estimate.population)
    if np.abs(estimate.items.slope).max() * sd[0] >= LEAST_SPREAD:
        return estimate
    found, known = ready(responses.choose_items(anchors.held), anchors.known)
    trials: Any = found.observed if found.trials is None else found.trials * found.observed
    at = curves(known.model, known.parameters, mean[:1], warm=False)
    total = float(trials.sum(axis=0) @ np.asarray(at.information)[0])
    return estimate._replace(ability_se=np.hypot(estimate.ability_se, total**-0.5))
