"""Which item is asked, given what each would tell: quotas of groups, starts, and control of exposure."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from irtjax.evaluation.adaptive_options import Progressive, Randomesque
from irtjax.types import AnyArray, Float, Int

NO_ITEM = -1
# of the bank, side by side: XLA's argmax carries pairs of numbers from item to item, and is not vectorised on a CPU
PARTS = 8


class Design(NamedTuple):
    """What a choice among I items in G groups has to observe.

    Attributes:
        groups: (I,) int32 group of each item.
        quotas: (G,) share of each group in a test.
        first: (S,) int32 items that are asked first, in order.
        in_band: (I,) bool items that the first may be; (0,) for the choice of the rule.
    """

    groups: jax.Array
    quotas: jax.Array
    first: jax.Array
    in_band: jax.Array


class Remaining(NamedTuple):
    """What was asked, and what may still be.

    Attributes:
        number: how many items were asked.
        open: (I,) bool items that may still be asked.
        asked: (G,) int32 items that were asked, by group.
        left: (G,) int32 items that may still be asked, by group.
    """

    number: jax.Array
    open: jax.Array
    asked: jax.Array
    left: jax.Array

    def without(self, items: Int[AnyArray, " K"], design: Design) -> "Remaining":
        """After some items were asked; negative ones are none."""
        real = items >= 0
        groups = jnp.where(real, design.groups[items], design.quotas.size)
        return Remaining(
            number=self.number + real.sum(dtype=jnp.int32),
            open=self.open.at[jnp.where(real, items, self.open.size)].set(False, mode="drop"),
            asked=self.asked.at[groups].add(1, mode="drop"),
            left=self.left.at[groups].add(-self.open[items].astype(jnp.int32), mode="drop"),
        )


def choose_item(
    gain: Float[AnyArray, " I"],
    remaining: Remaining,
    design: Design,
    exposure: Randomesque | Progressive | None,
    max_items: int,
    key: jax.Array,
) -> Int[jax.Array, ""]:
    """The item to ask next, -1 for none.

    Args:
        gain: (I,) criterion of the rule.
        remaining: items.
        design: quotas and starts.
        exposure: how far to stray from the best item.
        max_items: of a test.
        key: of this choice.
    """
    number, opened, asked, left = remaining
    allowed = opened
    if design.quotas.size > 1:  # the group that is most behind its quota (Kingsbury and Zara 1989)
        behind = design.quotas - asked / jnp.maximum(number, 1).astype(design.quotas.dtype)
        allowed = opened & (design.groups == jnp.argmax(jnp.where(left > 0, behind, -jnp.inf)))
    if isinstance(exposure, Progressive):
        share = number.astype(gain.dtype) / max_items
        noise = jax.random.uniform(key, gain.shape, gain.dtype) * jnp.where(allowed, gain, 0).max()
        gain = (1 - share) * noise + share * gain
    if isinstance(exposure, Randomesque):
        best = jax.lax.top_k(jnp.where(allowed, gain, -jnp.inf), exposure.best)[1]
        item = best[jax.random.randint(key, (), 0, jnp.clip(allowed.sum(), 1, best.size))]
    else:
        item = highest(gain, allowed)
    if design.in_band.size:
        possible = design.in_band & allowed
        drawn = highest(jax.random.uniform(jax.random.fold_in(key, 0), gain.shape, gain.dtype), possible)
        item = jnp.where((number == 0) & possible.any(), drawn, item)
    if design.first.size:
        given = design.first[jnp.minimum(number, design.first.size - 1)]
        item = jnp.where((number < design.first.size) & opened[given], given, item)
    return jnp.where((number < max_items) & (left.sum() > 0), item, NO_ITEM).astype(jnp.int32)


def highest(gain: Float[AnyArray, " I"], allowed: AnyArray | bool = True) -> Int[jax.Array, ""]:
    """Position of the largest gain among the items that are allowed, the first of equal ones; gains are finite."""
    value = jnp.where(allowed, gain, -jnp.inf)
    size = -(-gain.size // PARTS)
    value = jnp.pad(value, (0, PARTS * size - gain.size), constant_values=-jnp.inf)
    places = jnp.arange(size, dtype=jnp.int32)
    best, place = value[:size], places
    for part in range(1, PARTS):
        other = value[part * size : (part + 1) * size]
        more = other > best
        best, place = jnp.where(more, other, best), jnp.where(more, places + part * size, place)
    return jnp.where(best == best.max(), place, gain.size - 1).min()
