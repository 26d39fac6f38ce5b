"""The engine for short tests: one set of nodes for all subjects, as fine as their posteriors ask for.

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
from irtjax.estimation.mml.node_posteriors import (
    Answers,
    log_likelihoods,
    node_posteriors,
    place_nodes,
    to_answers,
)
from irtjax.estimation.parameterization import (
    Specification,
    has_asymptotes,
    num_parameters,
    without_asymptotes,
)
from irtjax.estimation.population import Population
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.quadrature import Quadrature, rectangular, spacing

LOOSE = 0.3  # standard errors; where a phase ends that only prepares the next
TOLERANCE = 1e-4
PATIENCE = 300  # steps without a smaller change; the way over a ridge of the likelihood has many
NODE_ERROR = 1e-5  # nats per subject by which halving the spacing may change the log-likelihood
SLACK = 100.0  # times these errors are good enough to prepare a phase
SUBJECT_ERROR = 5e-4  # by which it may change that of one subject: errors of opposite sign are there to be exploited
MOST_NODES = 1000  # per dimension: a slope that runs off to infinity asks for ever more
MOST_WEIGHTS = 2**27  # subjects × nodes: 1 GB
SAMPLE_WEIGHTS = 2**25  # beyond it the nodes are judged by a sample of the subjects
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
            point = evaluate(items, population, answers, _quadrature(self.num_nodes, dims), specification)
        return State(
            point,
            quasi_newton.Memory(),
            specification,
            self.num_nodes,
            answers,
            waiting,
            tolerance=LOOSE,
            prior_rounds=0 if specification.estimated else -1,
            searches=0 if self.search and dims == 1 and waiting is not None else -1,
        )

    def step(self, state: State) -> tuple[State, Info]:
        """A quasi-Newton step, shortened until the objective rises; without memory where that does not help."""
        with jax.enable_x64(True):
            point, memory, change = climb(
                state.point, state.memory, state.specification, functools.partial(self._evaluate, state=state)
            )
        return state._replace(point=point, memory=memory), Info(point.objective, change, state.tolerance)

    def revise(self, state: State) -> State | None:
        """The next phase: priors, finer nodes, asymptotes, better modes, and the last steps, in this order.

        Nodes come before asymptotes: between nodes that are too far apart, steep curves cost nothing.
        """
        with jax.enable_x64(True):
            if state.prior_rounds >= 0:
                return self._with_priors(state)
            preparing = state.waiting is not None or state.searches >= 0
            if self.adapt and self._can_refine(state) and self._too_coarse(state, SLACK if preparing else 1.0):
                return self._restart(state._replace(nodes=2 * state.nodes - 1, tolerance=LOOSE))
            if state.waiting is not None:
                return self._with_asymptotes(state)
            if state.searches >= 0:
                return self._with_better_modes(state)
            if state.tolerance > self.tolerance:
                return state._replace(tolerance=self.tolerance)
            return None

    def finish(self, state: State) -> Estimate:
        """Abilities, covariances of the items, and the log-likelihood by a finer rule."""
        with jax.enable_x64(True):
            return self._finish(state)

    def _evaluate(self, items: ItemParameters, population: Population, state: State) -> Point:
        quadrature = _quadrature(state.nodes, state.specification.dims)
        return evaluate(items, population, state.answers, quadrature, state.specification)

    def _restart(self, state: State) -> State:
        """The state under another objective; what is remembered of the old one still tells how its parameters trade."""
        point = self._evaluate(state.point.items, state.point.population, state)
        return state._replace(point=point)

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
        return self._restart(state._replace(specification=estimated, prior_rounds=rounds))

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
        return self._restart(
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
        return self._restart(
            state._replace(
                point=state.point._replace(items=items),
                memory=quasi_newton.Memory(),
                searches=searches,
                prior_rounds=0 if state.specification.estimated else -1,
            )
        )

    def _can_refine(self, state: State) -> bool:
        finer, dims = 2 * state.nodes - 1, state.specification.dims
        return dims < 3 and finer <= MOST_NODES and finer**dims * len(state.answers.right) <= MOST_WEIGHTS

    def _too_coarse(self, state: State, slack: float) -> bool:
        """Whether halving the spacing changes the log-likelihoods of the subjects, or of a sample of them, too much."""
        rows = _sample(len(state.answers.right), (2 * state.nodes - 1) ** state.specification.dims)
        values = [self._log_likelihoods(state, nodes, rows) for nodes in (state.nodes, 2 * state.nodes - 1)]
        change = values[1] - values[0]
        return bool(abs(change.mean()) > slack * NODE_ERROR or np.abs(change).mean() > slack * SUBJECT_ERROR)

    def _log_likelihoods(self, state: State, num_nodes: int, rows: np.ndarray | slice) -> np.ndarray:
        answers = jax.tree.map(lambda leaf: leaf[rows], state.answers)
        quadrature = _quadrature(num_nodes, state.specification.dims)
        return np.asarray(log_likelihoods(state.point.items, state.point.population, answers, quadrature))

    def _finish(self, state: State) -> Estimate:
        point, specification, answers = state.point, state.specification, state.answers
        dims, (num_subjects, num_items) = specification.dims, answers.right.shape
        quadrature = _quadrature(state.nodes, dims)
        found = node_posteriors(point.items, point.population, answers, quadrature)
        finer, everyone = 2 * state.nodes - 1, slice(None)
        rows = _sample(num_subjects, finer**dims)
        coarse = self._log_likelihoods(state, state.nodes, everyone)
        difference = self._log_likelihoods(state, finer, rows) - coarse[rows]
        covariances, kind, distance = np.full((num_items, dims + 3, dims + 3), np.nan), None, np.nan
        if self.standard_errors:
            arguments = point.items, point.population, answers, found, quadrature, specification
            kind = "all parameters"
            if num_parameters(specification) <= MOST_PARAMETERS:
                covariance = observed_information.covariance(observed_information.of_all_parameters(*arguments))
                covariances = observed_information.of_items(covariance, specification)
                distance = np.sqrt(max(point.gradient @ covariance @ point.gradient, 0.0))
            if np.isnan(covariances).any():  # too many parameters, or one that ran off to infinity
                kind = "each item"
                covariances = observed_information.each_item_covariances(*arguments)
        weights, nodes = np.asarray(found.weights), place_nodes(point.population, quadrature)
        ability = weights @ nodes
        change = float(difference.mean()) * num_subjects
        # errors of opposite sign cancel in the sum, but not in the estimates
        error = max(abs(change), float(np.sqrt(num_subjects * (difference**2).mean())))
        return Estimate(
            items=point.items,
            population=point.population,
            covariances=covariances,
            ability=ability,
            ability_se=np.sqrt(np.maximum(weights @ nodes**2 - ability**2, 0)),
            log_likelihoods=coarse,
            log_likelihood=float(coarse.sum()) + change,
            log_likelihood_error=error,
            distance=float(distance),
            specification=specification,
            details={
                "posteriors": "fixed nodes",
                "nodes": len(nodes),
                "node_spacing": spacing(state.nodes) * float(np.max(point.population.sd)),
                **({} if kind is None else {"standard_errors": kind}),
            },
        )


@functools.cache
def _quadrature(num_nodes: int, dims: int) -> Quadrature:
    return rectangular(num_nodes, dims=dims)


def _without_slope_prior(specification: Specification) -> Specification:
    precision = np.array(specification.prior_precision)
    precision[np.asarray(specification.free)[:, 0], 0] = 0.0
    estimated = tuple(group for group in specification.estimated if group != (0,))
    return dataclasses.replace(specification, prior_precision=precision, estimated=estimated, log_slopes=False)


def _sample(num_subjects: int, num_nodes: int) -> np.ndarray | slice:
    """All subjects, or an even sample of as many as are cheap."""
    most = max(100, SAMPLE_WEIGHTS // num_nodes)
    return slice(None) if num_subjects <= most else np.linspace(0, num_subjects - 1, most).astype(int)
