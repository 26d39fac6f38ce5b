"""EM for long tests: a normal posterior of ability for each subject, in place of fixed nodes.

A subject who answered thousands of items has a posterior far narrower than the spacing of any nodes that all subjects
could share. It is also nearly normal there: mean and covariance are those of the best normal approximation, which solve
E ∂ log p(θ, y) = 0 and covariance⁻¹ = -∂² log p(θ, y) at the mean (Opper and Archambeau 2009, to first order), with
expectations from `irtjax.estimation.mml.expectations`. The error is of order 1/n² on a test of n items.
"""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.estimation.driver import Info, Problem
from irtjax.estimation.mml import empirical_priors, item_errors
from irtjax.estimation.mml.ability_scale import State as Scaled
from irtjax.estimation.mml.ability_scale import align_to_anchors, anchors_only, rotate, standardize
from irtjax.estimation.mml.ability_start import starting_posterior
from irtjax.estimation.mml.ability_step import ability_step
from irtjax.estimation.mml.at_maximum import at_maximum, jitted_subject_sums, marginal_log_likelihoods
from irtjax.estimation.mml.blocks import Chunks
from irtjax.estimation.mml.damping import Damping, damp, undamped
from irtjax.estimation.mml.estimate import Estimate
from irtjax.estimation.mml.expectations import item_gains, item_sums
from irtjax.estimation.mml.item_step import best_of, candidates, log_prior, priors_of, scoring_step
from irtjax.estimation.mml.posterior import Posterior
from irtjax.estimation.parameterization import (
    Specification,
    as_array,
    as_items,
    has_asymptotes,
    without_asymptotes,
)
from irtjax.estimation.population import Population
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.sharding import BY_ITEM, BY_SUBJECT, place
from irtjax.types import AnyArray

TOLERANCE, TOLERANCE_ASYMPTOTES = 0.01, 0.02
TOLERANCE_WITHOUT_ASYMPTOTES = 0.3  # standard errors; where the phase ends that only prepares one with asymptotes
ITERATIONS_WITH_FIXED_PRIORS = 2  # before priors are estimated: starting values are alike, and say nothing
SHARE_STILL_MOVING = 1e-3  # of items, that does not count when convergence is judged


class State(NamedTuple):
    """Where the iteration is; arrays of items and subjects are padded, in float32, and spread over the devices.

    Attributes:
        scaled: items, posteriors and population.
        damping: of the steps of items and of subjects.
        specification: what is free in this phase; priors.
        chunks: the responses.
        weight: (J',) 1 for a subject, 0 for padding.
        waiting: asymptotes to start from and the specification with them, in the phase that is without; else None.
        steps: made in this phase.
        num_items: without padding.
        num_subjects: without padding.
    """

    scaled: Scaled
    damping: tuple[Damping, Damping]
    specification: Specification
    chunks: Chunks
    weight: jax.Array
    waiting: tuple[AnyArray, AnyArray, Specification] | None
    steps: int
    num_items: int
    num_subjects: int


@dataclasses.dataclass(frozen=True)
class NormalPosteriors:
    """Marginal maximum likelihood with a normal posterior for each subject, in float32.

    With D > 1 the rotation is left free, as the likelihood does not know it, and is fixed at the end: an EM that holds
    the rotation by the slopes of D - 1 items turns to its place at a rate of one over the number of items.

    Attributes:
        tolerance: largest change in one iteration, in standard errors of what changes, at which it has converged; None
            for 0.01, and 0.02 with asymptotes. An item whose estimate runs to infinity has an ever larger one, so that
            it does not hold up the rest.
        mesh: of devices with axes "subjects" and "items"; None for one.
    """

    tolerance: float | None = None
    mesh: jax.sharding.Mesh | None = None

    def init(self, problem: Problem) -> State:
        """Begins, without asymptotes where any are free."""
        specification, items, waiting = problem.specification, problem.items, None
        dims, (num_subjects, num_items) = specification.dims, problem.values.shape
        chunks = Chunks(problem.values, self.mesh)
        if dims > 1:
            specification = specification.without_rotation()
        if np.asarray(specification.free)[:, dims + 1 :].any():
            lower, upper = (self._by_item(leaf, chunks) for leaf in (items.lower, items.upper))
            waiting = lower, upper, jax.tree.map(lambda leaf: self._by_item(leaf, chunks), specification)
            items, specification = without_asymptotes(items, specification)
        placed, spread = jax.tree.map(lambda leaf: self._by_item(leaf, chunks), (items, specification))
        start = jax.tree.map(
            lambda leaf: place(jnp.asarray(_pad(leaf, chunks.num_subjects), jnp.float32), self.mesh, BY_SUBJECT),
            starting_posterior(problem.values, dims),
        )
        weight = place(_pad(np.ones(num_subjects, np.float32), chunks.num_subjects), self.mesh, BY_SUBJECT)
        return State(
            scaled=Scaled(placed, start, jnp.zeros(dims), jnp.ones(dims)),
            damping=(undamped(as_array(placed)), undamped(start.mean)),
            specification=spread,
            chunks=chunks,
            weight=weight,
            waiting=waiting,
            steps=0,
            num_items=num_items,
            num_subjects=num_subjects,
        )

    def step(self, state: State) -> tuple[State, Info]:
        """A step of all items, then one of all abilities."""
        asymptotes = _asymptotes(state)
        priors_fixed = ITERATIONS_WITH_FIXED_PRIORS if state.specification.estimated else 0
        scaled, damping, specification, change = _iterate(
            state.scaled,
            state.damping,
            state.chunks,
            state.weight,
            state.specification,
            state.steps >= priors_fixed,
            asymptotes=asymptotes,
            still_moving=int(SHARE_STILL_MOVING * state.num_items),
            mesh=self.mesh,
        )
        state = state._replace(scaled=scaled, damping=damping, specification=specification, steps=state.steps + 1)
        least = TOLERANCE_ASYMPTOTES if asymptotes else TOLERANCE
        tolerance = least if self.tolerance is None else self.tolerance
        if state.waiting is not None:
            tolerance = TOLERANCE_WITHOUT_ASYMPTOTES
        return state, Info(np.nan, float(change), tolerance if state.steps > priors_fixed else 0.0)

    def revise(self, state: State) -> State | None:
        """The phase with asymptotes, if that is to come."""
        if state.waiting is None:
            return None
        lower, upper, specification = state.waiting
        scaled = state.scaled._replace(items=state.scaled.items._replace(lower=lower, upper=upper))
        damping = undamped(as_array(scaled.items)), undamped(scaled.posterior.mean)
        return state._replace(scaled=scaled, damping=damping, specification=specification, waiting=None, steps=0)

    def finish(self, state: State) -> Estimate:
        """Covariances of the items, and the log-likelihood from an expansion of each subject's."""
        asymptotes, chunks, specification = _asymptotes(state), state.chunks, state.specification
        # the scale was fixed anew after the last step, and a prior on slopes holds the two apart
        sums = chunks.by_subject(
            functools.partial(jitted_subject_sums, asymptotes=asymptotes, mesh=self.mesh),
            state.scaled.items,
            state.scaled.posterior,
        )
        settled, *_ = ability_step(state.scaled, sums, undamped(state.scaled.posterior.mean), asymptotes=asymptotes)
        scaled = state.scaled._replace(posterior=Posterior(state.scaled.posterior.mean, settled.covariance))
        found = at_maximum(scaled, chunks, specification, asymptotes=asymptotes, mesh=self.mesh)
        items, subjects = slice(state.num_items), slice(state.num_subjects)
        scaled = Scaled(
            jax.tree.map(lambda leaf: np.asarray(leaf, np.float64)[items], scaled.items),
            jax.tree.map(lambda leaf: np.asarray(leaf, np.float64)[subjects], scaled.posterior),
            np.asarray(scaled.mean, np.float64),
            np.asarray(scaled.sd, np.float64),
        )
        log_likelihoods = marginal_log_likelihoods(scaled, found.values[subjects], found.third[subjects])
        information = found.information[items]
        specification = jax.tree.map(lambda leaf: np.asarray(leaf)[items], specification)
        if specification.dims > 1:
            scaled, information, specification = rotate(scaled, information, specification)
        population = Population(np.asarray(scaled.mean), np.asarray(scaled.sd))
        covariances = item_errors.item_covariances(
            np.asarray(scaled.items.slope), information, specification, population.sd, state.num_subjects, found.link
        )
        return Estimate(
            items=scaled.items,
            population=population,
            covariances=covariances,
            ability=np.asarray(scaled.posterior.mean),
            ability_se=np.sqrt(np.einsum("jkk->jk", scaled.posterior.covariance)),
            log_likelihoods=log_likelihoods,
            log_likelihood=float(log_likelihoods.sum()),
            log_likelihood_error=np.nan,
            distance=np.nan,
            specification=specification,
            details={"posteriors": "normal"},
        )

    def _by_item(self, leaf: AnyArray, chunks: Chunks) -> jax.Array:
        leaf = np.asarray(leaf)
        leaf = leaf if leaf.dtype == bool else leaf.astype(np.float32)
        return place(jnp.asarray(_pad(leaf, chunks.num_items)), self.mesh, BY_ITEM)


def _asymptotes(state: State) -> bool:
    return state.waiting is None and has_asymptotes(state.scaled.items)


def _iterate(
    state: Scaled,
    damping: tuple[Damping, Damping],
    chunks: Chunks,
    weight: AnyArray,
    specification: Specification,
    estimate_priors: bool,
    *,
    asymptotes: bool,
    still_moving: int,
    mesh: jax.sharding.Mesh | None,
) -> tuple[Scaled, tuple[Damping, Damping], Specification, jax.Array]:
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
        Scaled(stepped, moved, mean, sd), state, sums[1], precisions, weight, specification, still_moving
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
    moved: Scaled,
    before: Scaled,
    information: jax.Array,
    precisions: jax.Array,
    weight: jax.Array,
    specification: Specification,
    still_moving: int | jax.Array,
) -> tuple[Scaled, jax.Array]:
    """The scale fixed anew, and the largest change in standard errors: changes times their information.

    Of the items, the `still_moving` with the largest changes do not count.
    """
    new = standardize(moved, before.posterior.mean, weight, specification)
    width = information.shape[1]
    # what is held may be infinite
    made = jnp.where(specification.free, as_array(new.items) - as_array(before.items), 0)[:, :width]
    precision = priors_of(as_array(new.items)[:, :width], specification).information
    squares = jnp.einsum("ik,ikl,il->i", made, information, made) + (precision * made**2).sum(axis=1)
    largest = jax.lax.top_k(squares, 1 + int(SHARE_STILL_MOVING * len(squares)))[0]
    move = new.posterior.mean - before.posterior.mean
    squares = weight * jnp.einsum("jk,jkl,jl->j", move, precisions, move)
    return new, jnp.sqrt(jnp.maximum(largest[still_moving], squares.max()))


def _pad(array: np.ndarray, size: int) -> np.ndarray:
    return np.concatenate([array, np.zeros((size - array.shape[0], *array.shape[1:]), array.dtype)])
