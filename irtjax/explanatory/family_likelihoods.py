"""What responses to items of families say of their slopes and intercepts, the abilities being as a fit found them.

As `item_likelihoods` of right/wrong items, which those of two categories are. What else an item has, such as the gaps
between its thresholds, is at its maximum given slope and intercept, under its prior.
"""

from typing import Any, NamedTuple

import jax
import numpy as np

from irtjax.explanatory.item_likelihoods import POSTERIOR, ItemLikelihoods
from irtjax.fits.result import Fit
from irtjax.item_models.families import Families
from irtjax.item_models.listing import model_of
from irtjax.item_models.protocol import PredictorParameters
from irtjax.types import AnyArray, Float

CELLS = 2**20  # derivatives of responses that are held at a time


def family_likelihoods(fit: Fit, *, own_slopes: bool) -> ItemLikelihoods:
    """The likelihoods of the items of a graded or a binomial model (D = 1), as `item_likelihoods` has them.

    Args:
        fit: of one model, by MML.
        own_slopes: whether each item has one; else the unit is that of the fit.
    """
    origin, unit = float(fit.ability.mean()), 1.0
    if own_slopes:
        unit = float(np.sqrt(fit.ability.var() + (fit.ability_se**2).mean()))
    theta = ((fit.ability - origin) / unit)[:, None] + (fit.ability_se / unit)[:, None] * POSTERIOR.nodes[:, 0]
    slope, intercept, others, top = (np.asarray(leaf) for leaf in fit.parameters)
    slope, intercept = slope * unit, intercept + slope[:, 0] * origin
    items = PredictorParameters(slope, intercept, others, top)
    model = model_of(fit.item_models, top)
    values = np.asarray(fit.responses.values)
    observed = np.where(values >= 0, 1.0 if fit.responses.trials is None else fit.responses.trials, 0.0)
    size, step = 2 + others.shape[1], max(1, CELLS // (len(values) * (2 + others.shape[1]) ** 2))
    gradient, information = np.zeros((len(top), size)), np.zeros((len(top), size, size))
    with jax.enable_x64(True):
        for at in range(0, len(top), step):
            some = np.arange(at, min(at + step, len(top)))
            found = _sums(model.take(some), items.take(some), theta, values[:, some], observed[:, some])
            gradient[some], information[some] = found
    gradient, information = _without_others(gradient, information, others, _priors(fit, others.shape[1]))
    return ItemLikelihoods(slope[:, 0], intercept, gradient, information, origin, unit)


def _sums(
    model: Families,
    items: PredictorParameters,
    theta: Float[np.ndarray, "J Q"],
    values: AnyArray,
    observed: Float[np.ndarray, "J I"],
) -> tuple[Float[np.ndarray, "I K"], Float[np.ndarray, "I K K"]]:
    """Gradient and observed information of slope, intercept and others, over the posteriors (Louis 1982)."""
    statistics = np.asarray(model.statistics(values))
    size = 2 + items.others.shape[1]
    mean, square, complete = np.zeros((*observed.shape, size)), np.zeros((len(items.top), size, size)), 0.0
    for points, weight in zip(theta.T, np.exp(POSTERIOR.log_weights), strict=True):
        moments = model.moments(items, points[:, None], asymptotes=True)
        residual = np.asarray(moments.residual(statistics, observed))
        by_x, *by_others = (np.asarray(score) for score in moments.scores(residual))
        score = np.stack([by_x * points[:, None], by_x, *by_others], axis=2)[:, :, :size]
        bend = _square(moments.weights(observed), size - 1) - np.asarray(
            model.curvature(items, points[:, None], residual)
        )
        wide = np.concatenate([bend[:, :, :1], bend], axis=2)  # slope and intercept enter by the predictor
        wide = np.concatenate([wide[:, :, :, :1], wide], axis=3)
        wide[:, :, 0] *= points[:, None, None]
        wide[:, :, :, 0] *= points[:, None, None]
        complete = complete + weight * wide.sum(axis=0)
        square += weight * np.einsum("jik,jil->ikl", score, score)
        mean += weight * score
    return mean.sum(axis=0), complete - square + np.einsum("jik,jil->ikl", mean, mean)


def _square(rows: list[list[Any]], size: int) -> Float[np.ndarray, "J I K K"]:
    """Matrices out of their rows up to the diagonal."""
    found = np.zeros((*np.shape(rows[0][0]), size, size))
    for k, row in enumerate(rows):
        for n, one in enumerate(row):
            found[:, :, k, n] = found[:, :, n, k] = one
    return found


class _Prior(NamedTuple):
    """Normal priors of the others, L of each item; a precision of 0 for none."""

    mean: Float[np.ndarray, " L"]
    precision: Float[np.ndarray, " L"]


def _priors(fit: Fit, number: int) -> _Prior:
    """Those that the fit ended with."""
    found = [fit.details["priors"].get(f"step_{k}") for k in range(1, number + 1)]
    mean = np.array([0.0 if prior is None else prior["mean"] for prior in found])
    return _Prior(mean, np.array([0.0 if prior is None else prior["sd"] ** -2.0 for prior in found]))


def _without_others(
    gradient: Float[np.ndarray, "I K"],
    information: Float[np.ndarray, "I K K"],
    others: Float[np.ndarray, "I L"],
    prior: _Prior,
) -> tuple[Float[np.ndarray, "I 2"], Float[np.ndarray, "I 2 2"]]:
    """Gradient and information of slope and intercept, the others being where these and their priors have them."""
    number = others.shape[1]
    if not number:
        return gradient, information
    there = np.diagonal(information, axis1=1, axis2=2)[:, 2:] != 0  # an item of fewer categories has fewer
    precision = np.where(there, prior.precision, 1.0)
    own = information[:, 2:, 2:] + precision[:, :, None] * np.eye(number)
    pulled = gradient[:, 2:] + np.where(there, prior.precision * (prior.mean - others), 0.0)
    share = np.linalg.solve(own, information[:, 2:, :2]).swapaxes(1, 2)
    return gradient[:, :2] - (share @ pulled[:, :, None])[:, :, 0], information[:, :2, :2] - share @ information[
        :, 2:, :2
    ]
