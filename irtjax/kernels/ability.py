"""Abilities, and their posterior given answers to items of known parameters."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr

from irtjax.kernels.models import ItemParameters, log_probabilities
from irtjax.populations.normal import STANDARD, Population
from irtjax.types import AnyArray, Float


class Ability(NamedTuple):
    """An ability and its standard error, in logits; scalars, or (D,) with D > 1 dimensions."""

    ability: jax.Array
    standard_error: jax.Array


def percentile(ability: Float[AnyArray, "..."], population: Population = STANDARD) -> Float[AnyArray, "..."]:
    """Percentage of the population below an ability: 100 Φ((θ - μ)/σ)."""
    return 100 * ndtr((ability - population.mean) / population.sd)


def log_posterior(
    responses: AnyArray, items: ItemParameters, standard_normal: bool
) -> tuple[Callable[[jax.Array], jax.Array], Callable[[jax.Array], tuple[jax.Array, jax.Array]]]:
    """The log-likelihood at points (Q, D), and its gradient and expected information at one; or the log-posterior.

    Args:
        responses: (I,) 1 right, 0 wrong, negative missing.
        items: parameters of the I items.
        standard_normal: whether a standard normal prior of each dimension is multiplied in.
    """
    dims, dtype = items.slope.shape[1], items.slope.dtype
    right, wrong = responses == 1, responses == 0

    def objective(points: jax.Array) -> jax.Array:
        p, q, _ = log_probabilities(items, points)
        value = jnp.where(right, p, jnp.where(wrong, q, 0)).sum(axis=1)
        return value - 0.5 * (points**2).sum(axis=1) if standard_normal else value

    def slope_and_information(point: jax.Array) -> tuple[jax.Array, jax.Array]:
        p, q, by_logit = (x[0] for x in log_probabilities(items, point[None, :]))
        residual = jnp.where(right, jnp.exp(by_logit - p), jnp.where(wrong, -jnp.exp(by_logit - q), 0))
        weight = jnp.where(right | wrong, jnp.exp(2 * by_logit - p - q), 0)
        slope = residual @ items.slope
        information = jnp.einsum("i,ik,il->kl", weight, items.slope, items.slope)
        if standard_normal:
            slope, information = slope - point, information + jnp.eye(dims, dtype=dtype)
        return slope, information

    return objective, slope_and_information


def scale_of(items: ItemParameters, population: Population | None) -> tuple[jax.Array, jax.Array]:
    """Origin and unit (D,) in which to look for an ability: those of the population, or of the median item."""
    dims, dtype = items.slope.shape[1], items.slope.dtype
    if population is not None:
        return tuple(jnp.broadcast_to(jnp.asarray(x, dtype), (dims,)) for x in population)  # type: ignore[return-value]
    slope = jnp.where(items.slope == 0, jnp.nan, items.slope)
    unit = 1 / jnp.nanmedian(jnp.abs(slope), axis=0)
    centre = jnp.nanmedian(-items.intercept[:, None] / slope, axis=0) if dims == 1 else jnp.zeros(dims, dtype)
    return jnp.nan_to_num(centre), jnp.nan_to_num(unit, nan=1.0)


def rescaled(items: ItemParameters, centre: jax.Array, unit: jax.Array) -> ItemParameters:
    """The parameters for abilities in units from an origin."""
    return items._replace(slope=items.slope * unit[None, :], intercept=items.intercept + items.slope @ centre)


def on_scale(z: jax.Array, error: jax.Array, centre: jax.Array, unit: jax.Array) -> Ability:
    """Points and errors (D,) in units from an origin as an ability in logits."""
    theta, error = centre + unit * z, unit * error
    return Ability(theta[0], error[0]) if z.size == 1 else Ability(theta, error)
