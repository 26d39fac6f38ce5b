"""One iteration of the engine with normal posteriors: the items, the abilities, and the scale fixed anew."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.estimation import empirical_priors
from irtjax.estimation.anchor_scale import anchors_only
from irtjax.estimation.item_step import best_of, candidates, log_prior, priors_of, scoring_step
from irtjax.estimation.normal.ability_step import ability_step
from irtjax.estimation.normal.damping import Damping, damp
from irtjax.estimation.normal.passes import Passes
from irtjax.estimation.normal.scale import LatentScale, align_to_anchors, standardize
from irtjax.estimation.problem import Specification, as_array, as_items
from irtjax.item_models.protocol import Items, PredictorParameters
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.precision import in_full_precision
from irtjax.kernels.sharding import BY_ITEM, on_mesh
from irtjax.types import AnyArray

SHARE_STILL_MOVING = 1e-3  # of items, that does not count when convergence is judged


def iterate(
    state: LatentScale,
    damping: tuple[Damping, Damping],
    passes: Passes,
    weight: AnyArray,
    specification: Specification,
    estimate_priors: bool,
    *,
    held: bool,
) -> tuple[LatentScale, tuple[Damping, Damping], Specification, jax.Array]:
    """A step of all items given the posteriors, then one of all posteriors given the items, then the scale fixed anew.

    The two take turns. Made at once, both would correct the same misfit, and overshoot it together.

    Args:
        state: items, posteriors and population.
        damping: of the steps of items and of subjects.
        passes: over the responses.
        weight: (J',) 1 for a subject, 0 for padding.
        specification: what is free; priors.
        estimate_priors: whether those that can be are estimated anew.
        held: whether the posteriors stay as they are.

    Returns:
        The new state, damping and specification, and the largest change in standard errors.
    """
    items, posterior, mean, sd = state
    of_items, of_subjects = damping
    asymptotes, mesh = passes.asymptotes, passes.mesh
    sums = passes.item_sums(items, posterior)
    if passes.compiled:
        specification, of_items, steps = _item_steps(
            items, sums, of_items, specification, estimate_priors, asymptotes=asymptotes
        )
    else:
        items, specification = jax.tree.map(np.asarray, (items, specification))
        specification, of_items, steps = item_steps(items, sums, of_items, specification, estimate_priors)
    if asymptotes:
        stepped = _best(steps, passes.item_gains(steps, items, posterior), specification)
    else:
        stepped = as_items(steps, items)
    if held:
        moved = LatentScale(stepped, posterior, mean, sd)
        new, change = _close(moved, state, sums[1], None, weight, specification, mesh=mesh)
        return new, (of_items, of_subjects), specification, change
    moved, of_subjects, precisions = ability_step(
        state, passes.subject_sums(stepped, posterior), of_subjects, weight, specification, asymptotes=asymptotes
    )
    if not specification.mean_fixed:
        anchor_sums = passes.subject_sums(anchors_only(stepped, specification), moved)
        stepped, moved, specification = align_to_anchors(stepped, moved, anchor_sums, specification, estimate_priors)
    new, change = _close(
        LatentScale(stepped, moved, mean, sd), state, sums[1], precisions, weight, specification, mesh=mesh
    )
    return new, (of_items, of_subjects), specification, change


def item_steps(
    items: Items,
    sums: tuple[AnyArray, ...],
    damping: Damping,
    specification: Specification,
    estimate_priors: bool | AnyArray,
    *,
    asymptotes: bool = False,
) -> tuple[Specification, Damping, AnyArray]:
    """Priors as estimated, and where the items go, (I, K); with asymptotes candidates for that, (I, S, K).

    NumPy arrays give NumPy arrays, without compilation: where items have many parameters, that takes longer than a fit.
    """
    gradient, information = sums[:2]
    if specification.estimated:
        xp = gradient.__array_namespace__()
        # as on nodes that subjects share; on tests of thousands of right/wrong items it makes no difference where the
        # population sets the unit
        neutral = isinstance(items, PredictorParameters) or not specification.mean_fixed
        unit_by_slopes = neutral and specification.asinh_slopes
        estimated = empirical_priors.reestimate(items, gradient, information, specification, unit_by_slopes)
        specification = jax.tree.map(lambda new, old: xp.where(estimate_priors, new, old), estimated, specification)
    step = scoring_step(items, gradient, information, specification)
    if asymptotes:
        # scoring creeps along the flat ridges of asymptotes, and Newton's step may lead anywhere but where it is best
        newton = scoring_step(items, gradient, sums[2], specification)
        newton = jnp.where(jnp.isfinite(newton), newton, 0)
        tried = candidates(items, jnp.stack([newton, 0.3 * newton, step, 0.3 * step, 0.05 * step]))
        return specification, damping, jnp.moveaxis(tried, 0, 1)
    if not specification.has_shared:
        damping, step = damp(damping, step)
    return specification, damping, as_array(items) + step


_item_steps = jax.jit(item_steps, static_argnames="asymptotes", donate_argnames=("damping", "specification"))


@jax.jit
def _best(steps: jax.Array, gains: jax.Array, specification: Specification) -> ItemParameters:
    priors = jax.lax.map(lambda step: log_prior(as_items(step), specification), jnp.moveaxis(steps, 1, 0))
    return best_of(jnp.moveaxis(steps, 1, 0), gains.T + (priors - priors[-1:]), specification)


@functools.partial(jax.jit, static_argnames="mesh")
@in_full_precision
def _close(
    moved: LatentScale,
    before: LatentScale,
    information: jax.Array,
    precisions: jax.Array | None,
    weight: jax.Array,
    specification: Specification,
    *,
    mesh: jax.sharding.Mesh | None,
) -> tuple[LatentScale, jax.Array]:
    """The scale fixed anew, and the largest change in standard errors: changes times their information.

    Of the items, one in a thousand with the largest changes do not count. Where anchors leave the moments of the
    population free, these count, too: what is little for each ability may be much for their mean.
    """
    new = standardize(moved, before.posterior.mean, weight, specification)
    width = information.shape[1]
    # what is held may be infinite
    made = jnp.where(specification.free, as_array(new.items) - as_array(before.items), 0)[:, :width]
    precision = priors_of(as_array(new.items)[:, :width], specification).information
    squares = (information * made[:, :, None] * made[:, None, :]).sum(axis=(1, 2)) + (precision * made**2).sum(axis=1)
    largest = _largest(squares, 1 + int(SHARE_STILL_MOVING * len(squares)), mesh)[-1]
    if precisions is None:  # abilities are held
        return new, jnp.sqrt(largest)
    move = new.posterior.mean - before.posterior.mean
    squares = weight * jnp.einsum("jk,jkl,jl->j", move, precisions, move)
    largest = jnp.maximum(largest, squares.max())
    if not specification.mean_fixed:
        # a share of the information that abilities known without error would have
        share = 1 - 1 / (precisions[:, 0, 0] * before.sd[0] ** 2)
        of_mean, of_log_sd = (new.mean - before.mean)[0] / before.sd[0], jnp.log(new.sd / before.sd)[0]
        of_moments = (weight @ share) * of_mean**2, 2 * (weight @ share**2) * of_log_sd**2
        largest = jnp.maximum(largest, jnp.maximum(*of_moments))
    return new, jnp.sqrt(largest)


def _largest(values: jax.Array, count: int, mesh: jax.sharding.Mesh | None) -> jax.Array:
    """The largest of values by item, in order; each device sends no more than could be among them."""

    def of_device(values: jax.Array) -> jax.Array:
        return jax.lax.top_k(values, min(count, len(values)))[0]

    candidates = on_mesh(of_device, mesh, BY_ITEM, BY_ITEM)(values)
    return candidates if mesh is None else of_device(candidates)
