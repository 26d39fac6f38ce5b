"""Items that are not estimated like the others: anchors, extreme ones, and those whose lower asymptote is held."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.estimation.driver import Estimate
from irtjax.estimation.problem import Specification
from irtjax.item_models.tables import from_columns
from irtjax.kernels.models import ItemParameters, information
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.values import Responses
from irtjax.types import Bool, Float, Int, Shaped

LEAST_SPREAD = 0.01  # logits between abilities a standard deviation apart, to the steepest item
SURE = 40.0  # logits: an answer that adds nothing to a log-likelihood
FARTHEST = 100.0  # logits: an intercept with a larger standard error says nothing


def anchored_items(responses: Responses | ScaledResponses, anchors: pd.DataFrame) -> Bool[np.ndarray, " I"]:
    """Which items are anchors.

    Raises:
        InputError: none of them is among the items, or one is there twice.
    """
    twice = anchors["item_id"][anchors["item_id"].astype(str).duplicated()]
    if len(twice):
        raise InputError(f"anchor item '{twice.iloc[0]}' is there twice")
    anchored = np.isin(responses.item_ids, anchors["item_id"].astype(str))
    if not anchored.any():
        raise InputError("no anchor item is among the items of the responses: compare the item ids")
    return anchored


def held_guessing(
    guessing: float | Sequence[float] | np.ndarray, item_ids: Shaped[np.ndarray, " I"]
) -> Float[np.ndarray, " I"]:
    """The lower asymptotes that are held, NaN where they are not.

    Args:
        guessing: one for all items, or one per item, NaN where it is not held.
        item_ids: of the items.

    Raises:
        InputError: a wrong number of them, or one that is no number from 0 to below 1.
    """
    try:
        given = np.asarray(guessing, float)
        values = np.array(np.broadcast_to(given, item_ids.shape))
    except (TypeError, ValueError) as error:
        message = f"`guessing`: expected a number, or one for each of {item_ids.size} items (NaN: not held)"
        raise InputError(message) from error
    bad = ~(np.isnan(values) | ((values >= 0) & (values < 1)))
    if bad.any() or (given.ndim == 0 and np.isnan(given)):
        where = f" of item '{item_ids[bad][0]}'" if given.ndim else ""
        raise InputError(f"`guessing`={values[bad][0] if bad.any() else given}{where}: expected 0 to below 1")
    return values


def set_aside(
    items: ItemParameters, specification: Specification, extreme: Bool[np.ndarray, " I"], right: Int[np.ndarray, " I"]
) -> tuple[ItemParameters, Specification]:
    """The items and the specification of a fit in which extreme items, of which there are some, have no part.

    They are held with slope 0, and an intercept that makes their answers sure: they add 0 to every log-likelihood.

    Raises:
        InputError: one is one of the first D, which fix the rotation.
    """
    dims = specification.dims
    if dims > 1 and extreme[:dims].any():
        raise InputError(
            f"item {int(np.argmax(extreme)) + 1} is one of the first {dims}, which fix the rotation, and everyone or "
            "no one answered it right: put another item there"
        )
    slope, intercept, lower, upper = (np.array(leaf, float) for leaf in items)
    slope[extreme], lower[extreme], upper[extreme] = 0.0, -np.inf, np.inf
    intercept[extreme] = np.where(right[extreme] > 0, SURE, -SURE)
    free, shared, precision = (
        np.array(leaf) for leaf in (specification.free, specification.shared, specification.prior_precision)
    )
    free[extreme], precision[extreme] = False, 0.0
    if (shared & ~extreme).any():  # one slope has one prior, however many items share it
        precision[shared, 0] *= shared.sum() / (shared & ~extreme).sum()
    shared &= ~extreme
    return ItemParameters(slope, intercept, lower, upper), dataclasses.replace(
        specification,
        free=free,
        shared=shared,
        prior_precision=precision,
        has_shared=bool(shared.any()),
        free_slopes=bool(free[:, :dims].any()),
    )


def mark_unbounded(estimate: Estimate, guessing: Float[np.ndarray, " I"]) -> Estimate:
    """The estimate with the items marked unbounded whose intercept has run off below a lower asymptote that is held.

    Where fewer answers are right than by guessing, P = c for everyone is the likeliest curve, and nothing tells one
    intercept from a lower one.
    """
    dims = estimate.items.slope.shape[1]
    off = ~np.isnan(guessing) & (estimate.covariances[:, dims, dims] > FARTHEST**2)
    if not off.any():
        return estimate
    covariances = np.where(off[:, None, None], np.nan, estimate.covariances)
    return estimate._replace(unbounded=estimate.unbounded | off, covariances=covariances)


def place_anchors(
    items: ItemParameters,
    anchors: pd.DataFrame,
    item_ids: Shaped[np.ndarray, " I"],
    anchored: Bool[np.ndarray, " I"],
) -> ItemParameters:
    """Writes the anchors' parameters over the starting values.

    Raises:
        InputError: anchors of more than one dimension, or without parameters.
    """
    table = anchors.assign(item_id=anchors["item_id"].astype(str)).set_index("item_id").loc[item_ids[anchored]]
    held = from_columns(table)
    if held.slope.shape[1] > 1:
        raise InputError("anchor items need one discrimination and a difficulty")
    placed = ItemParameters(*(np.array(leaf, float) for leaf in items))
    for leaf, values in zip(placed, held, strict=True):
        leaf[anchored] = values
    return placed


def with_error_of_the_mean(
    estimate: Estimate, anchored: Bool[np.ndarray, " I"], observed: Int[np.ndarray, " I"]
) -> Estimate:
    """The estimate with the error of the population's mean for those of abilities, where abilities do not vary.

    On the scale of anchors the likeliest variance of few subjects is often 0, and that of one always is. All abilities
    are the mean then. Its error is (Σ_i n_i I_i)^-1/2, with the information of one answer to each anchor there.

    Args:
        estimate: of all items.
        anchored: (I,) which items are anchors.
        observed: (I,) n, the answers to each.
    """
    mean, sd = (np.asarray(leaf, float) for leaf in estimate.population)
    if np.abs(estimate.items.slope).max() * sd[0] >= LEAST_SPREAD:
        return estimate
    anchors = estimate.items.take(anchored)
    total = float(observed[anchored] @ information(anchors, mean[None])[0])
    return estimate._replace(ability_se=np.hypot(estimate.ability_se, total**-0.5))
