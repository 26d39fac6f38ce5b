"""Where a function of ability falls through zero: on a grid first, then in the interval that the grid gives."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.types import AnyArray, Float

FARTHEST = 1e6  # units from the origin that a grid reaches
NUM_POINTS = 241
MAX_STEPS = 200
TOLERANCE = {jnp.dtype("float32"): 1e-6, jnp.dtype("float64"): 1e-11}  # of a root, in units or of its size

Function = Callable[[jax.Array], jax.Array]


def grid(dtype: jnp.dtype) -> jax.Array:
    """(Q,) points, even near the origin and in even ratios far from it, so that no cluster of items is out of reach."""
    end = np.arcsinh(FARTHEST)
    return jnp.asarray(np.sinh(np.linspace(-end, end, NUM_POINTS)), dtype)


def interval(slope: Float[AnyArray, " Q"], height: Float[AnyArray, " Q"]) -> jax.Array:
    """The place before which of the points a slope falls through zero, where a height is greatest; 0 if nowhere."""
    falls = (slope[:-1] > 0) & (slope[1:] <= 0)
    return jnp.argmax(jnp.where(falls, jnp.maximum(height[:-1], height[1:]), -jnp.inf))


class _Bracket(NamedTuple):
    """The last point, one across the root, the one before these, their values, and where to look next."""

    a: jax.Array
    b: jax.Array
    c: jax.Array
    at_a: jax.Array
    at_b: jax.Array
    at_c: jax.Array
    share: jax.Array
    done: jax.Array
    steps: jax.Array


def root_between(function: Function, low: jax.Array, high: jax.Array) -> jax.Array:
    """The root of a function that is above 0 at `low` and at most 0 at `high`.

    By inverse quadratic interpolation where it is safe, else by halves (Chandrupatla 1997): no derivative is needed,
    and the root never leaves the interval.
    """
    tolerance = TOLERANCE[low.dtype]

    def step(now: _Bracket) -> _Bracket:
        x = now.a + now.share * (now.b - now.a)
        value = function(x)
        same = (value > 0) == (now.at_a > 0)
        c, at_c = jnp.where(same, now.a, now.b), jnp.where(same, now.at_a, now.at_b)
        b, at_b = jnp.where(same, now.b, now.a), jnp.where(same, now.at_b, now.at_a)
        best = jnp.where(jnp.abs(value) < jnp.abs(at_b), x, b)
        width = jnp.maximum(jnp.abs(b - x), jnp.finfo(x.dtype).tiny)
        least = tolerance * (1 + jnp.abs(best)) / width
        share = jnp.clip(
            _interpolated(x, b, c, value, at_b, at_c), jnp.minimum(least, 0.5), jnp.maximum(1 - least, 0.5)
        )
        done = (least > 0.5) | (value == 0)
        return _Bracket(x, b, c, value, at_b, at_c, share, done, now.steps + 1)

    ends = function(low), function(high)
    start = _Bracket(
        high, low, low, ends[1], ends[0], ends[0], jnp.full_like(low, 0.5), ends[1] == 0, jnp.zeros((), int)
    )
    end = jax.lax.while_loop(lambda now: ~now.done & (now.steps < MAX_STEPS), step, start)
    return jnp.where(jnp.abs(end.at_a) <= jnp.abs(end.at_b), end.a, end.b)


def _interpolated(
    a: jax.Array, b: jax.Array, c: jax.Array, at_a: jax.Array, at_b: jax.Array, at_c: jax.Array
) -> jax.Array:
    """The share of the way from a to b at which a quadratic in the values is 0; half where it says little."""

    def ratio(x: jax.Array, y: jax.Array) -> jax.Array:
        return x / jnp.where(y == 0, 1, y)

    xi, phi = ratio(a - b, c - b), ratio(at_a - at_b, at_c - at_b)
    quadratic = ratio(at_a, at_b - at_a) * ratio(at_c, at_b - at_c)
    quadratic += ratio(c - a, b - a) * ratio(at_a, at_c - at_a) * ratio(at_b, at_c - at_b)
    safe = (c != b) & (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
    return jnp.where(safe & jnp.isfinite(quadratic), quadratic, 0.5)
