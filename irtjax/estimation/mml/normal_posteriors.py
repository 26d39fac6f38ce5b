"""EM for long tests: a normal posterior of ability for each subject, in place of fixed nodes.

A subject who answered thousands of items has a posterior far narrower than the spacing of any nodes that all subjects
could share. It is also nearly normal there: mean and covariance are those of the best normal approximation, which solve
E ∂ log p(θ, y) = 0 and covariance⁻¹ = -∂² log p(θ, y) at the mean (Opper and Archambeau 2009, to first order), with
expectations from `irtjax.estimation.mml.expectations`. The error is of order 1/n² on a test of n items.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.estimation.mml import empirical_priors
from irtjax.estimation.mml.ability_scale import State, align_to_anchors, anchors_only, rotate, standardize
from irtjax.estimation.mml.ability_start import starting_posterior
from irtjax.estimation.mml.ability_step import ability_step
from irtjax.estimation.mml.at_maximum import at_maximum, jitted_subject_sums, marginal_log_likelihood
from irtjax.estimation.mml.blocks import Chunks
from irtjax.estimation.mml.damping import Damping, damp, undamped
from irtjax.estimation.mml.expectations import item_gains, item_sums
from irtjax.estimation.mml.item_step import as_array, as_items, best_of, candidates, log_prior, scoring_step
from irtjax.estimation.mml.posterior import Posterior
from irtjax.estimation.parameterization import Specification, without_asymptotes
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.sharding import BY_ITEM, BY_SUBJECT, place
from irtjax.types import AnyArray, Int

TOLERANCE_WITHOUT_ASYMPTOTES = 0.3  # standard errors; where the phase ends that only prepares one with asymptotes
PATIENCE = 40  # iterations without a smaller change, after which a fit that has not converged never will
ITERATIONS_WITH_FIXED_PRIORS = 2  # before priors are estimated: starting values are alike, and say nothing
SHARE_STILL_MOVING = 1e-3  # of items, that does not count when convergence is judged


class Solution(NamedTuple):
    """Where EM ended.

    Attributes:
        state: without padding, in NumPy.
        information: (I, K, K) of each item given the abilities, priors included; K is D + 1 without asymptotes.
        link: (2, 2) information of the anchors about origin and log unit of the scale; None without anchors.
        specification: priors as estimated.
        log_likelihood: marginal, in nats.
        iterations: made.
        converged: whether the largest change fell below the tolerance.
    """

    state: State
    information: np.ndarray
    link: np.ndarray | None
    specification: Specification
    log_likelihood: float
    iterations: int
    converged: bool


def solve(
    values: Int[np.ndarray, "J I"],
    items: ItemParameters,
    specification: Specification,
    *,
    tolerance: float,
    max_iterations: int,
    mesh: jax.sharding.Mesh | None = None,
    on_iteration: Callable[[int, float], None] | None = None,
) -> Solution:
    """Maximises the marginal likelihood, with priors, in float32.

    With D > 1 the rotation is left free, as the likelihood does not know it, and is fixed at the end: an EM that holds
    the rotation by the slopes of D - 1 items turns to its place at a rate of one over the number of items.

    Args:
        values: (J, I) int8.
        items: where it starts.
        specification: what is free.
        tolerance: largest change in one iteration, in standard errors of what changes, at which it has converged. An
            item whose estimate runs to infinity has an ever larger one, so that it does not hold up the rest.
        max_iterations: after which it ends in any case; it also does after 40 in a row without a smaller change.
        mesh: of devices with axes "subjects" and "items"; None for one.
        on_iteration: called with the number of iterations and that change.
    """
    num_subjects, num_items = values.shape
    dims = specification.dims
    chunks = Chunks(values, mesh)
    pad_items = functools.partial(_pad, size=chunks.num_items)
    weight = place(_pad(np.ones(num_subjects, np.float32), chunks.num_subjects), mesh, BY_SUBJECT)
    if dims > 1:
        specification = specification.without_rotation()
    start = jax.tree.map(
        lambda leaf: jnp.asarray(_pad(leaf, chunks.num_subjects), jnp.float32), starting_posterior(values, dims)
    )

    def on_devices(items: ItemParameters, specification: Specification) -> tuple[ItemParameters, Specification]:
        def put(leaf: AnyArray) -> jax.Array:
            leaf = np.asarray(leaf)
            return place(jnp.asarray(pad_items(leaf if leaf.dtype == bool else leaf.astype(np.float32))), mesh, BY_ITEM)

        return jax.tree.map(put, (items, specification))

    iterations, converged = 0, False

    def climb(
        state: State, specification: Specification, asymptotes: bool, tolerance: float
    ) -> tuple[State, Specification]:
        nonlocal iterations, converged
        converged, least, since = False, np.inf, 0
        priors_fixed_until = iterations + (ITERATIONS_WITH_FIXED_PRIORS if specification.estimated else 0)
        damping = undamped(as_array(state.items)), undamped(state.posterior.mean)
        while iterations < max_iterations and not converged and since < PATIENCE:
            state, damping, specification, change = _iterate(
                state,
                damping,
                chunks,
                weight,
                specification,
                iterations >= priors_fixed_until,
                asymptotes=asymptotes,
                still_moving=int(SHARE_STILL_MOVING * num_items),
                mesh=mesh,
            )
            iterations += 1
            converged = float(change) < tolerance and iterations > priors_fixed_until
            least, since = (float(change), 0) if change < least else (least, since + 1)
            if on_iteration is not None:
                on_iteration(iterations, float(change))
        return state, specification

    placed, spread = on_devices(items, specification)
    state = State(placed, place(start, mesh, BY_SUBJECT), jnp.zeros(dims), jnp.ones(dims))
    ends = {"lower": placed.lower, "upper": placed.upper}
    del placed  # arrays of half a million items would stay for the whole fit
    if np.asarray(specification.free)[:, dims + 1 :].any():
        bare, bare_spread = on_devices(*without_asymptotes(items, specification))
        state, bare_spread = climb(state._replace(items=bare), bare_spread, False, TOLERANCE_WITHOUT_ASYMPTOTES)
        state = state._replace(items=state.items._replace(**ends))
    asymptotes = bool(np.isfinite(items.lower).any() or np.isfinite(items.upper).any())
    state, spread = climb(state, spread, asymptotes, tolerance)

    # the scale was fixed anew after the last step, and a prior on slopes holds the two apart: widths follow the abilities
    sums = chunks.by_subject(
        functools.partial(jitted_subject_sums, asymptotes=asymptotes, mesh=mesh), state.items, state.posterior
    )
    settled, *_ = ability_step(state, sums, undamped(state.posterior.mean), asymptotes=asymptotes)
    state = state._replace(posterior=Posterior(state.posterior.mean, settled.covariance))
    found = at_maximum(state, chunks, spread, asymptotes=asymptotes, mesh=mesh)
    without_padding = State(
        jax.tree.map(lambda leaf: np.asarray(leaf, np.float64)[:num_items], state.items),
        jax.tree.map(lambda leaf: np.asarray(leaf, np.float64)[:num_subjects], state.posterior),
        np.asarray(state.mean, np.float64),
        np.asarray(state.sd, np.float64),
    )
    log_likelihood = marginal_log_likelihood(without_padding, found.values[:num_subjects], found.third[:num_subjects])
    information = found.information[:num_items]
    spread = jax.tree.map(lambda leaf: np.asarray(leaf)[:num_items], spread)
    if dims > 1:
        without_padding, information, spread = rotate(without_padding, information, spread)
    return Solution(
        state=without_padding,
        information=information,
        link=found.link,
        specification=spread,
        log_likelihood=log_likelihood,
        iterations=iterations,
        converged=converged,
    )


def _iterate(
    state: State,
    damping: tuple[Damping, Damping],
    chunks: Chunks,
    weight: AnyArray,
    specification: Specification,
    estimate_priors: bool,
    *,
    asymptotes: bool,
    still_moving: int,
    mesh: jax.sharding.Mesh | None,
) -> tuple[State, tuple[Damping, Damping], Specification, jax.Array]:
    """A step of all items given the posteriors, then one of all posteriors given the items, then the scale fixed anew.

    The two take turns. Made at once, both would correct the same misfit, and overshoot it together.

    Returns:
        The new state, damping and specification, and the largest change in standard errors.
    """
    items, posterior, mean, sd = state
    of_items, of_subjects = damping
    over = {"asymptotes": asymptotes, "mesh": mesh}
    sums = chunks.by_item(functools.partial(_item_sums, **over), items, posterior)
    specification, of_items, steps = _item_steps(
        items, sums, of_items, specification, estimate_priors, asymptotes=asymptotes
    )
    if asymptotes:
        gains = chunks.by_item(functools.partial(_item_gains, mesh=mesh), (steps, items), posterior)
        stepped = _best(steps, gains, specification)
    else:
        stepped = as_items(steps)
    sums_of_subjects = functools.partial(chunks.by_subject, functools.partial(jitted_subject_sums, **over))
    moved, of_subjects, precisions = ability_step(
        state, sums_of_subjects(stepped, posterior), of_subjects, asymptotes=asymptotes
    )
    if not specification.fold_mean:
        anchor_sums = sums_of_subjects(anchors_only(stepped, specification), moved)
        stepped, moved = align_to_anchors(stepped, moved, anchor_sums, specification)
    new, change = _close(
        State(stepped, moved, mean, sd), state, sums[1], precisions, weight, specification, still_moving
    )
    return new, (of_items, of_subjects), specification, change


@functools.partial(jax.jit, static_argnames=("asymptotes", "mesh"))
def _item_sums(
    items: ItemParameters,
    posterior: Posterior,
    blocks: jax.Array,
    *,
    asymptotes: bool,
    mesh: jax.sharding.Mesh | None,
) -> tuple[jax.Array, ...]:
    sums = item_sums(items, posterior, blocks, asymptotes=asymptotes, mesh=mesh)
    return sums if asymptotes else sums[:2]  # expected and observed information are the same then


@functools.partial(jax.jit, static_argnames="mesh")
def _item_gains(
    steps_and_items: tuple[AnyArray, ItemParameters],
    posterior: Posterior,
    blocks: jax.Array,
    *,
    mesh: jax.sharding.Mesh | None,
) -> jax.Array:
    steps, items = steps_and_items
    tried = jax.vmap(as_items, in_axes=1, out_axes=1)(steps)
    return item_gains(tried, items, posterior, blocks, mesh=mesh)


@functools.partial(jax.jit, static_argnames="asymptotes", donate_argnames=("damping", "specification"))
def _item_steps(
    items: ItemParameters,
    sums: tuple[jax.Array, ...],
    damping: Damping,
    specification: Specification,
    estimate_priors: bool | jax.Array,
    *,
    asymptotes: bool,
) -> tuple[Specification, Damping, AnyArray]:
    """Priors as estimated, and where the items go, (I, K); with asymptotes candidates for that, (I, S, K)."""
    gradient, information = sums[:2]
    if specification.estimated:
        estimated = empirical_priors.reestimate(items, gradient, information, specification)
        specification = jax.tree.map(lambda new, old: jnp.where(estimate_priors, new, old), estimated, specification)
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


@jax.jit
def _best(steps: jax.Array, gains: jax.Array, specification: Specification) -> ItemParameters:
    priors = jax.lax.map(lambda step: log_prior(as_items(step), specification), jnp.moveaxis(steps, 1, 0))
    return best_of(jnp.moveaxis(steps, 1, 0), gains.T + (priors - priors[-1:]), specification)


@jax.jit
def _close(
    moved: State,
    before: State,
    information: jax.Array,
    precisions: jax.Array,
    weight: jax.Array,
    specification: Specification,
    still_moving: int | jax.Array,
) -> tuple[State, jax.Array]:
    """The scale fixed anew, and the largest change in standard errors: changes times their information.

    Of the items, the `still_moving` with the largest changes do not count.
    """
    new = standardize(moved, before.posterior.mean, weight, specification)
    width = information.shape[1]
    # what is held may be infinite
    made = jnp.where(specification.free, as_array(new.items) - as_array(before.items), 0)[:, :width]
    precision = jnp.asarray(specification.prior_precision, made.dtype)[:, :width]
    squares = jnp.einsum("ik,ikl,il->i", made, information, made) + (precision * made**2).sum(axis=1)
    largest = jax.lax.top_k(squares, 1 + int(SHARE_STILL_MOVING * len(squares)))[0]
    move = new.posterior.mean - before.posterior.mean
    squares = weight * jnp.einsum("jk,jkl,jl->j", move, precisions, move)
    return new, jnp.sqrt(jnp.maximum(largest[still_moving], squares.max()))


def _pad(array: np.ndarray, size: int) -> np.ndarray:
    return np.concatenate([array, np.zeros((size - array.shape[0], *array.shape[1:]), array.dtype)])
