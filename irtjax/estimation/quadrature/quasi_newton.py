"""Limited-memory quasi-Newton directions (Nocedal 1980) on top of a preconditioner that is given at each point.

The information of complete data, item by item, is known at each point and says nearly everything about the curvature
of the marginal likelihood. What it lacks is what items share: the scale, and the trade of one item against others. The
last steps and the changes of the gradient along them supply that.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from irtjax.types import Bool, Float

PAIRS = 20  # that are remembered
LEAST_CURVATURE = 1e-10  # cosine of a step and the fall of the gradient along it, below which they say nothing


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
        shares.append((step @ rest) / (step @ fall))
        rest = rest - shares[-1] * fall
    result = precondition(rest)
    for step, fall, share in zip(memory.steps, memory.falls, reversed(shares), strict=True):
        result = result + step * (share - (fall @ result) / (step @ fall))
    return result
