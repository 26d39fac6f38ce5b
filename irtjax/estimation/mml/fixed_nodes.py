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
from irtjax.estimation.mml.estimate import Estimate
from irtjax.estimation.mml.item_search import better_modes
from irtjax.estimation.mml.item_step import log_prior, natural_step, priors_of
from irtjax.estimation.mml.node_posteriors import (
    Answers,
    NodePosteriors,
    log_likelihoods,
    node_posteriors,
    place_nodes,
    to_answers,
)
from irtjax.estimation.mml.node_score import Counts
from irtjax.estimation.parameterization import (
    Layout,
    Specification,
    as_array,
    as_items,
    has_asymptotes,
    layout,
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
MOST_WEIGHTS = 2**27  # subjects × nodes: 1 GB
SAMPLE_WEIGHTS = 2**25  # beyond it the nodes are judged by a sample of the subjects
MOST_CHANGE = 4.0  # of any parameter in one step
FIRST_CHANGE = 1.0  # of any parameter in a step without memory, which may overshoot from afar
ROUNDING = 1e-13  # relative error of an objective
ARMIJO = 1e-4
SHORTER = 0.3  # of a step that leads down
SHORTENINGS = 12  # of a step, before it is given up
SETTLED = 0.01  # change of a prior, in standard deviations, that is none
PRIOR_ROUNDS = 15
SEARCH_ROUNDS = 5
DETERMINED = 0.9  # share of the slopes that responses determine, from which on a 2PL needs no prior
MOST_PARAMETERS = 3000  # free ones whose standard errors come from a dense matrix of all


class Point(NamedTuple):
    """The objective at some parameters, with what a step from there needs.

    Attributes:
        items: of I items.
        population: mean and standard deviation (D,).
        objective: marginal log-likelihood plus log-prior, in nats.
        gradient: (P,) of the objective, in the order of `Layout`.
        information: (I, K, K) of complete data, priors included; K is D + 1 without asymptotes.
        of_population: (2 D,) likewise of means and log standard deviations.
        counts: expected answers at the nodes.
    """

    items: ItemParameters
    population: Population
    objective: float
    gradient: np.ndarray
    information: np.ndarray
    of_population: np.ndarray
    counts: Counts


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
        change: from rest, in standard errors.
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
    change: float = np.inf


@dataclasses.dataclass(frozen=True)
class FixedNodes:
    """Marginal maximum likelihood on fixed nodes in [-6, 6] standard deviations of the population, in float64.

    Attributes:
        num_nodes: per dimension, to begin with.
        adapt: whether they are halved until that changes the log-likelihood by less than 1e-5 nats per subject.
        tolerance: where it has converged: the length of the next step in standard errors, √(gradient' H gradient).
        search: whether items with asymptotes are tried in other modes (D = 1).
        drop_slope_prior: whether the estimated prior of slopes goes where responses determine them well enough.
        standard_errors: whether they are computed.
        warm: whether it begins where it is told to, and not with a phase without asymptotes.
    """

    num_nodes: int
    adapt: bool = True
    tolerance: float = TOLERANCE
    search: bool = True
    drop_slope_prior: bool = True
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
            state = self._climb(state)
        return state, Info(state.point.objective, state.change, state.tolerance)

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
        return state._replace(point=point, change=np.inf)

    def _climb(self, state: State) -> State:
        point, places = state.point, layout(state.specification)
        precondition = functools.partial(_precondition, point=point, specification=state.specification, places=places)
        step = quasi_newton.direction(point.gradient, state.memory, precondition)
        change = np.sqrt(max(float(point.gradient @ step), 0.0))
        step = _shortened(step, MOST_CHANGE if state.memory.steps else FIRST_CHANGE, places)
        square = float(point.gradient @ step)
        if not square > 0 or not np.isfinite(step).all():
            state, step = state._replace(memory=quasi_newton.Memory()), precondition(point.gradient)
            change = np.sqrt(max(float(point.gradient @ step), 0.0))
            step = _shortened(step, FIRST_CHANGE, places)
            square = float(point.gradient @ step)
        for _ in range(SHORTENINGS):
            moved = self._evaluate(*_move(point, step, places), state)
            rise = moved.objective - point.objective
            if rise >= ARMIJO * float(point.gradient @ step) - ROUNDING * abs(point.objective):
                memory = state.memory.with_pair(step, point.gradient - moved.gradient)
                return state._replace(point=moved, memory=memory, change=change)
            step = _shortened_where_it_loses(step, point, moved, state.specification, places)
        return state._replace(memory=quasi_newton.Memory(), change=change)

    def _with_priors(self, state: State) -> State:
        """Priors estimated anew; settled where they hardly move."""
        point, specification = state.point, state.specification
        gradient, information = node_score.score(point.items, point.counts, asymptotes=has_asymptotes(point.items))
        estimated = empirical_priors.reestimate(point.items, gradient, information, specification)
        change = empirical_priors.largest_change(specification, estimated)
        rounds = -1 if change < SETTLED or state.prior_rounds >= PRIOR_ROUNDS else state.prior_rounds + 1
        if (
            rounds < 0
            and self.drop_slope_prior
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
        finer = (2 * state.nodes - 1) ** state.specification.dims
        return state.specification.dims < 3 and finer * len(state.answers.right) <= MOST_WEIGHTS

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
        error = float(difference.mean()) * num_subjects
        return Estimate(
            items=point.items,
            population=point.population,
            covariances=covariances,
            ability=ability,
            ability_se=np.sqrt(np.maximum(weights @ nodes**2 - ability**2, 0)),
            log_likelihoods=coarse,
            log_likelihood=float(coarse.sum()) + error,
            log_likelihood_error=abs(error),
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


def evaluate(
    items: ItemParameters,
    population: Population,
    answers: Answers,
    quadrature: Quadrature,
    specification: Specification,
) -> Point:
    """The objective and what a step needs, from one pass over the responses."""
    found = node_posteriors(items, population, answers, quadrature)
    return _point(found, items, population, quadrature, specification)


@np.errstate(all="ignore")  # an item may run off to infinity
def _point(
    found: NodePosteriors,
    items: ItemParameters,
    population: Population,
    quadrature: Quadrature,
    specification: Specification,
) -> Point:
    right = np.asarray(found.right)
    counts = Counts(place_nodes(population, quadrature), right, np.asarray(found.observed) - right)
    gradient, information = node_score.score(items, counts, asymptotes=has_asymptotes(items))
    size = gradient.shape[1]
    prior = priors_of(as_array(items)[:, :size], specification)
    information[:, range(size), range(size)] += prior.information
    places = layout(specification)
    vector = places.add_up(gradient + prior.gradient)
    of_population = np.ones(2 * specification.dims)
    at = np.concatenate([places.mean, places.log_sd])
    if (at >= 0).any():
        by, of_population = node_score.population_score(items, counts, np.asarray(population.mean))
        vector[at[at >= 0]] = by[at >= 0]
    objective = float(found.log_likelihood) + float(prior.log_density.sum())
    return Point(items, population, objective, vector, information, of_population, counts)


def _precondition(vector: np.ndarray, point: Point, specification: Specification, places: Layout) -> np.ndarray:
    """The inverse information of complete data times a vector (P,)."""
    size = point.information.shape[1]
    by_item = places.gather(vector)[:, :size]
    if specification.has_shared:
        first = int(np.argmax(specification.shared))
        by_item[:, 0] = np.where(specification.shared & (np.arange(len(by_item)) != first), 0.0, by_item[:, 0])
    step = natural_step(by_item, point.information, specification)
    result = np.zeros(places.size)
    free = places.items[:, :size] >= 0
    result[places.items[:, :size][free]] = step[free]
    at = np.concatenate([places.mean, places.log_sd])
    result[at[at >= 0]] = vector[at[at >= 0]] / np.maximum(point.of_population[at >= 0], 1e-300)
    return result


def _shortened(step: np.ndarray, most: float, places: Layout) -> np.ndarray:
    """A step in which no parameter changes by more than `most`.

    That of each item is shortened as a whole. One that runs off to infinity must not hold up the others.
    """
    by_item = places.gather(step)
    share = most / np.maximum(np.abs(by_item).max(axis=1), most)
    result = np.clip(step, -most, most)
    own = (places.items >= 0) & (places.items < places.num_own)
    result[places.items[own]] = (share[:, None] * by_item)[own]
    return result


def _shortened_where_it_loses(
    step: np.ndarray, point: Point, moved: Point, specification: Specification, places: Layout
) -> np.ndarray:
    """A step that led down, shortened for the items that lose by it; for all if none of them does.

    An item loses whose expected log-likelihood falls, given the posteriors at the beginning of the step. Were there
    none, the objective would have risen (Dempster, Laird and Rubin 1977).
    """
    with np.errstate(all="ignore"):
        before, after = (
            node_score.log_likelihood(items, point.counts) + log_prior(items, specification)
            for items in (point.items, moved.items)
        )
    loses = ~(after >= before)
    if not loses.any() or loses.all():
        return SHORTER * step
    result = SHORTER * step
    own = (places.items >= 0) & (places.items < places.num_own) & ~loses[:, None]
    result[places.items[own]] = step[places.items[own]]
    return result


def _move(point: Point, step: np.ndarray, places: Layout) -> tuple[ItemParameters, Population]:
    items = as_items(as_array(point.items) + places.gather(step))
    mean, sd = (np.asarray(leaf) for leaf in point.population)
    mean = mean + np.where(places.mean >= 0, step[places.mean], 0.0)
    return items, Population(mean, sd * np.exp(np.where(places.log_sd >= 0, step[places.log_sd], 0.0)))


def _without_slope_prior(specification: Specification) -> Specification:
    precision = np.array(specification.prior_precision)
    precision[np.asarray(specification.free)[:, 0], 0] = 0.0
    estimated = tuple(group for group in specification.estimated if group != (0,))
    return dataclasses.replace(specification, prior_precision=precision, estimated=estimated, log_slopes=False)


def _sample(num_subjects: int, num_nodes: int) -> np.ndarray | slice:
    """All subjects, or an even sample of as many as are cheap."""
    most = max(100, SAMPLE_WEIGHTS // num_nodes)
    return slice(None) if num_subjects <= most else np.linspace(0, num_subjects - 1, most).astype(int)
