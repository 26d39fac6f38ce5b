"""Log-likelihood, its slope and the information of abilities on known items of families, D = 1."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from irtjax.item_models.families import Families
from irtjax.item_models.protocol import Moments, PredictorParameters, per_statistic
from irtjax.types import AnyArray, Float

LEAST_INFORMATION = 1e-12  # of what a subject's items have elsewhere: with less, rounding decides on Warm's correction


class Data(NamedTuple):
    """What subjects answered.

    Attributes:
        statistics: (J, M) T of the responses.
        observed: (J, I) trials of each; 1 without trials, 0 where missing.
    """

    statistics: AnyArray
    observed: AnyArray


class Curves(NamedTuple):
    """Items at Q points.

    Attributes:
        eta: (Q, M) natural parameters.
        log_normalizer: (Q, I).
        by: (Q, M) η'.
        pull: (Q, I) E T · η'.
        information: (Q, I) I = η' Cov η' of one trial.
        warm: (Q, I) Warm's J; 0 where it was not asked for.
    """

    eta: AnyArray
    log_normalizer: AnyArray
    by: AnyArray
    pull: AnyArray
    information: AnyArray
    warm: AnyArray


def curves(model: Families, items: PredictorParameters, points: Float[AnyArray, " Q"], *, warm: bool) -> Curves:
    """Of families. J = E s³ + η' Cov η'' with s the score of one trial (Warm 1989, of any response), = I' - η'' Cov η'.

    Args:
        model: of the items.
        items: parameters.
        points: (Q,) abilities.
        warm: whether J is asked for.
    """
    shape = len(points), len(items.intercept), model.per_item

    def of(x: AnyArray) -> tuple[AnyArray, AnyArray, Any]:
        moments = model.moments(items, x[:, None], asymptotes=False)
        by, covered, information = information_of(moments, items)
        return by, information, (moments.mean, covered)

    natural = model.natural(items, points[:, None], asymptotes=False)
    if warm:
        (by, information, (mean, covered)), (second, change, _) = jax.jvp(of, (points,), (jnp.ones_like(points),))
        correction = change - (covered * second.reshape(shape)).sum(axis=2)
    else:
        by, information, (mean, covered) = of(points)
        correction = jnp.zeros_like(information)
    pull = (mean * by).reshape(shape).sum(axis=2)
    return Curves(natural.eta, natural.log_normalizer, by, pull, jnp.maximum(information, 0.0), correction)


def information_of(moments: Moments, items: PredictorParameters) -> tuple[AnyArray, AnyArray, AnyArray]:
    """η' (Q, M), Cov η' (Q, I, S) and I = η' Cov η' (Q, I) of items that have such moments."""
    assert moments.by_predictor is not None
    by = moments.by_predictor * per_statistic(items.slope.T, moments.per_item)
    of_items = by.reshape(*moments.covariance.shape[:2], -1)
    covered = moments.spread(of_items[..., None])[..., 0]
    return by, covered, (covered * of_items).sum(axis=2)


def at_own_points(
    at: Curves, data: Data
) -> tuple[Float[AnyArray, " J"], Float[AnyArray, " J"], Float[AnyArray, " J"], Float[AnyArray, " J"]]:
    """Log L, its slope, I and J of each of J subjects at a point of its own, by the curves at these (Q = J)."""
    shape = *data.observed.shape, -1
    # each item alone, so that what cancels does so to the last bit
    of_items = (data.statistics * at.eta).reshape(shape).sum(axis=2) - data.observed * at.log_normalizer
    pulled = (data.statistics * at.by).reshape(shape).sum(axis=2) - data.observed * at.pull
    information, warm = ((data.observed * part).sum(axis=1) for part in (at.information, at.warm))
    return of_items.sum(axis=1), pulled.sum(axis=1), information, warm


def at_shared_points(at: Curves, data: Data) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
    """The same of J subjects at Q points that they share, each (J, Q)."""
    height = data.statistics @ at.eta.T - data.observed @ at.log_normalizer.T
    slope = data.statistics @ at.by.T - data.observed @ at.pull.T
    return height, slope, data.observed @ at.information.T, data.observed @ at.warm.T


def own_log_likelihoods(
    model: Families, items: PredictorParameters, data: Data, points: Float[AnyArray, " J"]
) -> Float[AnyArray, " J"]:
    """Log L of each subject at a point of its own."""
    natural = model.natural(items, points[:, None], asymptotes=False)
    shape = *data.observed.shape, -1
    terms = (data.statistics * natural.eta).reshape(shape).sum(axis=2) - data.observed * natural.log_normalizer
    return terms.sum(axis=1)


@functools.partial(jax.jit, static_argnums=0)
def shared_log_likelihoods(
    model: Families, items: PredictorParameters, data: Data, points: Float[AnyArray, " Q"]
) -> Float[AnyArray, "J Q"]:
    """Log L of subjects at points that they share."""
    natural = model.natural(items, points[:, None], asymptotes=False)
    return data.statistics @ natural.eta.T - data.observed @ natural.log_normalizer.T
