"""Extrapolation of the iteration with normal posteriors: to where the last steps together point (Anderson 1965).

Items and abilities take turns. With few subjects each of the two follows the other closely, and what both have to go
together they go by a small share each time: x ← G(x) ends slowly, and is still away from rest by many times the last
step. With f = G(x) - x, and Δ the differences between successive iterations, the next x is

    G(x) - Σ_k γ_k ΔG_k        where γ minimises |f - Σ_k γ_k Δf_k|

in standard errors. On a linear iteration of P unknowns it is at rest after P + 1 steps (Walker and Ni 2011).
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from irtjax.estimation.normal.damping import Damping
from irtjax.estimation.normal.scale import LatentScale
from irtjax.estimation.problem import Specification
from irtjax.kernels.precision import in_full_precision
from irtjax.types import AnyArray, Float

BEGINS = 2.0  # change in standard errors, above which the iteration is not nearly linear
DEPTH = 5  # differences that are remembered
VARIANCE = 0.2  # of an answer, as far as the weight of items goes
MOST_CHANGE = 1.0  # of anything, beyond G(x)
RIDGE = 1e-8  # of the squares, as differences in float32 are known


class Parts(NamedTuple):
    """What is extrapolated; covariances of abilities follow from it in the next step.

    Attributes:
        slope: (I, D).
        intercept: (I,).
        ability: (J, D) posterior means.
        prior_mean: (I, K).
        log_precision: (I, K) of the priors, 0 where there is none.
    """

    slope: jax.Array
    intercept: jax.Array
    ability: AnyArray
    prior_mean: AnyArray
    log_precision: AnyArray


class Trail(NamedTuple):
    """Where the iteration went lately.

    Attributes:
        result: G(x) of the last step.
        move: G(x) - x of it.
        results: differences of the former, (`DEPTH`, …) each, the latest first; 0 where there is none yet.
        moves: those of the latter.
    """

    result: Parts
    move: Parts
    results: Parts
    moves: Parts


def extrapolated(
    trail: Trail | None,
    before: Parts,
    after: tuple[LatentScale, Specification],
    damping: tuple[Damping, Damping],
    weight: Float[jax.Array, " J"],
) -> tuple[Trail, LatentScale, Specification, tuple[Damping, Damping]]:
    """Where to go on from after a step, and the trail with it; from where the step led if there is no trail yet.

    Args:
        trail: of the steps before.
        before: where the step began.
        after: items, posteriors and priors that it led to.
        damping: after the step. Where the next one turns back, that is no sign of overshooting any more.
        weight: 1 for a subject, 0 for padding.
    """
    if trail is None:
        return _begun(before, after), *after, damping
    return _extrapolated(trail, before, after, damping, weight)


@jax.jit
def _begun(before: Parts, after: tuple[LatentScale, Specification]) -> Trail:
    result = parts(*after)
    none = jax.tree.map(lambda leaf: jnp.zeros((DEPTH, *leaf.shape), leaf.dtype), result)
    return Trail(result, _less(result, before), none, none)


@jax.jit
@in_full_precision
def _extrapolated(
    trail: Trail,
    before: Parts,
    after: tuple[LatentScale, Specification],
    damping: tuple[Damping, Damping],
    weight: jax.Array,
) -> tuple[Trail, LatentScale, Specification, tuple[Damping, Damping]]:
    scaled, specification = after
    result = parts(*after)
    move = _less(result, before)
    trail = Trail(
        result,
        move,
        *(
            jax.tree.map(lambda one, rest: jnp.concatenate([one[None], rest[:-1]]), _less(new, old), differences)
            for new, old, differences in (
                (result, trail.result, trail.results),
                (move, trail.move, trail.moves),
            )
        ),
    )
    variance = jnp.einsum("jkk->jk", scaled.posterior.covariance)
    of_subjects = (weight[:, None] / jnp.where(variance > 0, variance, 1.0))[None]
    of_items = VARIANCE * weight.sum()
    squares, products = jnp.zeros((DEPTH, DEPTH)), jnp.zeros(DEPTH)
    for name, metric in (("slope", of_items), ("intercept", of_items), ("ability", of_subjects)):
        differences = getattr(trail.moves, name)
        weighed = (differences * metric).reshape(DEPTH, -1)
        squares = squares + weighed @ differences.reshape(DEPTH, -1).T
        products = products + weighed @ getattr(move, name).ravel()
    # where there is no difference yet, the product is 0 and so is the share
    ridge = RIDGE * jnp.trace(squares) + jnp.finfo(squares.dtype).tiny
    shares = jnp.linalg.solve(squares + ridge * jnp.eye(DEPTH), products)
    shares = jnp.where(jnp.isfinite(shares).all(), shares, 0.0)  # more differences than directions are left
    beyond = jax.tree.map(lambda leaf: -jnp.tensordot(shares, leaf, 1), trail.results)
    largest = jnp.stack([jnp.abs(leaf).max() for leaf in beyond]).max()
    share = jnp.minimum(1.0, MOST_CHANGE / jnp.maximum(largest, MOST_CHANGE))
    beyond = jax.tree.map(lambda leaf: share * leaf, beyond)
    items = scaled.items._replace(
        slope=scaled.items.slope + beyond.slope, intercept=scaled.items.intercept + beyond.intercept
    )
    posterior = scaled.posterior._replace(mean=scaled.posterior.mean + beyond.ability)
    specification = dataclasses.replace(
        specification,
        prior_mean=specification.prior_mean + beyond.prior_mean,
        prior_precision=specification.prior_precision * jnp.exp(beyond.log_precision),
    )
    fresh = tuple(one._replace(last=jnp.zeros_like(one.last)) for one in damping)
    return trail, scaled._replace(items=items, posterior=posterior), specification, (fresh[0], fresh[1])


@jax.jit
def parts(scaled: LatentScale, specification: Specification) -> Parts:
    """What is extrapolated of items, posteriors and priors; it outlives the specification, which a step takes over."""
    precision = specification.prior_precision
    log_precision = jnp.asarray(jnp.log(jnp.where(precision > 0, precision, 1.0)))
    mean = jnp.copy(specification.prior_mean)
    return Parts(scaled.items.slope, scaled.items.intercept, scaled.posterior.mean, mean, log_precision)


def _less(one: Parts, other: Parts) -> Parts:
    """Differences; 0 of what runs off to infinity, or is held there."""
    return jax.tree.map(lambda a, b: jnp.where(jnp.isfinite(a - b), a - b, 0.0), one, other)
