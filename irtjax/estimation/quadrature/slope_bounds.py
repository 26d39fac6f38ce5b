"""How steep a curve the nodes can tell, and the items whose likelihood still rises there.

The likelihood of few answers may have no maximum: an item that separates the subjects of a sample into two groups is
the likelier the steeper its curve is. Its slope would grow without end, and take every other step along. It is
therefore held where nodes can no longer tell it from a step (`kernels.quadrature.steepest`). A slope under a prior
needs no bound.
"""

import dataclasses

import numpy as np

from irtjax.estimation.problem import Layout, Specification, as_array, layout
from irtjax.item_models.protocol import Items
from irtjax.types import Bool, Float


def bounds(
    specification: Specification, places: Layout, sd: Float[np.ndarray, " D"], most_slope: float
) -> Float[np.ndarray, " P"]:
    """The largest absolute value of each parameter: that of free slopes without a prior, in units of 1 / `sd`."""
    result = np.full(places.size, np.inf)
    dims = specification.dims
    free = places.items[:, :dims] >= 0
    bounded = free & (np.asarray(specification.prior_precision)[:, :dims] == 0)
    result[places.items[:, :dims][bounded]] = np.broadcast_to(most_slope / np.asarray(sd), bounded.shape)[bounded]
    return result


def as_vector(items: Items, places: Layout) -> Float[np.ndarray, " P"]:
    """The free parameters of items in the order of a layout; 0 for the population."""
    result = np.zeros(places.size)
    free = places.items >= 0
    result[places.items[free]] = as_array(items)[free]
    return result


def held(
    values: Float[np.ndarray, " P"], gradient: Float[np.ndarray, " P"], most: Float[np.ndarray, " P"]
) -> Bool[np.ndarray, " P"]:
    """The parameters at their bounds from which the objective does not rise towards the inside."""
    return (np.abs(values) >= most) & (gradient * values >= 0)


def at_bounds(
    items: Items, specification: Specification, sd: Float[np.ndarray, " D"], most_slope: float
) -> Bool[np.ndarray, " I"]:
    """The items with a slope at its bound: if the objective is at rest, it has no maximum in it."""
    places = layout(specification)
    at = np.abs(as_vector(items, places)) >= bounds(specification, places, sd, most_slope)
    return ((places.items >= 0) & at[places.items]).any(axis=1)


def without(specification: Specification, places: Layout, held: Bool[np.ndarray, " P"]) -> Specification:
    """The specification in which the parameters that are held are not free."""
    if not held.any():
        return specification
    free = np.asarray(specification.free) & ~((places.items >= 0) & held[places.items])
    shared = np.asarray(specification.shared) & free[:, 0]
    return dataclasses.replace(specification, free=free, shared=shared, has_shared=bool(shared.any()))
