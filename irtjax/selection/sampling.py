"""Samples of items that estimate one ability: how many items, which ones, and how far the estimate may be off."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.kernels.ability import Ability
from irtjax.kernels.ability_modes import ability_1pl
from irtjax.kernels.models import information_1pl, probability_1pl
from irtjax.populations.normal import Population
from irtjax.types import AnyArray, Float, Int

GROUP_SIZE = 64  # neighbours in difficulty that are drawn with one weight
MIN_WEIGHT = 0.1  # of an item; a network may fail where the model is certain that it does not


class Sample(NamedTuple):
    """Items of a sample in the order of difficulty.

    Attributes:
        places: (M,) int32 among the items in ascending order of difficulty; an item may be there more than once.
        weights: (M,) how many items each stands for; 0 from `num_drawn` on.
        num_drawn: scalar int32.
    """

    places: jax.Array
    weights: jax.Array
    num_drawn: jax.Array


class _Groups(NamedTuple):
    """Groups of `GROUP_SIZE` neighbours in difficulty that are drawn with one weight, so that no draw reads all items.

    Attributes:
        size: (K,) items; the last group may be smaller.
        information: (K,) of an item in the middle of the group, at θ.
        weight: (K,) that an item is drawn with.
    """

    size: jax.Array
    information: jax.Array
    weight: jax.Array


def _groups(ascending: jax.Array, ability: jax.Array) -> _Groups:
    first = np.arange(0, ascending.size, GROUP_SIZE)
    size = np.minimum(GROUP_SIZE, ascending.size - first)
    ability = jnp.clip(ability, ascending[0], ascending[-1])
    information = information_1pl(ability, ascending[first + size // 2])
    return _Groups(jnp.asarray(size), information, jnp.sqrt(information) + MIN_WEIGHT)


def size_for(
    ascending: Float[jax.Array, " N"],
    ability: Float[jax.Array, ""] | float,
    standard_error: Float[jax.Array, ""] | float,
    precision: Float[jax.Array, ""] | float = 0.0,
) -> jax.Array:
    """How many items a sample must have for a given standard error of the ability, against answers to all items.

    From m items drawn as in `draw`, the error is the square root of Σ (s_i - 1 + 1/(3 s_i)) P_i (1 - P_i) / (I + τ)².
    There, I is the information of all items, τ that of the population, and s_i = Σ w / (m w_i), as long as no s_i is
    below 1.

    Args:
        ascending: (N,) difficulties in ascending order, logits.
        ability: θ; beyond the items, infinite values included, that of the nearest item counts.
        standard_error: in logits.
        precision: τ, 1/σ² of a MAP estimate's population, 0 for maximum likelihood.

    Returns:
        Scalar, not rounded.
    """
    size, information, weight = _groups(ascending, jnp.asarray(ability))
    everything, total = (size * information).sum(), (size * weight).sum()
    # spread/m + shared m = reach, the smaller root
    spread, shared = total * (size * information / weight).sum(), (size * information * weight).sum() / (3 * total)
    reach = everything + (standard_error * (everything + precision)) ** 2
    return 2 * spread / (reach + jnp.sqrt(jnp.maximum(reach**2 - 4 * spread * shared, 0.0)))


def draw(
    key: jax.Array,
    ascending: Float[jax.Array, " N"],
    ability: Float[jax.Array, ""] | float,
    num_drawn: Int[jax.Array, ""] | int,
    capacity: int,
) -> Sample:
    """Items to ask a network whose ability was last seen at θ.

    Item i is drawn with probability proportional to w_i = sqrt(P_i (1 - P_i)) + `MIN_WEIGHT` at θ. But for the added
    minimum, this minimises the variance of the weighted estimate. One item is drawn from each of m strata of equal
    weight along the difficulties; strata may end within an item. An item stands for s_i = 1/π_i items, π_i being its
    probability of being drawn. w_i is taken in the middle of the item's group of `GROUP_SIZE` neighbours.

    Args:
        key: of the draws.
        ascending: (N,) difficulties in ascending order, logits.
        ability: θ, as in `size_for`.
        num_drawn: m.
        capacity: M, the size of the arrays, at least m.
    """
    size, _, weight = _groups(ascending, jnp.asarray(ability))
    ends, at = jnp.cumsum(size * weight), jnp.arange(capacity)
    positions = (at + jax.random.uniform(key, (capacity,))) / num_drawn * ends[-1]
    group = jnp.searchsorted(ends, positions, side="right").clip(0, size.size - 1)
    within = (positions - ends[group]) / weight[group] + size[group]
    places = group * GROUP_SIZE + within.astype(jnp.int32).clip(0, size[group] - 1)
    weights = jnp.where(at < num_drawn, ends[-1] / (num_drawn * weight[group]), 0)
    return Sample(places, weights, jnp.asarray(num_drawn))


def score(
    sample: Sample,
    right: Int[AnyArray, " M"],
    ascending: Float[jax.Array, " N"],
    start: Float[jax.Array, ""] | float,
    population: Population | None,
) -> Ability:
    """The ability of one network from its scored answers to its sample, and the error of sampling.

    Args:
        sample: M items.
        right: (M,) 1 right, 0 wrong.
        ascending: (N,) difficulties in ascending order, logits.
        start: where the search for the ability begins.
        population: None for maximum likelihood, else the prior of a MAP estimate.

    Returns:
        Scalars, as in `estimate_ability`.
    """
    places, weights, _ = sample
    difficulty = ascending[places]
    theta = ability_1pl(right, difficulty, population, start, weights).ability
    variances = jnp.where(weights >= 1, weights * (weights - 1) + 1 / 3, weights**3 / 3) * (weights > 0)
    variance = (variances * (right - probability_1pl(theta, difficulty)) ** 2).sum()
    information = (weights * information_1pl(theta, difficulty)).sum()
    if population is not None:
        information += population.sd**-2.0
    error = jnp.sqrt(variance) / information
    return Ability(theta, jnp.where(jnp.isfinite(theta), error, jnp.inf))
