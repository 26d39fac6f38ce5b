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


def interval(slope: Float[AnyArray, "... Q"], height: Float[AnyArray, "... Q"]) -> jax.Array:
    """The point after which a slope falls through zero, where a height is greatest; the first if it does nowhere."""
    falls = (slope[..., :-1] > 0) & (slope[..., 1:] <= 0)
    return jnp.argmax(jnp.where(falls, jnp.maximum(height[..., :-1], height[..., 1:]), -jnp.inf), axis=-1)


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


def root_between(
    function: Function, ends: tuple[jax.Array, jax.Array], values: tuple[jax.Array, jax.Array]
) -> jax.Array:
    """Roots of functions between points, of any shape, at the first of which they are above 0, and not at the second.

    By inverse quadratic interpolation where it is safe, else by halves (Chandrupatla 1997): no derivative is needed,
    and the root never leaves the interval. Values at the ends are given.
    """
    (low, high), (at_low, at_high) = ends, values
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
        inside = jnp.minimum(least, 0.5)
        share = jnp.clip(_interpolated(x, b, c, value, at_b, at_c), inside, 1 - inside)
        new = x, b, c, value, at_b, at_c, share, (least > 0.5) | (value == 0)
        kept = [jnp.where(now.done, old, one) for old, one in zip(now[:-1], new, strict=True)]
        return now._replace(**dict(zip(_Bracket._fields, kept, strict=False)), steps=now.steps + 1)

    half, none = jnp.full_like(low, 0.5), jnp.zeros((), jnp.int32)
    start = _Bracket(high, low, low, at_high, at_low, at_low, half, at_high == 0, none)
    end = jax.lax.while_loop(lambda now: (~now.done).any() & (now.steps < MAX_STEPS), step, start)
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
