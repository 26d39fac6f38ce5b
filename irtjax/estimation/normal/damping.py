"""Damped steps: a fixed-point iteration whose steps turn back and forth is slowed down until they no longer do."""

from typing import NamedTuple

from irtjax.types import AnyArray, Float


class Damping(NamedTuple):
    """What is known of the steps of N items or subjects.

    Attributes:
        last: (N, K) the last step made.
        share: (N,) of a proposed step that is made.
    """

    last: AnyArray
    share: AnyArray


def undamped(start: Float[AnyArray, "N K"]) -> Damping:
    """The damping of steps of which none has been made yet."""
    xp = start.__array_namespace__()
    return Damping(xp.zeros_like(start), xp.ones_like(start[:, 0]))


def damp(damping: Damping, step: Float[AnyArray, "N K"]) -> tuple[Damping, Float[AnyArray, "N K"]]:
    """The share of each step to make: half of the last one where the step turns back, else more again, up to 1.

    A step that turns back by a share r of the last one leaves r of what was to go if it is made in full, and (1 - r)/2
    if half of it is made: that is less only where r is more than a third.
    """
    xp = step.__array_namespace__()
    back = (step * damping.last).sum(axis=1) < -(damping.last**2).sum(axis=1) / 3
    share = xp.where(back, 0.5 * damping.share, xp.minimum(1.0, 1.4 * damping.share))
    step = share[:, None] * step
    return Damping(step, share), step
