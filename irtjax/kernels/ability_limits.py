"""Where the likelihood of an ability in several dimensions has no maximum: directions in which it rises without end.

The probability of an answer rises along a direction d where s a·d > 0, with a the slopes of the item and s = 1 for a
right answer, -1 for a wrong one. If s_i a_i·d >= 0 for all answers and > 0 for some, the likelihood rises from every
point along d, and has no maximum (Albert and Anderson 1984: the answers are separated). Without asymptotes this is the
only way.

Whether there is such a d is the question whether the cone of the vectors s_i a_i is a linear subspace, and so whether
it holds the opposite of their sum. Non-negative least squares (Lawson and Hanson 1974) answer it in a few steps of
D × D, exactly but for rounding, and in compiled programs for thousands of subjects at once, as linear programming does
not.
"""

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.kernels.models import ItemParameters, log_probabilities
from irtjax.kernels.precision import in_full_precision
from irtjax.types import AnyArray, Bool, Float, Int

ROUNDINGS = 1000.0  # within which a number counts as 0, if it may be 1
MOST_STEPS = 30  # of non-negative least squares, for each dimension

Steps = tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]  # places, used, weights, a state, a count


class Limit(NamedTuple):
    """Where the likelihood is highest.

    Attributes:
        held: (I,) answers that hold the ability back; the others are as probable as can be in the limit.
        direction: (D,) to which it goes, of any length; 0 in dimensions that stay.
    """

    held: Bool[AnyArray, " I"]
    direction: Float[AnyArray, " D"]


@in_full_precision
def separation(responses: Int[AnyArray, " I"], slope: Float[AnyArray, "I D"]) -> Limit:
    """The answers that no direction of ever higher likelihood has to do with, and such a direction.

    The direction is the point of the cone {d: s_i a_i·d >= 0} that is nearest to Σ s_i a_i/|a_i|; in dimensions in
    which it is 0, that of the answers which it leaves.

    Args:
        responses: (I,) 1 right, 0 wrong, negative missing.
        slope: (I, D).
    """
    dims, least = slope.shape[1], ROUNDINGS * jnp.finfo(slope.dtype).eps
    length = jnp.sqrt((slope**2).sum(axis=1))
    held = (responses >= 0) & (length > 0)
    sign = jnp.where(responses == 1, 1, -1).astype(slope.dtype)
    units = (sign / jnp.where(length > 0, length, 1))[:, None] * slope

    def leave(_: int, limit: Limit) -> Limit:
        held, direction = limit
        rise = _nearest_rise(jnp.where(held[:, None], units, 0))
        size = jnp.sqrt((rise**2).sum())
        found = size > least * jnp.maximum(held.sum(), 1)
        rise = jnp.where(found, rise / jnp.where(found, size, 1), 0)
        direction = jnp.where(jnp.abs(direction) > least, direction, rise)
        return Limit(held & ~(units @ rise > least), direction)

    start = Limit(held, jnp.zeros(dims, slope.dtype))
    held, direction = jax.lax.fori_loop(0, dims, leave, start)  # each time they are of one dimension less
    return Limit(held, jnp.where(jnp.abs(direction) > least, direction, 0))


def _nearest_rise(units: Float[jax.Array, "I D"]) -> Float[jax.Array, " D"]:
    """The point of {d: c_i·d >= 0} that is nearest to Σ c_i; 0 if the cone of the c_i is a subspace.

    It is Σ c_i + Σ μ_i c_i, with μ >= 0 so that it is shortest.
    """
    dims, total = units.shape[1], units.sum(axis=0)
    least = ROUNDINGS * jnp.finfo(units.dtype).eps * jnp.maximum(jnp.sqrt((units**2).sum()), 1)

    def solve(places: jax.Array, used: jax.Array) -> tuple[jax.Array, jax.Array]:
        # by singular values, not normal equations: two directions may be all but opposite
        left, sizes, right = jnp.linalg.svd(jnp.where(used[:, None], units[places], 0).T)
        real = sizes > 10 * dims * jnp.finfo(units.dtype).eps
        parts = jnp.where(real, left.T @ total, 0)
        weights = -right.T @ (parts / jnp.where(real, sizes, 1))
        return jnp.where(used, weights, 0), total - left @ parts

    def shrink(carry: Steps) -> Steps:
        places, used, weights, wanted, count = carry
        bad = used & (wanted <= 0)
        share = jnp.where(bad, weights / jnp.where(bad, weights - wanted, 1), jnp.inf)
        weights = weights + jnp.minimum(share.min(), 1) * (wanted - weights)
        used &= ~(bad & (share <= share.min()))
        return places, used, jnp.where(used, weights, 0), solve(places, used)[0], count + 1

    def step(carry: Steps) -> Steps:
        places, used, weights, _, count = carry
        falls = -(units @ solve(places, used)[1])
        falls = falls.at[places].set(jnp.where(used, -jnp.inf, falls[places]))
        best, slot = jnp.argmax(falls).astype(jnp.int32), jnp.argmin(used)
        going = (falls[best] > least) & ~used.all()
        new_places, new_used = places.at[slot].set(best), used.at[slot].set(True)
        start = new_places, new_used, weights.at[slot].set(0), solve(new_places, new_used)[0], count
        after = jax.lax.while_loop(
            lambda inner: (inner[1] & (inner[3] <= 0)).any() & (inner[4] < count + dims), shrink, start
        )
        chosen = after[0], after[1], after[3]
        before = places, used, weights
        places, used, weights = (jnp.where(going, new, old) for new, old in zip(chosen, before, strict=True))
        return places, used, weights, going, count + 1

    begin = (
        jnp.zeros(dims, jnp.int32),
        jnp.zeros(dims, bool),
        jnp.zeros(dims, units.dtype),
        jnp.asarray(True),
        jnp.zeros((), jnp.int32),
    )
    end = jax.lax.while_loop(lambda carry: carry[3] & (carry[4] < MOST_STEPS * dims), step, begin)
    return solve(*end[:2])[1]


@in_full_precision
def open_space(held: Bool[AnyArray, " I"], slope: Float[AnyArray, "I D"]) -> Float[jax.Array, "D D"]:
    """The projection on the directions on which no held answer depends; 0 if these answers span all dimensions."""
    length = jnp.sqrt((slope**2).sum(axis=1))
    units = jnp.where((held & (length > 0))[:, None], slope / jnp.where(length > 0, length, 1)[:, None], 0)
    values, vectors = jnp.linalg.eigh(units.T @ units)
    nothing = values <= ROUNDINGS * jnp.finfo(slope.dtype).eps * jnp.maximum(values.max(), 1)
    return (vectors * nothing[None, :].astype(slope.dtype)) @ vectors.T


@in_full_precision
def asymptotic(responses: Int[AnyArray, " I"], items: ItemParameters, limit: Limit, z: Float[AnyArray, " D"]) -> Limit:
    """The limit after a look along rays from a maximum: with asymptotes, one may lead to a likelihood as high.

    Along a ray d an item with a·d != 0 comes to its upper or lower asymptote. The rays are those of a grid, among
    which are all that go along dimensions: where each item belongs to one dimension, nothing is overlooked.

    Args:
        responses: (I,) 1 right, 0 wrong, negative missing.
        items: parameters of the I items.
        limit: of `separation`.
        z: (D,) the maximum of the answers that are held.
    """
    dims, dtype = items.slope.shape[1], items.slope.dtype
    steps = (-2, -1, 0, 1, 2) if dims < 4 else (-1, 0, 1)
    rays = jnp.asarray(np.array([ray for ray in itertools.product(steps, repeat=dims) if any(ray)]), dtype)
    rising = rays @ items.slope.T  # (C, I)
    least = ROUNDINGS * jnp.finfo(dtype).eps * jnp.abs(items.slope).max(axis=1)
    moved = limit.held[None, :] & (jnp.abs(rising) > least[None, :])
    right, wrong = (x[0] for x in log_probabilities(items, z[None, :])[:2])
    here = jnp.where(responses == 1, right, wrong)
    sign = jnp.where(responses == 1, 1, -1).astype(dtype)
    above, below = (jax.nn.log_sigmoid(sign * end) for end in (items.upper, items.lower))
    gains = jnp.where(rising > 0, above[None, :], below[None, :]) - here[None, :]
    gain = jnp.where(moved, gains, 0).sum(axis=1)
    gain = jnp.where(moved.any(axis=1), gain, -jnp.inf)
    best = jnp.argmax(gain)
    rounding = 10 * jnp.finfo(dtype).eps * jnp.abs(jnp.where(limit.held, here, 0).sum())
    better = gain[best] >= -rounding
    direction = jnp.where(limit.direction != 0, limit.direction, jnp.where(better, rays[best], 0))
    return Limit(limit.held & ~(better & moved[best]), direction)
