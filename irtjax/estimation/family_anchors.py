"""Items that are not right or wrong and are held at known parameters: they put a fit on an earlier scale."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.estimation.driver import Estimate
from irtjax.estimation.special_items import LEAST_SPREAD, anchored_items
from irtjax.item_models.coded_counts import coded
from irtjax.item_models.listing import MODELS
from irtjax.item_models.protocol import PredictorParameters
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.values import OnScales
from irtjax.scoring.family_curves import curves
from irtjax.scoring.family_items import KnownItems, known_items, matched
from irtjax.types import Bool, Int, Shaped

TOGETHER = 500  # anchors whose categories are looked up at once


class Anchors(NamedTuple):
    """Items that are held.

    Attributes:
        held: (I,) which.
        known: those of them that the responses have, in their order.
    """

    held: Bool[np.ndarray, " I"]
    known: KnownItems


def anchors_of(responses: OnScales, models: Sequence[str], table: pd.DataFrame, dims: int) -> tuple[OnScales, Anchors]:
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
    scales = list(responses.scales)
    if "grades" not in rows and any(scales[i].labels is not None for i in places):
        raise InputError("anchor items with categories need the column grades of `items.csv`, such as 1|2|3")
    known = known_items(rows.assign(model=named))
    assert known is not None
    if isinstance(responses, SparseResponses):
        answers, known = _by_the_answer(responses, places, known)
        for i, scale in zip(places, known.scales, strict=True):
            scales[i] = scale
        return dataclasses.replace(responses, answers=answers, scales=tuple(scales)), Anchors(held, known)
    found, known = matched(responses.choose_items(held), known)
    values = np.array(responses.values)
    values[:, places] = found.values
    for i, scale in zip(places, known.scales, strict=True):
        scales[i] = scale
    return dataclasses.replace(responses, values=values, scales=tuple(scales)), Anchors(held, known)


def _by_the_answer(
    responses: SparseResponses, places: Int[np.ndarray, " n"], known: KnownItems
) -> tuple[Shaped[np.ndarray, " N"], KnownItems]:
    """Answers with those to anchors in the categories that these have: by one subject who chose each category."""
    answers, parts = np.array(responses.answers), []
    for some in np.array_split(places, -(-len(places) // TOGETHER)):
        own = responses.choose_items(some)
        labelled = np.array([scale.labels is not None for scale in own.scales])
        at = np.flatnonzero(labelled[own.items])
        chosen = np.unique(np.stack([own.items[at], own.answers[at].astype(int)]), axis=1, return_index=True)[1]
        few = own.choose_subjects(np.unique(own.subjects[at[chosen]] if len(at) else own.subjects[:1]))
        found, matching = matched(few.read(), known)
        parts.append(matching)
        most = max(scale.top for scale in own.scales) + 1
        moved = np.zeros((len(responses.item_ids), most), int)
        moved[some[few.items], few.answers.astype(int) % most] = np.asarray(found.values)[few.subjects, few.items]
        mine = np.isin(responses.items, some[labelled])
        answers[mine] = moved[responses.items[mine], responses.answers[mine].astype(int)]
    return answers, known.take(pd.Index(known.item_ids.astype(str)).get_indexer(responses.item_ids[places].astype(str)))


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


def with_error_of_the_mean(estimate: Estimate, anchors: Anchors, responses: OnScales) -> Estimate:
    """As `special_items.with_error_of_the_mean`: where abilities do not vary, their errors are that of the mean."""
    mean, sd = (np.asarray(leaf, float) for leaf in estimate.population)
    if np.abs(estimate.items.slope).max() * sd[0] >= LEAST_SPREAD:
        return estimate
    known, given = anchors.known, responses.answered(anchors.held)
    items = (np.cumsum(anchors.held) - 1)[given.items]
    found = coded(known.model, given.values, given.trials, np.asarray(known.parameters.top), items)
    at = curves(found.model, known.parameters._replace(top=found.top), mean[:1], warm=False)
    total = float(np.bincount(items, found.trials, len(found.top)) @ np.asarray(at.information)[0])
    return estimate._replace(ability_se=np.hypot(estimate.ability_se, total**-0.5))
