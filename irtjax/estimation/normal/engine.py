"""EM for long tests: a normal posterior of ability for each subject, in place of fixed nodes.

A subject who answered thousands of items has a posterior far narrower than the spacing of any nodes that all subjects
could share. It is also nearly normal there: mean and covariance are those of the best normal approximation, which solve
E ∂ log p(θ, y) = 0 and covariance⁻¹ = -∂² log p(θ, y) at the mean (Opper and Archambeau 2009, to first order), with
expectations from `irtjax.integration.normal_expectations`. The error is of order 1/n² on a test of n items.
"""

import dataclasses
import enum
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import PartitionSpec as P

from irtjax.estimation import item_errors
from irtjax.estimation.driver import Estimate, Info, Problem
from irtjax.estimation.normal.ability_step import settled
from irtjax.estimation.normal.at_maximum import at_maximum, marginal_log_likelihoods
from irtjax.estimation.normal.check import sampled_error
from irtjax.estimation.normal.damping import Damping, undamped
from irtjax.estimation.normal.extrapolation import BEGINS, Parts, Trail, extrapolated, parts
from irtjax.estimation.normal.iteration import iterate
from irtjax.estimation.normal.passes import ScoredPasses
from irtjax.estimation.normal.scale import LatentScale, rotate
from irtjax.estimation.normal.start import starting_posterior
from irtjax.estimation.problem import Specification, as_array, without_asymptotes
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.sharding import BY_ITEM, BY_SUBJECT, EVERYWHERE, place
from irtjax.populations.normal import Population
from irtjax.processes import fetch
from irtjax.responses.blocks import Chunks
from irtjax.types import AnyArray

TOLERANCE, TOLERANCE_ASYMPTOTES = 0.01, 0.02
TOLERANCE_IN_DIMENSIONS = 0.001  # thousands of slopes add up: at 0.01 the log-likelihood may be a nat off
MANY_CHUNKS, ENOUGH_ITEMS = 4, 1000  # of the matrix, and in each, from which it is worth beginning with one
ITERATIONS_WITH_FIXED_PRIORS = 2  # before priors are estimated: starting values are alike, and say nothing


class Phase(enum.Enum):
    """What the iteration goes through, in this order; the value is the change, in standard errors, where it ends.

    A chunk of very many items gives abilities near to the final ones at a small part of the cost. Then all items are
    brought near to where these abilities, held, put them.
    """

    FEW_ITEMS = 0.1
    ABILITIES_HELD = 1.0
    WITHOUT_ASYMPTOTES = 0.3  # those that are free are held at 0 and 1
    LAST = None  # the tolerance of the engine


class State(NamedTuple):
    """Where the iteration is; arrays of items and subjects are padded, in float32, and spread over the devices.

    Attributes:
        problem: what is estimated, all of it.
        whole: its responses.
        phases: the present one and those to come.
        scaled: items, posteriors and population.
        damping: of the steps of items and of subjects.
        specification: what is free in this phase; priors.
        asymptotes: whether any item has one in this phase.
        chunks: the responses of this phase.
        weight: (J',) 1 for a subject, 0 for padding.
        steps: made with these items and asymptotes.
        trail: of the last steps, with D > 1.
        change: of the last step.
    """

    problem: Problem
    whole: Chunks
    phases: tuple[Phase, ...]
    scaled: LatentScale
    damping: tuple[Damping, Damping]
    specification: Specification
    asymptotes: bool
    chunks: Chunks
    weight: jax.Array
    steps: int
    trail: Trail | None = None
    change: float = np.inf


@dataclasses.dataclass(frozen=True)
class NormalPosteriors:
    """Marginal maximum likelihood with a normal posterior for each subject, in float32.

    With D > 1 the rotation is left free, as the likelihood does not know it, and is fixed at the end: an EM that holds
    the rotation by the slopes of D - 1 items turns to its place at a rate of one over the number of items.

    Attributes:
        tolerance: largest change in one iteration, in standard errors of what changes, at which it has converged; None
            for 0.01, 0.001 with D > 1, and 0.02 with asymptotes. An item whose estimate runs to infinity has an ever
            larger one, so that it does not hold up the rest.
        mesh: of devices with axes "subjects" and "items"; None for one.
    """

    tolerance: float | None = None
    mesh: jax.sharding.Mesh | None = None

    def init(self, problem: Problem) -> State:
        """Begins on few of very many items, and without asymptotes."""
        specification = problem.specification
        dims = specification.dims
        if dims > 1:
            problem = dataclasses.replace(problem, specification=specification.without_rotation())
        whole = Chunks(problem.values, self.mesh)
        start = jax.tree.map(
            lambda leaf: self._place(_pad(leaf, whole.num_subjects), BY_SUBJECT),
            starting_posterior(problem.values, dims, whole.mine),
        )
        ones = np.ones(problem.values.shape[0], np.float32)
        state = State(
            problem=problem,
            whole=whole,
            phases=_phases(specification, whole),
            scaled=LatentScale(problem.items, start, *self._place((np.zeros(dims), np.ones(dims)), EVERYWHERE)),
            damping=self._undamped(problem.items, whole),
            specification=problem.specification,
            asymptotes=False,
            chunks=whole,
            weight=self._place(_pad(ones, whole.num_subjects), BY_SUBJECT),
            steps=0,
        )
        if state.phases[0] is not Phase.FEW_ITEMS:
            return self._with_items(state, problem, whole)
        chosen, values = whole.thinned()
        few = Problem(
            values,
            *jax.tree.map(lambda leaf: np.asarray(leaf)[chosen], (problem.items, problem.specification)),
        )
        return self._with_items(state, few, Chunks(few.values, self.mesh))

    def step(self, state: State) -> tuple[State, Info]:
        """A step of all items, then one of all abilities; near the end, with D > 1, extrapolated."""
        phase = state.phases[0]
        priors_fixed = ITERATIONS_WITH_FIXED_PRIORS if state.specification.estimated else 0
        may = phase is Phase.LAST and state.specification.dims > 1 and not state.asymptotes
        before = parts(state.scaled, state.specification) if may and state.steps >= priors_fixed else None
        scaled, damping, specification, change = iterate(
            state.scaled,
            state.damping,
            self._passes(state),
            state.weight,
            state.specification,
            state.steps >= priors_fixed,
            held=phase is Phase.ABILITIES_HELD,
        )
        state = state._replace(scaled=scaled, damping=damping, specification=specification, steps=state.steps + 1)
        tolerance = self._tolerance(state) if phase.value is None else phase.value
        info = Info(np.nan, float(change), tolerance if state.steps > priors_fixed else 0.0)
        return (state if before is None else _extrapolated(before, state, info)), info

    def revise(self, state: State) -> State | None:
        """The next phase, if there is one."""
        phase, *later = state.phases
        if not later:
            return None
        state = state._replace(phases=tuple(later))
        if phase is Phase.FEW_ITEMS:
            return self._with_items(state, state.problem, state.whole)
        if phase is Phase.WITHOUT_ASYMPTOTES:
            lower, upper, specification = jax.tree.map(
                lambda leaf: self._by_item(leaf, state.whole),
                (state.problem.items.lower, state.problem.items.upper, state.problem.specification),
            )
            items = state.scaled.items._replace(lower=lower, upper=upper)
            return state._replace(
                scaled=state.scaled._replace(items=items),
                damping=self._undamped(state.problem.items, state.whole),
                specification=specification,
                asymptotes=True,
                steps=0,
            )
        return state

    def finish(self, state: State) -> Estimate:
        """Covariances of the items, and the log-likelihood from an expansion of each subject's."""
        if state.phases[0] is Phase.FEW_ITEMS:  # it was stopped there
            revised = self.revise(state)
            assert revised is not None
            state = revised
        asymptotes, chunks, specification = state.asymptotes, state.chunks, state.specification
        sums = self._passes(state).subject_sums(state.scaled.items, state.scaled.posterior)
        scaled = settled(state.scaled, sums, state.weight, specification, asymptotes=asymptotes)
        found = at_maximum(scaled, chunks, specification, asymptotes=asymptotes, mesh=self.mesh)
        num_subjects, num_items = state.problem.values.shape
        items, subjects = slice(num_items), slice(num_subjects)
        scaled = LatentScale(
            jax.tree.map(lambda leaf: fetch(leaf).astype(np.float64)[items], scaled.items),
            jax.tree.map(lambda leaf: fetch(leaf).astype(np.float64)[subjects], scaled.posterior),
            fetch(scaled.mean).astype(np.float64),
            fetch(scaled.sd).astype(np.float64),
        )
        log_likelihoods = marginal_log_likelihoods(scaled, found.values[subjects], found.third[subjects])
        information = found.information[items]
        specification = jax.tree.map(lambda leaf: fetch(leaf)[items], specification)
        if specification.dims > 1:
            scaled, information, specification = rotate(scaled, information, specification)
        population = Population(np.asarray(scaled.mean), np.asarray(scaled.sd))
        covariances = item_errors.item_covariances(
            np.asarray(scaled.items.slope),
            information,
            specification,
            population.sd,
            num_subjects,
            found.anchor_information,
        )
        estimate = Estimate(
            items=scaled.items,
            population=population,
            covariances=covariances,
            ability=np.asarray(scaled.posterior.mean),
            ability_se=np.sqrt(np.einsum("jkk->jk", scaled.posterior.covariance)),
            log_likelihoods=log_likelihoods,
            log_likelihood=float(log_likelihoods.sum()),
            log_likelihood_error=np.nan,
            distance=np.nan,
            integration="normal",
            unbounded=np.zeros(len(covariances), bool),
            identified=True,
            specification=specification,
            details={"posteriors": "normal"},
        )
        if specification.dims > 1:
            return estimate
        error = sampled_error(estimate, state.problem.values, state.whole.mine)
        return estimate._replace(log_likelihood=estimate.log_likelihood + error, log_likelihood_error=abs(error))

    def _passes(self, state: State) -> ScoredPasses:
        return ScoredPasses(state.chunks, state.asymptotes, self.mesh)

    def _tolerance(self, state: State) -> float:
        """Where the last phase ends."""
        if self.tolerance is not None:
            return self.tolerance
        if _free_asymptotes(state.problem.specification):
            return TOLERANCE_ASYMPTOTES
        return TOLERANCE if state.problem.specification.dims == 1 else TOLERANCE_IN_DIMENSIONS

    def _with_items(self, state: State, problem: Problem, chunks: Chunks) -> State:
        """The state with the items of a problem as they start, free asymptotes held at 0 and 1."""
        items, specification = without_asymptotes(problem.items, problem.specification)
        placed, spread = jax.tree.map(lambda leaf: self._by_item(leaf, chunks), (items, specification))
        return state._replace(
            scaled=state.scaled._replace(items=placed),
            damping=self._undamped(items, chunks),
            specification=spread,
            asymptotes=items.has_others(),
            chunks=chunks,
            steps=0,
            trail=None,
            change=np.inf,
        )

    def _undamped(self, items: ItemParameters, chunks: Chunks) -> tuple[Damping, Damping]:
        """The damping of steps of items and of subjects before any is made, on the devices."""
        of_items = undamped(np.zeros((chunks.num_items, as_array(items).shape[1])))
        of_subjects = undamped(np.zeros((chunks.num_subjects, items.slope.shape[1])))
        return self._place(of_items, BY_ITEM), self._place(of_subjects, BY_SUBJECT)

    def _by_item(self, leaf: AnyArray, chunks: Chunks) -> jax.Array:
        leaf = np.asarray(leaf)
        return self._place(_pad(leaf, chunks.num_items), BY_ITEM)

    def _place(self, tree: Any, axis: P) -> Any:
        """Numbers in float32, on the devices."""

        def one(leaf: np.ndarray) -> jax.Array:
            leaf = leaf if leaf.dtype == bool else leaf.astype(np.float32)
            # `jnp.asarray` would compile a program for each shape
            return jax.device_put(leaf) if self.mesh is None else place(leaf, self.mesh, axis)

        return jax.tree.map(one, tree)


def _extrapolated(before: Parts, state: State, info: Info) -> State:
    """The state to go on from after a step; what it led to where that is at rest, far from it, or further than before.

    Where a change is greater than the last, the iteration is not what the trail says it is, and a new one begins.
    """
    if not info.tolerance <= info.change <= BEGINS:
        return state._replace(trail=None, change=info.change)
    trail, scaled, specification, damping = extrapolated(
        state.trail if info.change <= state.change else None,
        before,
        (state.scaled, state.specification),
        state.damping,
        state.weight,
    )
    return state._replace(scaled=scaled, specification=specification, damping=damping, trail=trail, change=info.change)


def _phases(specification: Specification, chunks: Chunks) -> tuple[Phase, ...]:
    """Those that such items go through."""
    many = chunks.number >= MANY_CHUNKS and chunks.width >= ENOUGH_ITEMS
    few = many and specification.mean_fixed  # else few items may be without anchors
    return (
        *((Phase.FEW_ITEMS, Phase.ABILITIES_HELD) if few else ()),
        *((Phase.WITHOUT_ASYMPTOTES,) if _free_asymptotes(specification) else ()),
        Phase.LAST,
    )


def _free_asymptotes(specification: Specification) -> bool:
    return bool(np.asarray(specification.free)[:, specification.dims + 1 :].any())


def _pad(array: np.ndarray, size: int) -> np.ndarray:
    return np.concatenate([array, np.zeros((size - array.shape[0], *array.shape[1:]), array.dtype)])
