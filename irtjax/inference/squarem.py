"""SQUAREM: squared extrapolation of slowly converging fixed-point iterations (Varadhan and Roland 2008)."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

LONGEST_STEP = 64.0


def cycle(step: Callable[[Any], tuple[Any, jax.Array]], state: Any) -> tuple[Any, jax.Array, jax.Array]:
    """Three steps of a fixed-point iteration, the third from an extrapolated point.

    With r the first step and v the change from the first to the second, the point is x - 2 α r + α² v, with
    α = -|r|/|v|, at least 1 in size. It is left for the plain second step where its objective is lower than that the
    second step began at, so the objective never falls.

    Args:
        step: state -> (next state, objective at the state it was given); jitted by the caller, so that the three steps
            are compiled as one.
        state: a pytree of floats; entries that do not move may be infinite.

    Returns:
        The new state, the largest change of any entry in the first step, and the objective the second began at.
    """
    first, _ = step(state)
    second, reached = step(first)
    jump, change = _extrapolate(state, first, second)
    third, objective = step(jump)
    better = bool(jnp.isfinite(objective) & (objective >= reached))
    return (third if better else second), change, reached


@jax.jit
def _extrapolate(state, first, second):
    r = jax.tree.map(_difference, first, state)
    v = jax.tree.map(lambda new, old: new - old, jax.tree.map(_difference, second, first), r)
    length = jnp.clip(jnp.sqrt(_squared_norm(r) / jnp.maximum(_squared_norm(v), 1e-300)), 1.0, LONGEST_STEP)
    jump = jax.tree.map(lambda x, r, v: x + 2 * length * r + length**2 * v, state, r, v)
    return jump, jnp.stack([jnp.abs(leaf).max() for leaf in jax.tree.leaves(r)]).max()


def _difference(new, old):
    return jnp.where(new == old, 0.0, new - old)  # an infinity minus itself is no change


def _squared_norm(tree):
    return sum((leaf**2).sum() for leaf in jax.tree.leaves(tree))
