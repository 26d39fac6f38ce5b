"""Steps up the marginal likelihood, priors included, on nodes that all subjects share.

They are limited-memory quasi-Newton steps (Nocedal 1980). The information of complete data, item by item, is known at
each point and says nearly everything about the curvature. What it lacks is what items share: the scale, and the trade
of one item against others. The last steps and the changes of the gradient along them supply that. A step is made only
if the objective rises (`step_length`).
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from irtjax.estimation.item_step import natural_step
from irtjax.estimation.problem import Layout, Specification, layout, with_held
from irtjax.estimation.quadrature.point import Point, moved_by
from irtjax.estimation.quadrature.step_length import (
    FIRST_CHANGE,
    bounds,
    longest,
    narrowing,
    shortened,
    shortened_where_it_loses,
    shortened_where_unforeseen,
)
from irtjax.item_models.protocol import Items
from irtjax.types import Bool, Float

ROUNDING = 1e-13  # relative error of an objective
ARMIJO = 1e-4
SHORTENINGS = 12  # of a step, before it is given up
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
    limit = longest(values, specification, places) if memory.steps else FIRST_CHANGE
    step = shortened(step, np.minimum(limit, room), places)
    step = shortened_where_unforeseen(step, point, specification, places)
    for _ in range(SHORTENINGS):
        moved = evaluate_at(*moved_by(point, step, places))
        rise = moved.objective - point.objective
        if rise >= ARMIJO * float(point.gradient @ step) - ROUNDING * abs(point.objective):
            return moved, memory.with_pair(step, point.gradient - moved.gradient), change
        step = shortened_where_it_loses(step, point, moved, specification, places)
    return point, Memory(), change
