"""The scale of ability on long tests, which the likelihood does not know: origin, units, rotation.

It is fixed anew at each iteration, items and abilities together, so that every probability stays as it is.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.estimation.anchor_scale import (
    by_scale_of_priors,
    following,
    given_alone,
    newton_change,
    on_scale,
    with_categories,
)
from irtjax.estimation.problem import Specification
from irtjax.integration.normal_posterior import Posterior
from irtjax.item_models.protocol import Items
from irtjax.kernels.precision import in_full_precision
from irtjax.types import AnyArray, Float

NONE_BETWEEN = 1e-6  # of what widths of posteriors tell: differences between subjects that are none


class LatentScale(NamedTuple):
    """Item parameters, posteriors of the subjects, and mean and standard deviation (D,) of the population."""

    items: Any
    posterior: Posterior
    mean: AnyArray
    sd: AnyArray


@in_full_precision
def standardize(
    state: LatentScale, last: Float[AnyArray, "J D"], weight: Float[jax.Array, " J"], specification: Specification
) -> LatentScale:
    """Gives the population mean 0 and covariance 1 where the specification says so, else finds its moments.

    Abilities and items change together, so that every probability stays as it is.

    Args:
        state: after a step.
        last: mean abilities before the step; with D > 1 the new frame is the nearest to theirs.
        weight: 1 for a subject, 0 for padding.
        specification: which moments are fixed.
    """
    items, (m, covariance), mean, sd = state
    number = weight.sum()
    mean = (weight @ m) / number
    centred = m - mean[None, :]
    spread = jnp.einsum("j,jk,jl->kl", weight, centred, centred) + jnp.einsum("j,jkl->kl", weight, covariance)
    unit = jnp.linalg.cholesky(spread / number) if m.shape[1] > 1 else jnp.sqrt(spread / number)
    sd = jnp.sqrt(jnp.diagonal(spread) / number)
    if specification.mean_fixed:
        moved = items._replace(intercept=items.intercept + items.slope @ mean)
        m, items = centred, with_categories(moved, mean[0], 1.0, specification)
        mean = jnp.zeros_like(mean)
    if specification.sd_fixed:
        inverse = jnp.linalg.inv(unit) if m.shape[1] > 1 else 1 / unit
        if m.shape[1] > 1:
            # of all frames of this covariance the one nearest to the last: the likelihood does not determine the
            # rotation, which would else never come to rest
            left, _, right = jnp.linalg.svd(inverse @ (m.T @ (weight[:, None] * last)))
            turn = left @ right
            inverse, unit = turn.T @ inverse, unit @ turn
        m = m @ inverse.T
        covariance = inverse[None] @ covariance @ inverse.T[None]
        free = specification.free[:, : m.shape[1]]
        items = items._replace(slope=jnp.where(free, items.slope @ unit, items.slope))
        items = with_categories(items, 0.0, unit[0, 0], specification)
        sd = jnp.ones_like(sd)
    return LatentScale(items, Posterior(m, covariance), mean, sd)


def project_out_scale(
    move: Float[AnyArray, "J D"], mean: Float[AnyArray, "J D"], weight: jax.Array, specification: Specification
) -> Float[AnyArray, "J D"]:
    """A move of all abilities (J, D) without what `standardize` would take back: a new origin, unit or rotation.

    Estimated priors of slopes pull at the unit in every step: at rest, too, all abilities move, and are taken back.
    """
    parts = [weight[:, None]] * specification.mean_fixed + [weight[:, None] * mean] * specification.sd_fixed
    if not parts:
        return move
    basis = jnp.concatenate(parts, axis=1)
    return move - basis @ jnp.linalg.solve(basis.T @ basis, basis.T @ move)


@jax.jit
@in_full_precision
def align_to_anchors(
    items: Items,
    posterior: Posterior,
    sums: tuple[jax.Array, jax.Array],
    specification: Specification,
    priors_follow: bool | AnyArray,
) -> tuple[Any, Posterior, Specification]:
    """Moves all abilities and all free items together to where the anchors fit best: a new origin o and log unit t.

    Thousands of free items hold the abilities in place, so that without this step they would follow a few anchors very
    slowly. With m_j and s_j² the mean and variance of each ability, and population and free items moved along, the
    bound of the marginal likelihood that the iteration climbs, E log p(y | θ) less the divergence of the posteriors
    from the population, changes only by the anchors' likelihood, and by the priors of free items where these are given.
    (Estimated ones move along: they have no say in the scale.) Its derivatives are

        ∂/∂o = Σ_j g_j + ∂ log prior/∂o        ∂/∂t = Σ_j (m_j g_j - s_j² c_j) + ∂ log prior/∂t

    where g_j = E ∂ log p/∂θ_j and c_j = -E ∂² log p/∂θ_j² are those of the anchors alone. By Stein's lemma the sum in
    ∂/∂t is that of E θ_j ∂ log p/∂θ_j. They are 0 where items, abilities and population are at rest, so that this step
    leads to the same point. For then each ability has g_j = (m_j - mean)/sd² and s_j⁻² = sd⁻² + c_j, of all items. With
    mean = Σ_j m_j/J and sd² = Σ_j ((m_j - mean)² + s_j²)/J, the sums above are 0 of all items; and of free items, too,
    as these have E Σ_j ∂ log p/∂(slope, intercept) + ∂ log prior = 0. Without s_j² c_j, of order 1/I of the rest, each
    step would lead away again.

    Args:
        items: where the step begins, as are abilities and specification.
        posterior: of the subjects.
        sums: g (J, 1) and c (J, 1, 1), the `subject_sums` of the anchors alone.
        specification: what is free; priors.
        priors_follow: whether those that can be are estimated by now; else they count as given.

    Returns:
        Items, posteriors and specification after one Newton step, of at most half a logit and half a log unit.
    """
    by_anchors = by_scale(posterior, sums)
    by_priors = by_scale_of_priors(items, given_alone(specification, priors_follow))
    information = (by_anchors[1] + by_priors[1]).at[1, 1].add(_of_widths(posterior, sums[1][:, 0, 0]))
    change = newton_change(by_anchors[0] + by_priors[0], information, specification)
    origin, unit = change[0], jnp.exp(change[1])
    moved = on_scale(items, change, specification)
    followed = following(specification, items, moved)
    specification = jax.tree.map(lambda new, old: jnp.where(priors_follow, new, old), followed, specification)
    return moved, Posterior(posterior.mean * unit + origin, posterior.covariance * unit**2), specification


def _of_widths(posterior: Posterior, curvature: Float[jax.Array, " J"]) -> Float[jax.Array, ""]:
    """What is added to the information V of the log unit, so that the step falls by V²/(V + W)².

    V = Σ c_j (m_j - m)² is that of differences between subjects, W = Σ s_j² c_j that of widths. A single subject tells
    no unit: its posterior would only shrink, and the free items grow steep.
    """
    m, width = posterior.mean[:, 0], curvature @ posterior.covariance[:, 0, 0]
    distance = m - curvature @ m / jnp.maximum(curvature.sum(), jnp.finfo(m.dtype).tiny)
    between = jnp.maximum(curvature @ distance**2, NONE_BETWEEN * width)
    return jnp.where(width > 0, width * (2 + width / jnp.where(between > 0, between, 1.0)), 0.0)


@in_full_precision
def by_scale(
    posterior: Posterior, sums: tuple[AnyArray, AnyArray]
) -> tuple[Float[jax.Array, "2"], Float[jax.Array, "2 2"]]:
    """Gradient (2,) and information (2, 2) in origin and log unit of all abilities, from those in each ability.

    In the log unit they are E θ ∂ log p/∂θ = m E ∂ log p/∂θ + s² E ∂² log p/∂θ² of each subject (Stein's lemma).
    """
    (m, covariance), (gradient, curvature) = posterior, sums
    by = jnp.stack([jnp.ones_like(m[:, 0]), m[:, 0]])
    of_variance = (covariance[:, 0, 0] * curvature[:, 0, 0]).sum()
    total = by @ gradient[:, 0] - jnp.stack([jnp.zeros_like(of_variance), of_variance])
    return total, (by * curvature[None, :, 0, 0]) @ by.T


def rotate(
    state: LatentScale, information: Float[np.ndarray, "I K K"], specification: Specification
) -> tuple[LatentScale, Float[np.ndarray, "I K K"], Specification]:
    """Turns dimensions so that slopes of the first D items are positive on the diagonal, and held at 0 above it."""
    items, (m, covariance), mean, sd = state
    dims = m.shape[1]
    turn, triangle = np.linalg.qr(items.slope[:dims].T)
    turn = turn * np.where(np.diagonal(triangle) < 0, -1, 1)
    slope = items.slope @ turn
    slope[:dims] = np.tril(slope[:dims])
    wide = np.eye(information.shape[1])
    wide[:dims, :dims] = turn
    state = LatentScale(items._replace(slope=slope), Posterior(m @ turn, turn.T @ covariance @ turn), mean, sd)
    prior_mean, free = np.array(specification.prior_mean), np.array(specification.free)
    prior_mean[:, :dims] = prior_mean[:, :dims] @ turn
    free[:dims, :dims] = np.tril(free[:dims, :dims])
    specification = dataclasses.replace(specification, prior_mean=prior_mean, free=free)
    return state, wide.T @ information @ wide, specification
