"""SQUAREM: squared extrapolation of slowly converging fixed-point iterations (Varadhan and Roland 2008)."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

LONGEST_STEP = 64.0


def cycle(step: Callable[[Any], tuple[Any, float]], state: Any) -> tuple[Any, float, float]:
    """Three steps of a fixed-point iteration, the third from an extrapolated point.

    With r the first step and v the change from the first to the second, the point is x - 2 α r + α² v, with
    α = -|r|/|v|, at least 1 in size. It is left for the plain second step where its objective is lower than that the
    second step began at, so the objective never falls.

    Args:
        step: state -> (next state, objective at the state it was given).
        state: a pytree of NumPy arrays; entries that do not move may be infinite.

    Returns:
        The new state, the largest change of any entry in the first step, and the objective the second began at.
    """
    first, _ = step(state)
    second, reached = step(first)
    r = jax.tree.map(_difference, first, state)
    v = jax.tree.map(lambda new, old, r: _difference(new, old) - r, second, first, r)
    length = np.clip(np.sqrt(_squared_norm(r) / max(_squared_norm(v), 1e-300)), 1.0, LONGEST_STEP)
    third, objective = step(jax.tree.map(lambda x, r, v: x + 2 * length * r + length**2 * v, state, r, v))
    change = max(np.abs(leaf).max() for leaf in jax.tree.leaves(r))
    better = np.isfinite(objective) and objective >= reached
    return (third if better else second), change, reached


def _difference(new: np.ndarray, old: np.ndarray) -> np.ndarray:
    return np.subtract(new, old, out=np.zeros_like(new), where=new != old)  # an infinity minus itself is no change


def _squared_norm(tree: Any) -> float:
    return sum((leaf**2).sum() for leaf in jax.tree.leaves(tree))
