"""Steps up the marginal likelihood, priors included, on nodes that all subjects share.

They are limited-memory quasi-Newton steps (Nocedal 1980). The information of complete data, item by item, is known at
each point and says nearly everything about the curvature. What it lacks is what items share: the scale, and the trade
of one item against others. The last steps and the changes of the gradient along them supply that. A step is made only
if the objective rises.

The likelihood of few answers may have no maximum: an item that separates the subjects of a sample into two groups is
the likelier the steeper its curve is. Its slope would grow without end, and take every other step along. It is
therefore held where nodes can no longer tell it from a step (`kernels.quadrature.steepest`). A slope under a prior
needs no bound.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from irtjax import processes
from irtjax.estimation.item_step import log_prior, natural_step, priors_of
from irtjax.estimation.problem import Layout, Specification, as_array, as_items, layout, with_held
from irtjax.estimation.quadrature import item_score
from irtjax.estimation.quadrature.item_score import Counts
from irtjax.integration.e_step import Expected, e_step
from irtjax.integration.encode import AnyAnswers
from irtjax.integration.nodes import place_nodes
from irtjax.integration.sparse_grid import SparseGrid
from irtjax.item_models.protocol import Items
from irtjax.populations.groups import Groups
from irtjax.populations.kinds import Populations
from irtjax.populations.normal import Population
from irtjax.types import Bool, Float

MOST_CHANGE = 4.0  # of any parameter in one step
MOST_SHARE = 0.3  # of slope or intercept, where that is more: a curve like a step hardly changes when it is steeper
FIRST_CHANGE = 1.0  # of any parameter in a step without memory, which may overshoot from afar
ROUNDING = 1e-13  # relative error of an objective
ARMIJO = 1e-4
SHORTER = 0.3  # of a step that leads down
SHORTENINGS = 12  # of a step, before it is given up
FORESEEN = 1.0, 2.0  # nats, and times what is foreseen, that an item may lose more by a step than is foreseen
CLOSER = 6  # shortenings of items that lose more
PAIRS = 20  # of a step and the fall of the gradient along it, that are remembered
LEAST_CURVATURE = 1e-10  # cosine of the two, below which they say nothing
ONE_THREAD = 8192  # numbers of a product of vectors: for more BLAS takes threads, which wait for each other


class Memory(NamedTuple):
    """The last steps, and how the gradient fell along each: arrays (P,), oldest first."""

    steps: tuple[np.ndarray, ...] = ()
    falls: tuple[np.ndarray, ...] = ()

    def with_pair(self, step: Float[np.ndarray, " P"], fall: Float[np.ndarray, " P"]) -> "Memory":
        """The memory after a step, of which the pair is left out where the objective did not bend down."""
        if not step @ fall > LEAST_CURVATURE * np.linalg.norm(step) * np.linalg.norm(fall):
            return self
        return Memory((*self.steps, step)[-PAIRS:], (*self.falls, fall)[-PAIRS:])

    def within(self, free: Bool[np.ndarray, " P"]) -> "Memory":
        """What the memory says of the free parameters while the others are held."""
        result = Memory()
        for step, fall in zip(self.steps, self.falls, strict=True):
            result = result.with_pair(np.where(free, step, 0.0), np.where(free, fall, 0.0))
        return result


class Point(NamedTuple):
    """The objective at some parameters, with what a step from there needs.

    Attributes:
        items: of I items.
        population: mean and standard deviation (D,), or those of G groups.
        objective: marginal log-likelihood plus log-prior, in nats.
        gradient: (P,) of the objective, in the order of `Layout`.
        information: (I, K, K) of complete data, priors included; K is D + 1 without asymptotes.
        of_population: (2 D,), (2 G D,) or (C D + D,) information of means and log standard deviations.
        counts: expected answers at the nodes.
        abilities: (2 D,) means of ability and of its square over the posteriors of all subjects, or the first group's;
            of what covariates leave of it.
        boundary_mass: shares of all posteriors at the rim of their grid.
    """

    items: Items
    population: Populations
    objective: float
    gradient: np.ndarray
    information: np.ndarray
    of_population: np.ndarray
    counts: Counts
    abilities: np.ndarray
    boundary_mass: float


def evaluate(
    items: Items,
    population: Populations,
    answers: AnyAnswers,
    grid: SparseGrid,
    specification: Specification,
) -> Point:
    """The objective and what a step needs, from one pass over the responses."""
    found = e_step(items, population, answers, grid)
    return _point(found, items, population, answers, grid, specification)


@np.errstate(all="ignore")  # an item may run off to infinity
def _point(
    found: Expected,
    items: Items,
    population: Populations,
    answers: AnyAnswers,
    grid: SparseGrid,
    specification: Specification,
) -> Point:
    counts = Counts(
        answers.model,
        place_nodes(population, grid.nodes),
        found.statistics,
        np.broadcast_to(found.observed, (len(found.statistics), len(items.intercept))),
    )
    asymptotes = items.has_others()
    gradient, information = item_score.score(items, counts, asymptotes=asymptotes)
    size = gradient.shape[1]
    prior = priors_of(as_array(items)[:, :size], specification)
    information[:, range(size), range(size)] += prior.information
    places = layout(specification)
    vector = places.add_up(gradient + prior.gradient)
    at, of_population, of_scale = places.population, np.ones(places.population.size), found.moments
    if not isinstance(population, Population):
        known = answers.member if answers.predictors is None else answers.predictors
        of_subjects = np.asarray(known)[:, 0] if isinstance(population, Groups) else np.asarray(known)
        by, of_population = processes.total(population.score(found.moments, of_subjects))
        of_scale = population.of_scale(found.moments, of_subjects)
        vector[at[at >= 0]] = by[at >= 0]
    elif (at >= 0).any():
        by, of_population = item_score.population_score(
            items, counts, np.asarray(population.mean), asymptotes=asymptotes
        )
        vector[at[at >= 0]] = by[at >= 0]
    sums = found.log_likelihoods.sum(), of_scale.sum(axis=0), len(of_scale)
    log_likelihood, abilities, number = processes.total(sums)
    objective = float(log_likelihood) + float(prior.log_density.sum())
    of_all = counts, abilities / number, found.boundary_mass
    return Point(items, population, objective, vector, information, of_population, *of_all)


def direction(
    gradient: Float[np.ndarray, " P"],
    memory: Memory,
    precondition: Callable[[np.ndarray], np.ndarray],
) -> Float[np.ndarray, " P"]:
    """The step H gradient towards a maximum, where H is the inverse of what is known of the curvature.

    Args:
        gradient: of the objective.
        memory: of the steps before.
        precondition: the inverse of a first estimate of the curvature, symmetric and positive, times a vector.
    """
    rest, shares = gradient, []
    for step, fall in zip(reversed(memory.steps), reversed(memory.falls), strict=True):
        shares.append(_product(step, rest) / _product(step, fall))
        rest = rest - shares[-1] * fall
    result = precondition(rest)
    for step, fall, share in zip(memory.steps, memory.falls, reversed(shares), strict=True):
        result = result + step * (share - _product(fall, result) / _product(step, fall))
    return result


def _product(one: Float[np.ndarray, " P"], other: Float[np.ndarray, " P"]) -> float:
    """The inner product, on one thread."""
    parts = range(0, len(one), ONE_THREAD)
    return float(sum(one[at : at + ONE_THREAD] @ other[at : at + ONE_THREAD] for at in parts))


def _precondition(vector: np.ndarray, point: Point, specification: Specification, places: Layout) -> np.ndarray:
    """The inverse information of complete data times a vector (P,); 0 for what the specification holds."""
    size = point.information.shape[1]
    by_item = places.gather(vector)[:, :size]
    for column, items in specification.common:
        if column < size:  # once, of the items that have it in common
            by_item[:, column] = np.where(
                items & (np.arange(len(by_item)) != int(np.argmax(items))), 0.0, by_item[:, column]
            )
    step = natural_step(by_item, point.information, specification)
    result = np.zeros(places.size)
    free = places.items[:, :size] >= 0
    result[places.items[:, :size][free]] = step[free]
    at = places.population
    result[at[at >= 0]] = vector[at[at >= 0]] / np.maximum(point.of_population[at >= 0], 1e-300)
    return result


def _proposed(
    point: Point, memory: Memory, specification: Specification, held: Bool[np.ndarray, " P"]
) -> tuple[Float[np.ndarray, " P"], float]:
    """The quasi-Newton step of the parameters that are not held, and its length √(gradient' H gradient)."""
    places = layout(specification)
    free = with_held(specification, places, held)
    precondition = functools.partial(_precondition, point=point, specification=free, places=places)
    gradient = np.where(held, 0.0, point.gradient)
    step = direction(gradient, memory.within(~held) if held.any() else memory, precondition)
    return step, float(np.sqrt(max(float(gradient @ step), 0.0)))


def _shortened(step: np.ndarray, most: np.ndarray, places: Layout) -> np.ndarray:
    """A step in which no parameter changes by more than `most` (P,).

    That of each item is shortened as a whole. One that runs off to infinity must not hold up the others.
    """
    share = most / np.maximum(np.abs(step), most)
    own = (places.items >= 0) & (places.items < places.num_own)
    of_item = np.where(own, share[places.items], 1.0).min(axis=1)
    share[places.items[own]] = np.broadcast_to(of_item[:, None], own.shape)[own]
    return share * step


def _longest(values: Float[np.ndarray, " P"], specification: Specification, places: Layout) -> Float[np.ndarray, " P"]:
    """The most that each parameter (P,) may change by: `MOST_CHANGE`, or a share of slopes and intercepts.

    Others, such as the logit of an asymptote at 0, run off to where no likelihood tells them from infinity.
    """
    result = np.full(places.size, MOST_CHANGE)
    at = places.items[:, : specification.dims + 1]
    at = at[at >= 0]
    result[at] = np.maximum(MOST_CHANGE, MOST_SHARE * np.abs(values[at]))
    return result


def _shortened_where_unforeseen(
    step: np.ndarray, point: Point, specification: Specification, places: Layout
) -> np.ndarray:
    """A step, shortened for the items whose curves change by it in a way that no expansion at its start foresees.

    Of each item the change of the expected log-likelihood is compared with g's - s'Is/2, given the posteriors at the
    beginning. That takes no pass over the responses, which a step that leads down would.
    """
    if not np.abs(step).max() > FIRST_CHANGE:
        return step
    own, size = (places.items >= 0) & (places.items < places.num_own), point.information.shape[1]
    gradient = np.where(own, point.gradient[places.items], 0.0)[:, :size]
    nats, times = FORESEEN
    with np.errstate(all="ignore"):
        before = _expected(point.items, point, specification)
        for _ in range(CLOSER):
            change = np.where(own, step[places.items], 0.0)[:, :size]
            curvature = np.einsum("ik,ikl,il->i", change, point.information, change)
            foreseen = (gradient * change).sum(axis=1) - curvature / 2
            found = _expected(_move(point, step, places)[0], point, specification) - before
            beyond = ~(found >= foreseen - nats - times * np.abs(foreseen))
            if not beyond.any():
                break
            step = _shorter(step, own & beyond[:, None], places)
    return step


def _expected(items: Items, point: Point, specification: Specification) -> Float[np.ndarray, " I"]:
    """Expected log-likelihood of each item under the posteriors of a point, and log-prior."""
    return item_score.log_likelihood(items, point.counts) + log_prior(items, specification)


def _shorter(step: np.ndarray, which: Bool[np.ndarray, "I K"], places: Layout) -> np.ndarray:
    """A step that is shorter in some parameters of items."""
    result = step.copy()
    result[places.items[which]] *= SHORTER
    return result


def _shortened_where_it_loses(
    step: np.ndarray, point: Point, moved: Point, specification: Specification, places: Layout
) -> np.ndarray:
    """A step that led down, shortened for the items that lose by it; for all if none of them does.

    An item loses whose expected log-likelihood falls, given the posteriors at the beginning of the step. Were there
    none, the objective would have risen (Dempster, Laird and Rubin 1977).
    """
    with np.errstate(all="ignore"):
        before, after = (_expected(items, point, specification) for items in (point.items, moved.items))
    loses = ~(after >= before)
    if not loses.any() or loses.all():
        return SHORTER * step
    result = SHORTER * step
    own = (places.items >= 0) & (places.items < places.num_own) & ~loses[:, None]
    result[places.items[own]] = step[places.items[own]]
    return result


def _move(point: Point, step: np.ndarray, places: Layout) -> tuple[Items, Populations]:
    items = as_items(as_array(point.items) + places.gather(step), point.items)
    mean, sd = (np.asarray(leaf) for leaf in point.population)
    mean = mean + np.where(places.mean >= 0, step[places.mean], 0.0)
    sd = sd * np.exp(np.where(places.log_sd >= 0, step[places.log_sd], 0.0))
    return items, point.population._replace(mean=mean, sd=sd)


def bounds(
    specification: Specification, places: Layout, unit: Float[np.ndarray, " D"], most_slope: float
) -> Float[np.ndarray, " P"]:
    """The largest absolute value of each parameter: that of free slopes without a prior, in units of 1 / `unit`."""
    result = np.full(places.size, np.inf)
    dims = specification.dims
    free = places.items[:, :dims] >= 0
    bounded = free & (np.asarray(specification.prior_precision)[:, :dims] == 0)
    result[places.items[:, :dims][bounded]] = np.broadcast_to(most_slope / np.asarray(unit), bounded.shape)[bounded]
    return result


def at_bounds(point: Point, specification: Specification, most_slope: float) -> Bool[np.ndarray, " I"]:
    """The items with a slope at its bound: if the objective is at rest, it has no maximum in it."""
    places = layout(specification)
    at = np.abs(places.as_vector(point.items)) >= bounds(specification, places, point.population.unit, most_slope)
    return ((places.items >= 0) & at[places.items]).any(axis=1)


def narrowing(point: Point, places: Layout, least_sd: float) -> Float[np.ndarray, " P"]:
    """By how much each log standard deviation of a group may fall (P,); infinite for all other parameters."""
    result = np.full(places.size, np.inf)
    if not isinstance(point.population, Population) and least_sd > 0:
        free = places.log_sd >= 0
        room = np.log(point.population.sd[free] / least_sd)
        result[places.log_sd[free]] = np.where(room > ROUNDING, room, 0.0)
    return result


def climb(
    point: Point,
    memory: Memory,
    specification: Specification,
    evaluate_at: Callable[[Items, Any], Point],
    most_slope: float = np.inf,
    least_sd: float = 0.0,
) -> tuple[Point, Memory, float]:
    """One quasi-Newton step, shortened until the objective rises; none where that does not help.

    Slopes at their bound are held while the objective would rise beyond it.

    Args:
        point: where it begins.
        memory: of the steps before.
        specification: what is free; priors.
        evaluate_at: the point at other parameters.
        most_slope: in standard deviations of the population; a bound of slopes without a prior (`bounds`).
        least_sd: a bound of the standard deviations of groups, in units of the scale: narrower ones fall between nodes.

    Returns:
        The next point, the memory after the step, and the length √(gradient' H gradient) of the step proposed, in
        standard errors.
    """
    places = layout(specification)
    values, most = places.as_vector(point.items), bounds(specification, places, point.population.unit, most_slope)
    to_narrow = narrowing(point, places, least_sd)
    held = ((np.abs(values) >= most) & (point.gradient * values >= 0)) | ((to_narrow <= 0) & (point.gradient <= 0))
    step, change = _proposed(point, memory, specification, held)
    beyond = ((np.abs(values) >= most) & (step * values > 0)) | ((to_narrow <= 0) & (step < 0))
    if beyond.any():
        step, change = _proposed(point, memory, specification, held | beyond)
    if not float(point.gradient @ step) > 0 or not np.isfinite(step).all():
        memory = Memory()
        step, change = _proposed(point, memory, specification, held | beyond)
    room = np.where(step * values > 0, np.maximum(most - np.abs(values), 0.0), np.inf)
    room = np.where(step < 0, np.minimum(room, np.maximum(to_narrow, 0.0)), room)
    longest = _longest(values, specification, places) if memory.steps else FIRST_CHANGE
    step = _shortened(step, np.minimum(longest, room), places)
    step = _shortened_where_unforeseen(step, point, specification, places)
    for _ in range(SHORTENINGS):
        moved = evaluate_at(*_move(point, step, places))
        rise = moved.objective - point.objective
        if rise >= ARMIJO * float(point.gradient @ step) - ROUNDING * abs(point.objective):
            return moved, memory.with_pair(step, point.gradient - moved.gradient), change
        step = _shortened_where_it_loses(step, point, moved, specification, places)
    return point, Memory(), change
