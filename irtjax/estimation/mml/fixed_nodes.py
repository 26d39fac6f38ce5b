"""The engine for short tests: nodes that all subjects share, as fine as their posteriors ask for.

Where there are many, each subject is looked for at a few of them only (`windows`).

The marginal likelihood is climbed by quasi-Newton steps (`quasi_newton`), which begin with the information of complete
data that the posteriors give for each item, and learn from the last steps what items share. No step is made that lowers
the objective.
"""

import dataclasses
import functools
from typing import NamedTuple

import jax
import numpy as np

from irtjax.estimation.driver import Info, Problem
from irtjax.estimation.mml import empirical_priors, node_score, observed_information, quasi_newton
from irtjax.estimation.mml.climb import Point, climb, evaluate
from irtjax.estimation.mml.estimate import Estimate
from irtjax.estimation.mml.item_search import better_modes
from irtjax.estimation.mml.node_posteriors import condensed, moments, node_posteriors
from irtjax.estimation.mml.nodes import Answers, to_answers
from irtjax.estimation.mml.windows import SPILLED, TOGETHER, Level, Windows, everywhere, levels, windows
from irtjax.estimation.parameterization import (
    Specification,
    has_asymptotes,
    num_parameters,
    without_asymptotes,
)
from irtjax.estimation.population import Population
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.quadrature import Quadrature, nodes_per_dimension, rectangular, spacing

LOOSE = 0.3  # standard errors; where a phase ends that only prepares the next
TOLERANCE = 1e-4
PATIENCE = 300  # steps without a smaller change; the way over a ridge of the likelihood has many
NODE_ERROR = 1e-5  # nats per subject by which halving the spacing may change the log-likelihood
SLACK = 100.0  # times these errors are good enough to prepare a phase
SUBJECT_ERROR = 5e-4  # by which it may change that of one subject: errors of opposite sign are there to be exploited
MOST_NODES = 1000  # per dimension: a slope that runs off to infinity asks for ever more
FEW_NODES = 300  # in all dimensions, at which all subjects are looked for
WORTH = 0.5  # of all nodes, from which on windows are not worth it
MOST_DIMENSIONS = 3  # in which nodes are refined: in four, half the spacing takes sixteen times as many
MOST_DERIVATIVES = 2**27  # of curves at nodes: 1 GB
LEFT_OUT = 1e-4  # nats that windows may have left out
MOST_OF_EACH = 12_000  # of all nodes, that one subject is looked for at
MOST_WEIGHTS = 2**26  # of all subjects at these: 0.5 GB
SAMPLE_WEIGHTS = 2**25  # beyond it the error is known from a sample of the subjects
JUDGES = 2000  # subjects by which it is decided whether nodes are fine enough
SETTLED = 0.01  # change of a prior, in standard deviations, that is none
PRIOR_ROUNDS = 15
SEARCH_ROUNDS = 5
DETERMINED = 0.9  # share of the slopes that responses determine, from which on a 2PL needs no prior
MOST_PARAMETERS = 3000  # free ones whose standard errors come from a dense matrix of all


class State(NamedTuple):
    """Where the climb is.

    Attributes:
        point: the present one.
        memory: of the last steps.
        specification: what is free in this phase; priors.
        nodes: per dimension.
        answers: of all subjects.
        windows: where they may be.
        waiting: starting values and specification with asymptotes, in the phase that is without; else None.
        tolerance: of this phase.
        prior_rounds: times that priors have been estimated anew since the nodes or a mode changed; -1 when settled.
        searches: for better modes so far; -1 when over.
    """

    point: Point
    memory: quasi_newton.Memory
    specification: Specification
    nodes: int
    answers: Answers
    windows: Windows
    waiting: tuple[ItemParameters, Specification] | None
    tolerance: float
    prior_rounds: int
    searches: int


@dataclasses.dataclass(frozen=True)
class FixedNodes:
    """Marginal maximum likelihood on fixed nodes in [-6, 6] standard deviations of the population, in float64.

    Attributes:
        num_nodes: per dimension, to begin with.
        adapt: whether they are halved until that changes the log-likelihood by less than 1e-5 nats per subject.
        tolerance: where it has converged: the length of the next step in standard errors, √(gradient' H gradient).
        search: whether items with asymptotes are tried in other modes (D = 1).
        standard_errors: whether they are computed.
        warm: whether it begins where it is told to, and not with a phase without asymptotes.
    """

    num_nodes: int
    adapt: bool = True
    tolerance: float = TOLERANCE
    search: bool = True
    standard_errors: bool = True
    warm: bool = False

    def init(self, problem: Problem) -> State:
        """Begins, without asymptotes where any are free: their likelihood has several maxima."""
        specification, items, waiting = problem.specification, problem.items, None
        if not self.warm and np.asarray(specification.free)[:, specification.dims + 1 :].any():
            waiting = items, specification
            items, specification = without_asymptotes(items, specification)
        dims = specification.dims
        with jax.enable_x64(True):
            answers = to_answers(problem.values)
            population = Population(np.zeros(dims), np.ones(dims))
            placed = _windows(items, population, answers, self.num_nodes)
            point = evaluate(items, population, answers, placed, specification)
        return State(
            point,
            quasi_newton.Memory(),
            specification,
            self.num_nodes,
            answers,
            placed,
            waiting,
            tolerance=LOOSE,
            prior_rounds=0 if specification.estimated else -1,
            searches=0 if self.search and dims == 1 and waiting is not None else -1,
        )

    def step(self, state: State) -> tuple[State, Info]:
        """A quasi-Newton step, shortened until the objective rises; without memory where that does not help.

        Where posteriors come near the rim of their windows, all get new ones.
        """
        with jax.enable_x64(True):
            point, memory, change = climb(
                state.point, state.memory, state.specification, functools.partial(_evaluate, state=state)
            )
            state = state._replace(point=point, memory=memory)
            if point.spilled > SPILLED * len(state.answers.right):
                state = _restart(state)
        return state, Info(state.point.objective, change, state.tolerance)

    def revise(self, state: State) -> State | None:
        """The next phase: priors, finer nodes, asymptotes, better modes, and the last steps, in this order.

        Nodes come before asymptotes: between nodes that are too far apart, steep curves cost nothing.
        """
        with jax.enable_x64(True):
            if state.prior_rounds >= 0:
                return self._with_priors(state)
            preparing = state.waiting is not None or state.searches >= 0
            if self.adapt and self._too_coarse(state, SLACK if preparing else 1.0):
                return _restart(state._replace(nodes=2 * state.nodes - 1, tolerance=LOOSE))
            if state.waiting is not None:
                return self._with_asymptotes(state)
            if state.searches >= 0:
                return self._with_better_modes(state)
            if state.tolerance > self.tolerance:
                return state._replace(tolerance=self.tolerance)
            # a posterior may have moved to where no window is
            fresh = state if state.windows.rows is None else _restart(state)
            return fresh if fresh.point.objective > state.point.objective + LEFT_OUT else None

    def finish(self, state: State) -> Estimate:
        """Abilities, covariances of the items, and the log-likelihood by a finer rule."""
        with jax.enable_x64(True):
            return self._finish(state)

    def _with_priors(self, state: State) -> State:
        """Priors estimated anew; settled where they hardly move."""
        point, specification = state.point, state.specification
        gradient, information = node_score.score(point.items, point.counts, asymptotes=has_asymptotes(point.items))
        estimated = empirical_priors.reestimate(point.items, gradient, information, specification)
        change = empirical_priors.largest_change(specification, estimated)
        rounds = -1 if change < SETTLED or state.prior_rounds >= PRIOR_ROUNDS else state.prior_rounds + 1
        if (
            rounds < 0
            and specification.log_slopes
            and state.waiting is None
            and not has_asymptotes(point.items)
            and empirical_priors.share_determined(point.items, gradient, information, estimated, 0) > DETERMINED
        ):
            estimated = _without_slope_prior(estimated)
        return _restart(state._replace(specification=estimated, prior_rounds=rounds))

    def _with_asymptotes(self, state: State) -> State:
        assert state.waiting is not None
        items, specification = state.waiting
        released = state.point.items._replace(lower=items.lower, upper=items.upper)
        mean, precision = (np.array(getattr(specification, name)) for name in ("prior_mean", "prior_precision"))
        dims = specification.dims
        mean[:, :dims], precision[:, :dims] = (
            np.asarray(getattr(state.specification, name))[:, :dims] for name in ("prior_mean", "prior_precision")
        )
        specification = dataclasses.replace(specification, prior_mean=mean, prior_precision=precision)
        if self.search and dims == 1:
            released, _ = better_modes(released, specification, state.point.counts)
        return _restart(
            state._replace(
                point=state.point._replace(items=released),
                specification=specification,
                memory=quasi_newton.Memory(),
                waiting=None,
                prior_rounds=0 if specification.estimated else -1,
            )
        )

    def _with_better_modes(self, state: State) -> State:
        items, moved = better_modes(state.point.items, state.specification, state.point.counts)
        searches = state.searches + 1 if moved.any() and state.searches < SEARCH_ROUNDS else -1
        if not moved.any():
            return state._replace(searches=searches)
        return _restart(
            state._replace(
                point=state.point._replace(items=items),
                memory=quasi_newton.Memory(),
                searches=searches,
                prior_rounds=0 if state.specification.estimated else -1,
            )
        )

    def _too_coarse(self, state: State, slack: float) -> bool:
        """Whether halving the spacing changes the log-likelihoods too much, and can be done."""
        if 2 * state.nodes - 1 > MOST_NODES or state.specification.dims > MOST_DIMENSIONS:
            return False
        dims, (num_subjects, num_items) = state.specification.dims, state.answers.right.shape
        coarse, fine = _two_levels(state, _sample(state, JUDGES))
        change = fine.log_likelihoods - coarse.log_likelihoods
        too_much = abs(change.mean()) > slack * NODE_ERROR or np.abs(change).mean() > slack * SUBJECT_ERROR
        of_each = len(fine.tile) / len(change) * fine.grid.side**dims
        derivatives = len(np.unique(fine.tile)) * fine.grid.side**dims * num_items * (3 * dims + 3)
        affordable = (
            of_each <= MOST_OF_EACH and of_each * num_subjects <= MOST_WEIGHTS and derivatives <= MOST_DERIVATIVES
        )
        return bool(too_much and affordable)

    def _finish(self, state: State) -> Estimate:
        point, specification, answers = state.point, state.specification, state.answers
        dims, (num_subjects, num_items) = specification.dims, answers.right.shape
        # windows of its own, of which the last steps have not led anyone out
        placed = _windows(point.items, point.population, answers, state.nodes)
        found = node_posteriors(point.items, point.population, answers, placed)
        log_likelihoods = np.asarray(found.log_likelihoods)
        ability, ability_se = moments(found, point.population, placed)
        coarse, fine = _two_levels(state, _sample(state, num_subjects))
        difference = fine.log_likelihoods - coarse.log_likelihoods
        covariances, kind, distance = np.full((num_items, dims + 3, dims + 3), np.nan), None, np.nan
        if self.standard_errors:
            arguments = point.items, point.population, answers, *condensed(found, placed), specification
            kind = "all parameters"
            if num_parameters(specification) <= MOST_PARAMETERS:
                covariance = observed_information.covariance(observed_information.of_all_parameters(*arguments))
                covariances = observed_information.of_items(covariance, specification)
                distance = np.sqrt(max(point.gradient @ covariance @ point.gradient, 0.0))
            if np.isnan(covariances).any():  # too many parameters, or one that ran off to infinity
                kind = "each item"
                covariances = observed_information.each_item_covariances(*arguments)
        change = float(difference.mean()) * num_subjects
        # errors of opposite sign cancel in the sum, but not in the estimates
        error = max(abs(change), num_subjects * float(np.sqrt((difference**2).mean() / len(difference))))
        return Estimate(
            items=point.items,
            population=point.population,
            covariances=covariances,
            ability=ability,
            ability_se=ability_se,
            log_likelihoods=log_likelihoods,
            log_likelihood=float(log_likelihoods.sum()) + change,
            log_likelihood_error=error,
            distance=float(distance),
            specification=specification,
            details={
                "posteriors": "fixed nodes",
                "nodes": state.nodes**dims,
                "nodes_per_subject": round(found.weights.size / num_subjects),
                "node_spacing": spacing(state.nodes) * float(np.max(point.population.sd)),
                **({} if kind is None else {"standard_errors": kind}),
            },
        )


def _evaluate(items: ItemParameters, population: Population, state: State) -> Point:
    return evaluate(items, population, state.answers, state.windows, state.specification)


def _restart(state: State) -> State:
    """The state under another objective; what is remembered of the old one still tells how its parameters trade."""
    items, population = state.point.items, state.point.population
    state = state._replace(windows=_windows(items, population, state.answers, state.nodes))
    return state._replace(point=_evaluate(items, population, state))


def _windows(items: ItemParameters, population: Population, answers: Answers, number: int) -> Windows:
    """Where the subjects may be among so many nodes per dimension."""
    dims, num_subjects = items.slope.shape[1], answers.right.shape[0]
    if number**dims > FEW_NODES:
        *_, level = levels(items, population, answers, number)
        found = windows(level)
        # a block costs what a full one does
        if len(found.tile) * TOGETHER * found.shape[1] < WORTH * num_subjects * number**dims:
            return found
    return everywhere(_quadrature(number, dims))


def _two_levels(state: State, rows: np.ndarray | slice) -> tuple[Level, Level]:
    """Where some subjects are, on these nodes and on nodes of half the spacing."""
    answers = jax.tree.map(lambda leaf: np.asarray(leaf)[rows], state.answers)
    point, coarsest = state.point, min(state.nodes, nodes_per_dimension(state.specification.dims))
    *_, coarse, fine = levels(point.items, point.population, answers, 2 * state.nodes - 1, coarsest)
    return coarse, fine


@functools.cache
def _quadrature(num_nodes: int, dims: int) -> Quadrature:
    return rectangular(num_nodes, dims=dims)


def _without_slope_prior(specification: Specification) -> Specification:
    precision = np.array(specification.prior_precision)
    precision[np.asarray(specification.free)[:, 0], 0] = 0.0
    estimated = tuple(group for group in specification.estimated if group != (0,))
    return dataclasses.replace(specification, prior_precision=precision, estimated=estimated, log_slopes=False)


def _sample(state: State, at_most: int) -> np.ndarray | slice:
    """All subjects, or an even sample of as many as are cheap."""
    num_subjects = len(state.answers.right)
    finer = 2**state.specification.dims * state.windows.num_weights(num_subjects) / num_subjects
    most = min(at_most, max(100, int(SAMPLE_WEIGHTS / finer)))
    return slice(None) if num_subjects <= most else np.linspace(0, num_subjects - 1, most).astype(int)
