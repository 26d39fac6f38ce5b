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
from irtjax.estimation.mml.ability_step import ability_step, settled
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
# standard errors, where stages end that only prepare the next
TOLERANCE_FEW, TOLERANCE_HELD, TOLERANCE_WITHOUT_ASYMPTOTES = 0.1, 1.0, 0.3
MANY_CHUNKS, ENOUGH_ITEMS = 4, 1000  # of the matrix, and in each, from which it is worth beginning with one
ITERATIONS_WITH_FIXED_PRIORS = 2  # before priors are estimated: starting values are alike, and say nothing
SHARE_STILL_MOVING = 1e-3  # of items, that does not count when convergence is judged


class Stage(NamedTuple):
    """A phase of the iteration.

    Attributes:
        few: on no more items than a chunk of the matrix holds, spread evenly over it: these give abilities near to the
            final ones at a small part of the cost.
        held: abilities stay where they are, until the items are near to where these put them.
        asymptotes: free asymptotes are estimated, and not held at 0 and 1.
        tolerance: where it ends.
    """

    few: bool
    held: bool
    asymptotes: bool
    tolerance: float


class State(NamedTuple):
    """Where the iteration is; arrays of items and subjects are padded, in float32, and spread over the devices.

    Attributes:
        problem: what is estimated, all of it.
        whole: its responses.
        stages: the present one and those to come.
        scaled: items, posteriors and population.
        damping: of the steps of items and of subjects.
        specification: what is free in this stage; priors.
        asymptotes: whether any item has one in this stage.
        chunks: the responses of this stage.
        weight: (J',) 1 for a subject, 0 for padding.
        steps: made with these items and asymptotes.
    """

    problem: Problem
    whole: Chunks
    stages: tuple[Stage, ...]
    scaled: Scaled
    damping: tuple[Damping, Damping]
    specification: Specification
    asymptotes: bool
    chunks: Chunks
    weight: jax.Array
    steps: int


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
        """Begins on few of very many items, and without asymptotes."""
        specification = problem.specification
        dims, num_items = specification.dims, problem.values.shape[1]
        if dims > 1:
            problem = dataclasses.replace(problem, specification=specification.without_rotation())
        whole = Chunks(problem.values, self.mesh)
        stages = self._stages(specification, whole)
        start = jax.tree.map(
            lambda leaf: place(jnp.asarray(_pad(leaf, whole.num_subjects), jnp.float32), self.mesh, BY_SUBJECT),
            starting_posterior(problem.values, dims),
        )
        ones = np.ones(len(problem.values), np.float32)
        state = State(
            problem=problem,
            whole=whole,
            stages=stages,
            scaled=Scaled(problem.items, start, jnp.zeros(dims), jnp.ones(dims)),
            damping=(undamped(as_array(problem.items)), undamped(start.mean)),
            specification=problem.specification,
            asymptotes=False,
            chunks=whole,
            weight=place(_pad(ones, whole.num_subjects), self.mesh, BY_SUBJECT),
            steps=0,
        )
        if not stages[0].few:
            return self._with_items(state, problem, whole)
        chosen = np.linspace(0, num_items - 1, whole.width).astype(int)
        few = Problem(
            problem.values[:, chosen],
            *jax.tree.map(lambda leaf: np.asarray(leaf)[chosen], (problem.items, problem.specification)),
        )
        return self._with_items(state, few, Chunks(few.values, self.mesh))

    def step(self, state: State) -> tuple[State, Info]:
        """A step of all items, then one of all abilities."""
        stage = state.stages[0]
        priors_fixed = ITERATIONS_WITH_FIXED_PRIORS if state.specification.estimated else 0
        scaled, damping, specification, change = _iterate(
            state.scaled,
            state.damping,
            state.chunks,
            state.weight,
            state.specification,
            state.steps >= priors_fixed,
            held=stage.held,
            asymptotes=state.asymptotes,
            still_moving=int(SHARE_STILL_MOVING * state.chunks.num_items),
            mesh=self.mesh,
        )
        state = state._replace(scaled=scaled, damping=damping, specification=specification, steps=state.steps + 1)
        return state, Info(np.nan, float(change), stage.tolerance if state.steps > priors_fixed else 0.0)

    def revise(self, state: State) -> State | None:
        """The next stage, if there is one."""
        last, *stages = state.stages
        if not stages:
            return None
        state = state._replace(stages=tuple(stages))
        if last.few and not stages[0].few:
            return self._with_items(state, state.problem, state.whole)
        if stages[0].asymptotes and not last.asymptotes:
            lower, upper, specification = jax.tree.map(
                lambda leaf: self._by_item(leaf, state.whole),
                (state.problem.items.lower, state.problem.items.upper, state.problem.specification),
            )
            items = state.scaled.items._replace(lower=lower, upper=upper)
            return state._replace(
                scaled=state.scaled._replace(items=items),
                damping=(undamped(as_array(items)), undamped(state.scaled.posterior.mean)),
                specification=specification,
                asymptotes=True,
                steps=0,
            )
        return state

    def finish(self, state: State) -> Estimate:
        """Covariances of the items, and the log-likelihood from an expansion of each subject's."""
        while state.stages[0].few:  # it was stopped there
            revised = self.revise(state)
            assert revised is not None
            state = revised
        asymptotes, chunks, specification = state.asymptotes, state.chunks, state.specification
        sums = chunks.by_subject(
            functools.partial(jitted_subject_sums, asymptotes=asymptotes, mesh=self.mesh),
            state.scaled.items,
            state.scaled.posterior,
        )
        scaled = settled(state.scaled, sums, state.weight, specification, asymptotes=asymptotes)
        found = at_maximum(scaled, chunks, specification, asymptotes=asymptotes, mesh=self.mesh)
        num_subjects, num_items = state.problem.values.shape
        items, subjects = slice(num_items), slice(num_subjects)
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
            np.asarray(scaled.items.slope), information, specification, population.sd, num_subjects, found.link
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

    def _stages(self, specification: Specification, chunks: Chunks) -> tuple[Stage, ...]:
        """What the estimation goes through."""
        stages = []
        many = chunks.number >= MANY_CHUNKS and chunks.width >= ENOUGH_ITEMS
        if many and specification.fold_mean:  # else few items may be without anchors
            stages += [Stage(True, False, False, TOLERANCE_FEW), Stage(False, True, False, TOLERANCE_HELD)]
        asymptotes = bool(np.asarray(specification.free)[:, specification.dims + 1 :].any())
        if asymptotes:
            stages.append(Stage(False, False, False, TOLERANCE_WITHOUT_ASYMPTOTES))
        least = TOLERANCE_ASYMPTOTES if asymptotes else TOLERANCE
        return *stages, Stage(False, False, asymptotes, least if self.tolerance is None else self.tolerance)

    def _with_items(self, state: State, problem: Problem, chunks: Chunks) -> State:
        """The state with the items of a problem as they start, free asymptotes held at 0 and 1."""
        items, specification = without_asymptotes(problem.items, problem.specification)
        placed, spread = jax.tree.map(lambda leaf: self._by_item(leaf, chunks), (items, specification))
        return state._replace(
            scaled=state.scaled._replace(items=placed),
            damping=(undamped(as_array(placed)), undamped(state.scaled.posterior.mean)),
            specification=spread,
            asymptotes=has_asymptotes(items),
            chunks=chunks,
            steps=0,
        )

    def _by_item(self, leaf: AnyArray, chunks: Chunks) -> jax.Array:
        leaf = np.asarray(leaf)
        leaf = leaf if leaf.dtype == bool else leaf.astype(np.float32)
        return place(jnp.asarray(_pad(leaf, chunks.num_items)), self.mesh, BY_ITEM)


def _iterate(
    state: Scaled,
    damping: tuple[Damping, Damping],
    chunks: Chunks,
    weight: AnyArray,
    specification: Specification,
    estimate_priors: bool,
    *,
    held: bool,
    asymptotes: bool,
    still_moving: int,
    mesh: jax.sharding.Mesh | None,
) -> tuple[Scaled, tuple[Damping, Damping], Specification, jax.Array]:
    """A step of all items given the posteriors, then one of all posteriors given the items, then the scale fixed anew.

    The two take turns. Made at once, both would correct the same misfit, and overshoot it together. The posteriors may
    be held.

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
    if held:
        moved = Scaled(stepped, posterior, mean, sd)
        new, change = _close(moved, state, sums[1], None, weight, specification, still_moving)
        return new, (of_items, of_subjects), specification, change
    sums_of_subjects = functools.partial(chunks.by_subject, functools.partial(jitted_subject_sums, **over))
    moved, of_subjects, precisions = ability_step(
        state, sums_of_subjects(stepped, posterior), of_subjects, weight, specification, asymptotes=asymptotes
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
    precisions: jax.Array | None,
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
    if precisions is None:  # abilities are held
        return new, jnp.sqrt(largest[still_moving])
    move = new.posterior.mean - before.posterior.mean
    squares = weight * jnp.einsum("jk,jkl,jl->j", move, precisions, move)
    return new, jnp.sqrt(jnp.maximum(largest[still_moving], squares.max()))


def _pad(array: np.ndarray, size: int) -> np.ndarray:
    return np.concatenate([array, np.zeros((size - array.shape[0], *array.shape[1:]), array.dtype)])
