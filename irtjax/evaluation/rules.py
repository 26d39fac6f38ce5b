"""Criteria for choosing the next item of an adaptive test: what an answer to each item of the bank is expected to tell.

A criterion is a gain for each of I items, never negative: the item of the largest is asked. What is known of a subject
is a posterior, as weights w of Q nodes. On these a gain is a matrix product of weights and tables (Q, I): for many
subjects at once, no exponential is left in it. The Fisher information at one point takes one exponential an item.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from irtjax.choices import of_each
from irtjax.evaluation import choices
from irtjax.evaluation.bank_tables import Curves, Tables, fisher_information, log_probabilities_at
from irtjax.kernels.models import ItemParameters, log_probabilities
from irtjax.kernels.precision import in_full_precision
from irtjax.types import AnyArray, Float

WIDTH = 3.0  # of the Kullback-Leibler interval, in standard deviations of the population, for one answer
ROUNDINGS = 8  # that a probability of an answer is away from 0 at least


class Knowledge(NamedTuple):
    """What is known of a subject.

    Attributes:
        ability: (D,) θ̂.
        weights: (Q,) posterior of the nodes, which sum to 1; (0,) with D > 1.
        number: of items that were asked.
        precision: (D, D) information of those items at θ̂, and of the population; (0, 0) unless the rule needs it.
    """

    ability: jax.Array
    weights: jax.Array
    number: jax.Array
    precision: jax.Array


@in_full_precision
def variance_reduction(
    right: Float[AnyArray, "I Q"], weights: Float[AnyArray, " Q"], values: Float[AnyArray, " Q"]
) -> Float[jax.Array, " I"]:
    """By how much an answer to each item is expected to reduce the posterior variance of f(θ).

        Var f - E Var(f | y_i) = Cov(P_i, f)² / (p̄ (1 - p̄)),   p̄ = E P_i

    because the mean of f given a right answer differs from the mean before it by Cov(P_i, f)/p̄, given a wrong one by
    -Cov(P_i, f)/(1 - p̄). The item of the largest reduction has the smallest expected variance (Owen 1975; van der
    Linden 1998).

    Args:
        right: (I, Q) P at the nodes.
        weights: (Q,) posterior.
        values: (Q,) f at the nodes: the ability itself, or the score.

    Returns:
        (I,), in units of f squared.
    """
    away = weights * (values - weights @ values)
    mean, covariance = jnp.stack([weights, away]) @ right.T
    least = ROUNDINGS * jnp.finfo(mean.dtype).eps
    mean = jnp.clip(mean, least, 1 - least)
    return covariance**2 / (mean * (1 - mean))


@in_full_precision
def kullback_leibler(
    curves: Curves,
    log_right: Float[AnyArray, "I Q"],
    log_wrong: Float[AnyArray, "I Q"],
    ability: Float[AnyArray, ""],
    weights: Float[AnyArray, " Q"],
) -> Float[jax.Array, " I"]:
    """Kullback-Leibler information of an answer to each item, between θ̂ and the nodes, summed with weights.

        K_i = Σ_q w_q [P̂_i log(P̂_i / P_i(θ_q)) + (1 - P̂_i) log((1 - P̂_i) / (1 - P_i(θ_q)))],   P̂_i = P_i(θ̂)

    With the posterior as weights it is the posterior-weighted index, with those of `interval_weights` the integral over
    an interval around θ̂ (Chang and Ying 1996).
    """
    log_p, log_q = log_probabilities_at(curves, ability)
    total = weights.sum()
    right, wrong = total * log_p - log_right @ weights, total * log_q - log_wrong @ weights
    return jnp.maximum(jnp.exp(log_p) * right + jnp.exp(log_q) * wrong, 0)


def interval_weights(
    nodes: Float[AnyArray, " Q"],
    centre: Float[AnyArray, ""],
    half: Float[AnyArray, ""],
    edges: Float[AnyArray, " _"] | None = None,
) -> Float[jax.Array, " Q"]:
    """Weights (Q,) with which values at nodes sum to an integral from centre - half to centre + half.

    At equally spaced nodes the integral of the cubic convolution interpolant (Keys 1981): its error is of the fourth
    order of the spacing, and arises at the two ends only. The interval ends one node before the nodes do. At others the
    length of what a node stands for that is in the interval: the error is of the second order at its ends.

    Args:
        nodes: (Q,) in increasing order.
        centre: of the interval.
        half: of its length.
        edges: (Q + 1,) between the parts that the nodes stand for; None or (0,) where they are equally spaced.
    """
    if edges is not None and edges.size:
        return jnp.diff(jnp.clip(edges, centre - half, centre + half))
    spacing = nodes[1] - nodes[0]

    def up_to(end: AnyArray) -> jax.Array:
        t = (jnp.clip(end, nodes[1], nodes[-2]) - nodes) / spacing
        u = jnp.minimum(jnp.abs(t), 2)
        near = ((0.375 * u - 2.5 / 3) * u**2 + 1) * u
        far = (((2.5 / 3 - 0.125 * u) * u - 2) * u + 2) * u - 1 / 6
        return jnp.sign(t) * jnp.where(u < 1, near, far)

    return spacing * (up_to(centre + half) - up_to(centre - half))


@in_full_precision
def determinant_gain(
    items: ItemParameters, ability: Float[AnyArray, " D"], precision: Float[AnyArray, "D D"]
) -> Float[jax.Array, " I"]:
    """By how much an answer to each item raises the determinant of the posterior information (Segall 1996).

        det(A + I_i) / det A - 1 = v_i a_i' A⁻¹ a_i,   v_i = (∂P_i/∂x_i)² / (P_i (1 - P_i))

    where A is the information of the items that were asked and of the population, I_i = v_i a_i a_i' that of item i at
    θ̂ with the logit x_i = a_i'θ̂ + intercept, and the formula is the matrix determinant lemma.

    Args:
        items: of D slopes each.
        ability: (D,) θ̂.
        precision: (D, D) A.
    """
    log_p, log_q, by_logit = (x[0] for x in log_probabilities(items, ability[None, :]))
    spread = jax.scipy.linalg.solve_triangular(jnp.linalg.cholesky(precision), items.slope.T, lower=True)
    return jnp.exp(2 * by_logit - log_p - log_q) * (spread**2).sum(axis=0)


def _information(tables: Tables, known: Knowledge, key: jax.Array) -> AnyArray:
    return fisher_information(tables.curves, known.ability[0])


def _variance(tables: Tables, known: Knowledge, key: jax.Array) -> jax.Array:
    return variance_reduction(tables.right, known.weights, tables.nodes)


def _score(tables: Tables, known: Knowledge, key: jax.Array) -> jax.Array:
    return variance_reduction(tables.right, known.weights, tables.score)


def _kl(tables: Tables, known: Knowledge, key: jax.Array) -> jax.Array:
    half = WIDTH * tables.scale / jnp.sqrt(jnp.maximum(known.number, 1).astype(known.ability.dtype))
    weights = interval_weights(tables.nodes, known.ability[0], half, tables.edges)
    return kullback_leibler(tables.curves, tables.log_right, tables.log_wrong, known.ability[0], weights)


def _kl_posterior(tables: Tables, known: Knowledge, key: jax.Array) -> jax.Array:
    return kullback_leibler(tables.curves, tables.log_right, tables.log_wrong, known.ability[0], known.weights)


def _determinant(tables: Tables, known: Knowledge, key: jax.Array) -> jax.Array:
    return determinant_gain(tables.items, known.ability, known.precision)


def _random(tables: Tables, known: Knowledge, key: jax.Array) -> jax.Array:
    return jax.random.uniform(key, tables.items.intercept.shape, known.ability.dtype)


Gain = Callable[[Tables, Knowledge, jax.Array], AnyArray]
RULES: dict[str, Gain] = of_each(
    choices.RULES,
    {
        "information": _information,
        "variance": _variance,
        "score": _score,
        "kl": _kl,
        "kl_posterior": _kl_posterior,
        "determinant": _determinant,
        "random": _random,
    },
)
IN_SEVERAL_DIMENSIONS = ("determinant", "random")
READ_RIGHT = ("variance", "score")  # P of the tables
