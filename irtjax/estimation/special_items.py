"""Items that are not estimated like the others: anchors, held asymptotes, items that everyone or no one got right."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.special import expit

from irtjax import processes
from irtjax.errors import InputError
from irtjax.estimation.estimate import Estimate
from irtjax.estimation.priors import NormalPrior
from irtjax.integration.posteriors import posteriors
from irtjax.kernels.models import ItemParameters, from_table, probabilities
from irtjax.responses.matrix import MISSING
from irtjax.responses.stored import Responses
from irtjax.types import Bool, Float, Int, Shaped

EXTREME_PRIOR = NormalPrior(0.0, 3.0)  # on intercepts of extreme items, in standard deviations of the population
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
FARTHEST = 100.0  # logits: an intercept with a larger standard error says nothing
MOST_STEPS, LONGEST_STEP = 100, 2.0  # of Newton's method


def anchored_items(responses: Responses, anchors: pd.DataFrame | None) -> Bool[np.ndarray, " I"]:
    """Which items are anchors.

    Raises:
        InputError: there are anchors, and none of them is among the items, or one is there twice.
    """
    if anchors is None:
        return np.zeros(responses.num_items, bool)
    twice = anchors["item_id"][anchors["item_id"].astype(str).duplicated()]
    if len(twice):
        raise InputError(f"anchor item '{twice.iloc[0]}' is there twice")
    anchored = np.isin(responses.item_ids, anchors["item_id"].astype(str))
    if not anchored.any():
        raise InputError("no anchor item is among the items of the responses: compare the item ids")
    return anchored


def held_guessing(
    guessing: float | Sequence[float] | np.ndarray | None,
    item_ids: Shaped[np.ndarray, " I"],
    extreme: Bool[np.ndarray, " I"],
) -> Float[np.ndarray, " I"] | None:
    """The lower asymptotes that are held, NaN where they are not; extreme items have none.

    Args:
        guessing: one for all items, or one per item, NaN where it is not held; None for none.
        item_ids: of the items.
        extreme: (I,) which were answered right by everyone or by no one.

    Raises:
        InputError: a wrong number of them, or one that is no number from 0 to below 1.
    """
    if guessing is None:
        return None
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
    values[extreme] = np.nan
    return values


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


def check_extremes(responses: Responses, extreme: Bool[np.ndarray, " I"], choice: str) -> None:
    """Refuses extreme items where the choice is to refuse them.

    Raises:
        InputError: an unknown choice, or refused items; it names the first five.
    """
    if choice not in ("refuse", "keep"):
        raise InputError(f"unknown choice {choice!r} for extreme items, expected refuse or keep")
    if choice == "refuse" and extreme.any():
        names = ", ".join(f"'{item}'" for item in responses.item_ids[extreme][:5])
        more = f" and {extreme.sum() - 5} more" if extreme.sum() > 5 else ""
        raise InputError(
            f"everyone or no one answered {names}{more} right, so their difficulty has no finite maximum: "
            "remove them, or keep them under a prior (`extremes=keep`)"
        )


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
    held = from_table(table)
    if held.slope.shape[1] > 1:
        raise InputError("anchor items need one discrimination and a difficulty")
    placed = ItemParameters(*(np.array(leaf, float) for leaf in items))
    for leaf, values in zip(placed, held, strict=True):
        leaf[anchored] = values
    return placed


def place_extremes(
    estimate: Estimate, items: ItemParameters, values: Int[np.ndarray, "J I"], extreme: Bool[np.ndarray, " I"]
) -> Estimate:
    """Adds extreme items to the estimate of the others, each at its posterior mode given the abilities.

    Each intercept c maximises Σ_j E log P(y_j | c, θ_j) + log N(c + a mean; 0, (3 sd)²), where mean and sd are those of
    the population, and the expectation is over a normal posterior of the ability. Extreme items say nothing of
    abilities: if they had a part in the fit, their prior would pull the whole scale to where it likes their intercepts
    best.

    Args:
        estimate: of the items that are not extreme.
        items: all of them as they start: of extreme items all but the intercepts is kept.
        values: of all items, and of this process's subjects.
        extreme: (I,) which were answered right by everyone or by no one.
    """
    dims, (mean, *_), (sd, *_) = items.slope.shape[1], *estimate.population
    array = ItemParameters(*(np.array(leaf, float) for leaf in items))
    for leaf, fitted in zip(array, estimate.items, strict=True):
        leaf[~extreme] = fitted
    seen = processes.gather(np.asarray(values)[:, extreme])
    patterns, which = np.unique(seen, axis=1, return_inverse=True)
    abilities = estimate.ability[:, 0, None] + estimate.ability_se[:, 0, None] * NODES
    slope = array.slope[extreme][0, 0]  # the same for all
    found = [_intercept(slope * (abilities - mean), answers, EXTREME_PRIOR.sd * sd) for answers in patterns.T]
    at_mean, variance = np.array(found)[which.ravel()].T
    array.intercept[extreme] = at_mean - slope * mean
    covariances = np.zeros((extreme.size, *estimate.covariances.shape[1:]))
    covariances[~extreme] = estimate.covariances
    covariances[extreme, dims, dims] = variance
    unbounded = np.zeros(extreme.size, bool)
    unbounded[~extreme] = estimate.unbounded
    if dims > 1:  # without slopes they add the same at all abilities
        p, q = probabilities(array, np.zeros((1, dims)))
        added = (seen == 1) @ np.log(p[0, extreme]) + (seen == 0) @ np.log(q[0, extreme])
        log_likelihoods, log_likelihood = estimate.log_likelihoods + added, estimate.log_likelihood + added.sum()
    else:
        log_likelihoods = np.empty(len(values))
        for part in posteriors(array, values, *estimate.population):
            log_likelihoods[part.rows] = part.log_likelihood
        log_likelihoods = processes.gather(log_likelihoods)
        log_likelihood = log_likelihoods.sum()
    return estimate._replace(
        items=array,
        covariances=covariances,
        unbounded=unbounded,
        log_likelihoods=log_likelihoods,
        log_likelihood=float(log_likelihood),
    )


def _intercept(logits: Float[np.ndarray, "J Q"], answers: Int[np.ndarray, " J"], sd: float) -> tuple[float, float]:
    """Posterior mode of an intercept under N(0, sd²), and its variance, given what else makes the logits at nodes."""
    seen = answers != MISSING
    sign, logits, intercept = 2.0 * answers[seen].max() - 1, logits[seen], 0.0
    for _ in range(MOST_STEPS):
        wrong = expit(-sign * (intercept + logits))
        gradient = sign * (wrong @ NODE_WEIGHTS).sum() / NODE_WEIGHTS.sum() - intercept / sd**2
        information = ((wrong * (1 - wrong)) @ NODE_WEIGHTS).sum() / NODE_WEIGHTS.sum() + 1 / sd**2
        step = np.clip(gradient / information, -LONGEST_STEP, LONGEST_STEP)
        intercept += step
        if abs(step) < 1e-10:
            break
    return float(intercept), float(1 / information)
