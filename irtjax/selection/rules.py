"""Rules: the training examples that suit a network of a given ability, as a range in ascending order of difficulty."""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from irtjax.types import Float, Int

DENSITY_RADIUS = 0.25  # logits on both sides of an ability, within which items are counted for their density
MAX_STANDARD_ERROR = 0.5  # logits; an ability is never estimated less precisely than this


class Range(NamedTuple):
    """Training examples by their place in ascending order of difficulty.

    Attributes:
        first: place of the easiest, scalar int32.
        num_examples: scalar int32.
    """

    first: jax.Array
    num_examples: jax.Array


Rule = Callable[[jax.Array, jax.Array], Range]  # (difficulties in ascending order, ability) -> what to train on


def up_to_ability(ascending: Float[jax.Array, " N"], ability: Float[jax.Array, ""] | float) -> Range:
    """DDaCLAE: items no harder than the network is able, b ≤ θ (Lalor and Yu 2020; Lalor 2020, algorithm 3).

    Its text has ≤, line 4 of the algorithm <. They differ where an item is exactly as hard as the network is able.

    Args:
        ascending: (N,) difficulties in ascending order, logits.
        ability: θ, logits.
    """
    return Range(jnp.int32(0), jnp.searchsorted(ascending, ability, side="right").astype(jnp.int32))


def beyond_ability(ascending: Float[jax.Array, " N"], ability: Float[jax.Array, ""] | float) -> Range:
    """Hard-example mining: items no easier than the network is able, b ≥ θ; arguments as in `up_to_ability`."""
    first = jnp.searchsorted(ascending, ability, side="left").astype(jnp.int32)
    return Range(first, ascending.size - first)


@dataclasses.dataclass(frozen=True)
class Window:
    """Items near the ability, |b - θ| ≤ `half_width` logits; arguments of a call as in `up_to_ability`."""

    half_width: float

    def __call__(self, ascending: Float[jax.Array, " N"], ability: Float[jax.Array, ""] | float) -> Range:
        """The range."""
        first = jnp.searchsorted(ascending, ability - self.half_width, side="left").astype(jnp.int32)
        return Range(first, jnp.searchsorted(ascending, ability + self.half_width, side="right") - first)


def widen(selected: Range, num_examples: Int[jax.Array, ""], num_available: int) -> Range:
    """A range of `num_examples` about the middle of the selected one, moved to lie within those available."""
    middle = selected.first + selected.num_examples // 2
    return Range(jnp.clip(middle - num_examples // 2, 0, num_available - num_examples), num_examples)


def at_least_a_minibatch(
    rule: Rule,
    ascending: Float[jax.Array, " N"],
    ability: Float[jax.Array, ""],
    min_examples: Int[jax.Array, ""],
    batch_size: int,
) -> tuple[Range, jax.Array]:
    """What a rule selects or, where that is less than a minibatch, `min_examples` about the middle of it.

    Training on a handful of the easiest, often of a single class, can leave the ability where it was: the number
    doubles each time it is used.

    Args:
        rule: of `STRATEGIES` (`irtjax.selection.strategies`).
        ascending: (N,) difficulties in ascending order, logits.
        ability: θ, logits.
        min_examples: in the first epoch the smaller of `batch_size` and N, later what the epoch before left.
        batch_size: examples of a minibatch; where there are fewer in all, N counts.

    Returns:
        The range, and `min_examples` of the next epoch.
    """
    selected, available = rule(ascending, ability), ascending.size
    too_few = selected.num_examples < min(batch_size, available)
    wider = widen(selected, min_examples, available)
    selected = jax.tree.map(functools.partial(jnp.where, too_few), wider, selected)
    return selected, jnp.where(too_few, jnp.minimum(2 * min_examples, available), min_examples)


def required_se(
    rule: Rule,
    ascending: Float[jax.Array, " N"],
    share_error: Float[jax.Array, ""] | float,
    ability: Float[jax.Array, ""] | float,
) -> jax.Array:
    """Standard error of the ability, in logits, at which the share of the data that a rule selects has a given one.

    Each end of the selected range moves with the ability, by as many items per logit as there are within
    `DENSITY_RADIUS` of θ. Where hardly an item is near, `MAX_STANDARD_ERROR`.

    Args:
        rule: `up_to_ability`, `beyond_ability` or a `Window`.
        ascending: (N,) difficulties in ascending order, logits.
        share_error: standard error of the share, 0 to 1.
        ability: θ, logits; beyond the items, that of the nearest item counts.
    """
    ability = jnp.clip(ability, ascending[0], ascending[-1])
    low, high = rule(ascending, ability - DENSITY_RADIUS), rule(ascending, ability + DENSITY_RADIUS)
    first = jnp.abs(high.first - low.first)
    end = jnp.abs(high.first + high.num_examples - low.first - low.num_examples)
    moved = (first + end) / (2 * DENSITY_RADIUS * ascending.size)
    return jnp.minimum(share_error / jnp.maximum(moved, jnp.finfo(jnp.float32).tiny), MAX_STANDARD_ERROR)
