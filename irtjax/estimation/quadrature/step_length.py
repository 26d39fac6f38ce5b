"""How long a step may be: bounds of parameters, and items whose curves a step would change beyond what is known.

The likelihood of few answers may have no maximum: an item that separates the subjects of a sample into two groups is
the likelier the steeper its curve is. Its slope would grow without end, and take every other step along. It is
therefore held where nodes can no longer tell it from a step (`kernels.quadrature.steepest`). A slope under a prior
needs no bound.
"""

import numpy as np

from irtjax.estimation.item_step import log_prior
from irtjax.estimation.problem import Layout, Specification, layout
from irtjax.estimation.quadrature import item_score
from irtjax.estimation.quadrature.point import Point, moved_by
from irtjax.item_models.protocol import Items
from irtjax.populations.normal import Population
from irtjax.types import Bool, Float

MOST_CHANGE = 4.0  # of any parameter in one step
MOST_SHARE = 0.3  # of slope or intercept, where that is more: a curve like a step hardly changes when it is steeper
FIRST_CHANGE = 1.0  # of any parameter in a step without memory, which may overshoot from afar
NO_ROOM = 1e-13  # of a log standard deviation, from its bound
SHORTER = 0.3  # of a step that leads down
FORESEEN = 1.0, 2.0  # nats, and times what is foreseen, that an item may lose more by a step than is foreseen
CLOSER = 6  # shortenings of items that lose more


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
        result[places.log_sd[free]] = np.where(room > NO_ROOM, room, 0.0)
    return result


def longest(values: Float[np.ndarray, " P"], specification: Specification, places: Layout) -> Float[np.ndarray, " P"]:
    """The most that each parameter (P,) may change by: `MOST_CHANGE`, or a share of slopes and intercepts.

    Others, such as the logit of an asymptote at 0, run off to where no likelihood tells them from infinity.
    """
    result = np.full(places.size, MOST_CHANGE)
    at = places.items[:, : specification.dims + 1]
    at = at[at >= 0]
    result[at] = np.maximum(MOST_CHANGE, MOST_SHARE * np.abs(values[at]))
    return result


def shortened(step: np.ndarray, most: np.ndarray, places: Layout) -> np.ndarray:
    """A step in which no parameter changes by more than `most` (P,).

    That of each item is shortened as a whole. One that runs off to infinity must not hold up the others.
    """
    share = most / np.maximum(np.abs(step), most)
    own = (places.items >= 0) & (places.items < places.num_own)
    of_item = np.where(own, share[places.items], 1.0).min(axis=1)
    share[places.items[own]] = np.broadcast_to(of_item[:, None], own.shape)[own]
    return share * step


def shortened_where_unforeseen(
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
            found = _expected(moved_by(point, step, places)[0], point, specification) - before
            beyond = ~(found >= foreseen - nats - times * np.abs(foreseen))
            if not beyond.any():
                break
            step = _shorter(step, own & beyond[:, None], places)
    return step


def shortened_where_it_loses(
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


def _expected(items: Items, point: Point, specification: Specification) -> Float[np.ndarray, " I"]:
    """Expected log-likelihood of each item under the posteriors of a point, and log-prior."""
    return item_score.log_likelihood(items, point.counts) + log_prior(items, specification)


def _shorter(step: np.ndarray, which: Bool[np.ndarray, "I K"], places: Layout) -> np.ndarray:
    """A step that is shorter in some parameters of items."""
    result = step.copy()
    result[places.items[which]] *= SHORTER
    return result
