"""A bank of items as an adaptive test reads it: tables on nodes of ability, and what is cheap at one ability.

With e = exp(logit), all that is asked of a response function at one ability follows from one exponential:
P = (c + d e)/(1 + e) and 1 - P = (1 - c + (1 - d) e)/(1 + e).
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.kernels.ability_nodes import LineNodes
from irtjax.kernels.loops import mapped
from irtjax.kernels.models import ItemParameters, log_probabilities, sigmoids
from irtjax.types import AnyArray, Float, Int

BLOCK_ITEMS = 256
MOST_LOGITS = 0.45  # of the logarithm of the largest number: the square of an exponential is still finite
NEWTON_STEPS = 8  # from a node beside the maximum, half a standard deviation away


class Curves(NamedTuple):
    """Response functions of I items of one slope each, as what their Fisher information is made of; each (I,).

    Attributes:
        slope: a.
        intercept: of the logit.
        lower: c.
        not_lower: 1 - c.
        upper: d.
        not_upper: 1 - d.
        weight: a² (d - c)².
    """

    slope: AnyArray
    intercept: AnyArray
    lower: AnyArray
    not_lower: AnyArray
    upper: AnyArray
    not_upper: AnyArray
    weight: AnyArray


class Tables(NamedTuple):
    """A bank of I items, on Q nodes of ability; with D > 1 there are no nodes, Q = 0.

    Attributes:
        items: parameters.
        curves: the same for D = 1; with D > 1 those of the first slopes, which nothing reads.
        nodes: (Q,) abilities, in increasing order.
        edges: (Q + 1,) between the parts of the line that the nodes stand for; (0,) where these are equally long.
        log_right: (I, Q) log P.
        log_wrong: (I, Q) log(1 - P).
        right: (I, Q) P; (I, 0) unless the rule needs it.
        score: (Q,) S, the mean of P over the items.
        noise: (Q,) the mean of P (1 - P).
        scale: standard deviation of the population, in logits.
    """

    items: ItemParameters
    curves: Curves
    nodes: jax.Array
    edges: jax.Array
    log_right: jax.Array
    log_wrong: jax.Array
    right: jax.Array
    score: jax.Array
    noise: jax.Array
    scale: jax.Array


def tables_of(items: ItemParameters, line: LineNodes, scale: float, keep_right: bool = False) -> Tables:
    """What rules and posteriors look up about a bank; computed in float64, kept in the dtype of the bank.

    Args:
        items: of the bank, NumPy arrays.
        line: nodes of ability; none with D > 1.
        scale: standard deviation of the population, in logits.
        keep_right: whether the rule reads P, beside its logarithm.
    """
    dtype = jnp.asarray(items.slope).dtype
    exact = ItemParameters(*(np.asarray(leaf, float) for leaf in items))
    with jax.enable_x64(True):
        log_right, log_wrong = (np.asarray(x) for x in _log_tables(exact, line.nodes))
    right = np.exp(log_right)
    rest = (
        curves_of(exact),
        line.nodes,
        line.edges,
        log_right,
        log_wrong,
        right if keep_right else right[:, :0],
        right.mean(axis=0),
        (right * np.exp(log_wrong)).mean(axis=0),
        np.asarray(scale),
    )
    return Tables(jax.tree.map(jnp.asarray, items), *jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), rest))


@jax.jit
def _log_tables(items: ItemParameters, nodes: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Logarithms of P and 1 - P, (I, Q)."""

    def of_item(item: ItemParameters) -> tuple[AnyArray, AnyArray]:
        one = jax.tree.map(lambda leaf: leaf[None], item)._replace(slope=item.slope[None, :1])
        log_p, log_q, _ = log_probabilities(one, nodes[:, None])
        return log_p[:, 0], log_q[:, 0]

    return mapped(of_item, items, nodes.size, BLOCK_ITEMS)


def curves_of(items: ItemParameters) -> Curves:
    """The parts of the response functions; NumPy arrays where the parameters are."""
    (lower, not_lower), (upper, not_upper) = sigmoids(items.lower), sigmoids(items.upper)
    slope = items.slope[:, 0]
    weight = (slope * (not_lower - not_upper)) ** 2
    return Curves(slope, items.intercept, lower, not_lower, upper, not_upper, weight)


def fisher_information(curves: Curves, ability: Float[AnyArray, ""]) -> Float[AnyArray, " I"]:
    """Fisher information of one answer to each item at an ability, D = 1 (Birnbaum 1968).

        I_i(θ) = P_i'² / (P_i (1 - P_i)) = a² (d - c)² s² / ((c + d e)(1 - c + (1 - d) e)),   s = e/(1 + e)

    Unlike `irtjax.kernels.models.information` it is finite however steep the item is: beyond 39 logits (float32) the
    information is that of 39 logits.
    """
    e = _odds(curves, ability)
    s = e / (1 + e)
    return curves.weight * s**2 / ((curves.lower + curves.upper * e) * (curves.not_lower + curves.not_upper * e))


def mode_nearby(
    curves: Curves,
    answers: Int[AnyArray, " I"],
    start: Float[AnyArray, ""],
    reach: Float[AnyArray, ""],
    mean: Float[AnyArray, ""] | float = 0.0,
    precision: Float[AnyArray, ""] | float = 0.0,
) -> tuple[Float[jax.Array, ""], Float[jax.Array, ""]]:
    """The maximum of a likelihood times a normal density, within `reach` of a point that is near to it, D = 1.

    Newton's method: ∂ log P = a (d e/(c + d e) - s) and ∂ log(1 - P) = a ((1 - d) e/(1 - c + (1 - d) e) - s), both of
    the form a (t - s) with the derivative a² (t (1 - t) - s (1 - s)).

    Args:
        curves: of I items.
        answers: (I,) 1 right, 0 wrong, negative missing.
        start: in logits.
        reach: in logits.
        mean: of the density.
        precision: its 1/σ²; 0 for maximum likelihood.

    Returns:
        Its place, and the standard error from the expected information there.
    """
    seen = answers >= 0

    def step(_: int, theta: jax.Array) -> jax.Array:
        e = _odds(curves, theta)
        s = e / (1 + e)
        right = curves.upper * e / (curves.lower + curves.upper * e)
        wrong = curves.not_upper * e / (curves.not_lower + curves.not_upper * e)
        t = jnp.where(answers == 1, right, wrong)
        slope = jnp.where(seen, curves.slope * (t - s), 0).sum() - precision * (theta - mean)
        bend = jnp.where(seen, curves.slope**2 * (t * (1 - t) - s * (1 - s)), 0).sum() - precision
        change = jnp.where(bend < 0, -slope / jnp.where(bend < 0, bend, 1), jnp.sign(slope) * reach / 2)
        return jnp.clip(theta + change, start - reach, start + reach)

    theta = jax.lax.fori_loop(0, NEWTON_STEPS, step, jnp.asarray(start))
    return theta, (jnp.where(seen, fisher_information(curves, theta), 0).sum() + precision) ** -0.5


def log_probabilities_at(curves: Curves, ability: Float[AnyArray, ""]) -> tuple[jax.Array, jax.Array]:
    """Log P and log(1 - P) (I,) at an ability; beyond 39 logits (float32) those of 39 logits."""
    e = _odds(curves, ability)
    total = jnp.log1p(e)
    right = jnp.log(curves.lower + curves.upper * e) - total
    return right, jnp.log(curves.not_lower + curves.not_upper * e) - total


def _odds(curves: Curves, ability: AnyArray) -> jax.Array:
    """The exponential of the logit, so far from 0 and infinity that its square is a number."""
    limit = MOST_LOGITS * math.log(jnp.finfo(curves.slope.dtype).max)
    return jnp.exp(jnp.clip(curves.slope * ability + curves.intercept, -limit, limit))
