"""The engine for short tests: nodes as fine as the subjects' posteriors ask for (`integration.rules`).

The marginal likelihood is climbed by quasi-Newton steps (`climb`), which begin with the information of complete
data that the posteriors give for each item, and learn from the last steps what items share. No step is made that lowers
the objective.
"""

import dataclasses
import functools

import jax
import numpy as np

from irtjax.estimation import empirical_priors
from irtjax.estimation.anchor_scale import (
    anchors_only,
    by_scale_of_priors,
    following,
    given_alone,
    newton_change,
    on_scale,
)
from irtjax.estimation.driver import Estimate, Info, Problem
from irtjax.estimation.problem import Specification, without_asymptotes
from irtjax.estimation.quadrature import checks as node_checks
from irtjax.estimation.quadrature import item_score
from irtjax.estimation.quadrature.climb import Memory, climb
from irtjax.estimation.quadrature.finish import estimate_at
from irtjax.estimation.quadrature.item_search import better_modes
from irtjax.estimation.quadrature.point import Point, evaluate
from irtjax.estimation.quadrature.state import Phase, State
from irtjax.estimation.quadrature.step_length import at_bounds
from irtjax.integration.encode import to_answers
from irtjax.integration.node_rule import NodeRule
from irtjax.integration.sparse_grid import MOST_BOUNDARY_MASS
from irtjax.item_models.protocol import Items
from irtjax.kernels.models import ItemParameters
from irtjax.populations.groups import Groups
from irtjax.populations.kinds import Populations
from irtjax.populations.latent_regression import LatentRegression
from irtjax.populations.normal import Population

LOOSE = 0.3  # standard errors; where a phase ends that only prepares the next
TOLERANCE = 1e-4
PATIENCE = 300  # steps without a smaller change; the way over a ridge of the likelihood has many
SLACK = 100.0  # times these errors are good enough to prepare a phase
LEFT_OUT = 1e-4  # nats that tiles may have left out
SETTLED = 0.01  # change of a prior, in standard deviations, that is none
MOST_PRIORS = 15  # times that they are estimated anew
CLEARLY = 0.95  # share of slopes that responses determine, from which on another round would not bring it below 90%
MOST_SEARCHES = 6  # for better modes
ROUGH = 0.05  # the least tolerance on nodes around each posterior: their errors leave no more to be found
LEG = 25  # steps after which nodes of each subject's own are laid anew: far from there, errors of theirs would lead on
APART = 1e-3  # nats per subject that nodes of their own may be off by, since posteriors have moved
MOST_RELAID = 20  # times
MOST_WITH_STEPS = 4  # where slopes have run off: no nodes tell steps well, and it need not come to rest


@dataclasses.dataclass(frozen=True)
class QuadratureEngine:
    """Marginal maximum likelihood on nodes that stay where they are within a phase, in float64.

    Attributes:
        rule: the nodes to begin with.
        adapt: whether they become finer until that hardly changes the log-likelihood.
        tolerance: where it has converged: the length of the next step in standard errors, √(gradient' H gradient).
        search: whether items with asymptotes are tried in other modes (D = 1).
        standard_errors: whether they are computed.
        warm: whether it begins where it is told to, and not with a phase without asymptotes.
    """

    rule: NodeRule
    adapt: bool = True
    tolerance: float = TOLERANCE
    search: bool = True
    standard_errors: bool = True
    warm: bool = False

    def init(self, problem: Problem) -> State:
        """Begins, without asymptotes where any are free: their likelihood has several maxima."""
        specification, items, released = problem.specification, problem.items, None
        dims, ahead = specification.dims, (*_priors_of(specification), Phase.LAST_STEPS)
        may_have = isinstance(items, ItemParameters)
        if not self.warm and may_have and np.asarray(specification.free)[:, dims + 1 :].any():
            released = items, specification
            searches = (Phase.MODES, *_priors_of(specification)) * (MOST_SEARCHES if self.search and dims == 1 else 0)
            items, specification = without_asymptotes(items, specification)
            ahead = *_priors_of(specification), Phase.ASYMPTOTES, *ahead[:-1], *searches, Phase.LAST_STEPS
        with jax.enable_x64(True):
            answers = to_answers(problem.values, problem.model, problem.trials, problem.member, problem.predictors)
            population: Populations = Population(np.zeros(dims), np.ones(dims))
            if specification.num_groups > 1:
                shape = specification.num_groups, dims
                population = Groups(np.zeros(shape), np.ones(shape))
            if specification.num_predictors:
                population = LatentRegression(np.zeros((specification.num_predictors, dims)), np.ones(dims))
            placed = self.rule.lay_out(items, population, answers)
            point = evaluate(items, population, answers, placed, specification)
        return State(
            point,
            Memory(),
            specification,
            self.rule,
            answers,
            placed,
            ahead,
            released,
            LOOSE,
        )

    def step(self, state: State) -> tuple[State, Info]:
        """A quasi-Newton step, shortened until the objective rises; without memory where that does not help.

        Where posteriors come near the rim of their tiles, all get new ones.
        """
        with jax.enable_x64(True):
            point, memory, change = climb(
                state.point,
                state.memory,
                state.specification,
                functools.partial(_evaluate, state=state),
                state.rule.steepest,
                state.rule.narrowest,
            )
            state = state._replace(point=point, memory=memory)
            state = state._replace(steps=state.steps + 1)
            if point.boundary_mass > MOST_BOUNDARY_MASS * state.answers.num_subjects or (
                state.rule.moves_with_posterior and state.steps >= LEG
            ):
                state = _restart(state)
        return state, Info(state.point.objective, change, state.tolerance)

    def revise(self, state: State) -> State | None:
        """What the next phase makes of a state at rest; before, finer nodes where they are too coarse.

        They come before asymptotes: between nodes that are too far apart, steep curves cost nothing.
        """
        phase, *later = state.ahead
        with jax.enable_x64(True):
            if phase is Phase.PRIORS:
                return self._estimate_priors(state)
            if state.dropped is not None and at_bounds(state.point, state.specification, state.rule.steepest).any():
                return _with_dropped_prior(state)
            slack = SLACK if later else 1.0
            wider = state.rule.wider(state.grid.nodes.nodes, state.point.counts.observed, slack) if self.adapt else None
            if wider is not None:
                return _restart(state._replace(rule=wider, tolerance=LOOSE))
            if self.adapt and node_checks.too_coarse(state, slack):
                return _restart(state._replace(rule=state.rule.finer(), tolerance=LOOSE))
            if phase is Phase.ASYMPTOTES:
                return self._release_asymptotes(state)
            if phase is Phase.MODES:
                return self._search_modes(state)
            return self._follow_posteriors(state) if state.rule.moves_with_posterior else self._last_steps(state)

    def finish(self, state: State) -> Estimate:
        """Abilities, covariances of the items, and the log-likelihood by a finer rule."""
        with jax.enable_x64(True):
            return estimate_at(state, self.standard_errors)

    def _last_steps(self, state: State) -> State | None:
        """Those to the tolerance; at rest there, other windows if posteriors have moved to where none is."""
        if state.tolerance > self.tolerance:
            return state._replace(tolerance=self.tolerance)
        if state.grid.rows is None:
            return None
        fresh = _restart(state)
        return fresh if fresh.point.objective > state.point.objective + LEFT_OUT else None

    def _follow_posteriors(self, state: State) -> State | None:
        """Nodes where the posteriors are now, until that hardly changes the objective; then the last steps."""
        fresh = _restart(state)
        apart = abs(fresh.point.objective - state.point.objective) / state.answers.num_subjects
        run_off = at_bounds(state.point, state.specification, state.rule.steepest)
        if apart > APART and state.rounds < (MOST_WITH_STEPS if run_off.any() else MOST_RELAID):
            return fresh._replace(rounds=state.rounds + 1)
        tolerance = max(self.tolerance, ROUGH)
        return fresh._replace(tolerance=tolerance) if state.tolerance > tolerance else None

    def _estimate_priors(self, state: State) -> State:
        """Priors estimated anew; the phase ends where they hardly move."""
        point, specification = state.point, state.specification
        gradient, information = item_score.score(point.items, point.counts, asymptotes=point.items.has_others())
        unit_by_slopes = specification.asinh_slopes and (0,) in specification.estimated
        estimated = empirical_priors.reestimate(point.items, gradient, information, specification, unit_by_slopes)
        # that abilities have mean 0 and variance 1, or anchors, say where all items are together and how steep, not
        # their priors
        origin, square = point.abilities[0], point.abilities[specification.dims]  # with D > 1 nothing asks for them
        unit = float(np.sqrt(square - origin**2))
        if specification.mean_fixed and (specification.dims,) in specification.estimated:
            estimated = empirical_priors.moved(estimated, point.items, origin)
            free = np.asarray(specification.free)[:, specification.dims]
            intercept = point.items.intercept + np.where(free, origin, 0.0) * point.items.slope[:, 0]
            population = point.population.rescaled(origin, 1.0)
            point = point._replace(items=point.items._replace(intercept=intercept), population=population)
        if unit_by_slopes and specification.sd_fixed:
            estimated = empirical_priors.stretched(estimated, unit)
            slope = np.where(np.asarray(specification.free)[:, :1], unit, 1.0) * point.items.slope
            population = point.population.rescaled(0.0, unit)
            point = point._replace(items=point.items._replace(slope=slope), population=population)
        if not specification.mean_fixed:
            point, estimated = _towards_anchors(state, estimated)
        state = state._replace(point=point)
        change = empirical_priors.largest_change(specification, estimated)
        share = 0.0
        if _may_drop_slope_prior(state):
            share = empirical_priors.slopes_determined(point.items, gradient, information, estimated)
        settled = change < SETTLED or state.rounds >= MOST_PRIORS or share > CLEARLY
        if settled and share > empirical_priors.DETERMINED:
            state = state._replace(dropped=estimated)
            estimated = empirical_priors.without_slopes(estimated)
        state = _next_phase(state) if settled else state._replace(rounds=state.rounds + 1)
        return _restart(state._replace(specification=estimated))

    def _release_asymptotes(self, state: State) -> State:
        """Free asymptotes at their starting values, or the items in better modes; the other parameters stay."""
        assert state.released is not None
        start, specification = state.released
        items = state.point.items._replace(lower=start.lower, upper=start.upper)
        mean, precision = (np.array(getattr(specification, name)) for name in ("prior_mean", "prior_precision"))
        own = specification.dims + 1
        mean[:, :own], precision[:, :own] = (
            np.asarray(getattr(state.specification, name))[:, :own] for name in ("prior_mean", "prior_precision")
        )
        specification = dataclasses.replace(specification, prior_mean=mean, prior_precision=precision)
        if self.search and specification.dims == 1:
            items, _ = better_modes(items, specification, state.point.counts)
        return _with_items(_next_phase(state)._replace(specification=specification), items)

    def _search_modes(self, state: State) -> State:
        """Items in better modes; where none has one, there is nothing more to be searched."""
        items, moved = better_modes(state.point.items, state.specification, state.point.counts)
        if not moved.any():
            return state._replace(ahead=(Phase.LAST_STEPS,), rounds=0)
        return _with_items(_next_phase(state), items)


def _towards_anchors(state: State, estimated: Specification) -> tuple[Point, Specification]:
    """Items, population and estimated priors together on the scale where anchors fit best, by a Newton step.

    Priors are held between two estimates, and hold the scale of many free items: few anchors would move it by a small
    share each time. A step is made only if the likelihood, with the priors that are given, rises.
    """
    point, given = state.point, given_alone(state.specification)
    anchors, asymptotes = anchors_only(point.items, given), point.items.has_others()
    by_anchors = item_score.scale_score(anchors, point.counts, asymptotes=asymptotes)
    by_priors = by_scale_of_priors(point.items, given)
    change = newton_change(by_anchors[0] + by_priors[0], by_anchors[1] + by_priors[1], given)
    items = on_scale(point.items, change, given)
    population = point.population.on(float(change[0]), float(np.exp(change[1])))
    alone = state._replace(specification=given)
    before, after = (
        _evaluate(*where, alone).objective for where in ((point.items, point.population), (items, population))
    )
    if not after > before:
        return point, estimated
    moved = point._replace(items=items, population=population)
    return moved, following(estimated, point.items, items)


def _with_dropped_prior(state: State) -> State:
    """The state under the prior of slopes that had been dropped, where the likelihood of an item has no maximum.

    On average responses determined slopes, but not all of them. The prior stays as it was estimated last; slopes that
    have run off begin at its mean.
    """
    assert state.dropped is not None
    items = state.point.items
    off = at_bounds(state.point, state.specification, state.rule.steepest)
    mean = np.sinh(np.asarray(state.dropped.prior_mean)[:, :1])
    slope = np.where(off[:, None], mean, items.slope)
    intercept = np.array(items.intercept)
    intercept[off] *= (slope[off] / np.asarray(items.slope)[off])[:, 0]  # difficulties stay
    state = state._replace(specification=state.dropped, dropped=None, memory=Memory(), tolerance=LOOSE)
    return _with_items(state, items._replace(slope=slope, intercept=intercept))


def _priors_of(specification: Specification) -> tuple[Phase, ...]:
    """The phase in which priors are estimated, where there are any to be."""
    return (Phase.PRIORS,) if specification.estimated else ()


def _next_phase(state: State) -> State:
    return state._replace(ahead=state.ahead[1:], rounds=0)


def _with_items(state: State, items: Items) -> State:
    """The state with items elsewhere, where the last steps tell nothing."""
    return _restart(state._replace(point=state.point._replace(items=items), memory=Memory()))


def _may_drop_slope_prior(state: State) -> bool:
    """Whether slopes may go without their estimated prior: those of the 2PL on its own.

    They may not where intercepts have a prior: the slope of an extreme item needs one, too.
    """
    specification = state.specification
    if not specification.asinh_slopes or (specification.dims,) in specification.estimated:
        return False
    items = state.point.items
    asymptotes = isinstance(items, ItemParameters) and items.has_others()
    return (0,) in specification.estimated and state.released is None and not asymptotes


def _evaluate(items: Items, population: Populations, state: State) -> Point:
    return evaluate(items, population, state.answers, state.grid, state.specification)


def _restart(state: State) -> State:
    """The state under another objective; what is remembered of the old one still tells how its parameters trade."""
    items, population = state.point.items, state.point.population
    state = state._replace(grid=state.rule.lay_out(items, population, state.answers), steps=0)
    return state._replace(point=_evaluate(items, population, state))
