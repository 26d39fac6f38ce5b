"""The ability of networks in training: from a sample of their training items, as large as needed, or from all."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from irtjax.device_data import ANSWER_BLOCK, Data, classify, take
from irtjax.models import information_1pl, probability_1pl
from irtjax.own_embeddings import split as split_embeddings
from irtjax.scoring import Ability, Population, ability_1pl
from irtjax.training import Trainer

STANDARD_ERROR = 0.05  # logits
MOST = 128 * ANSWER_BLOCK  # items in a sample: a network far from all items would need them all
PEAK = 0.25  # greatest information of an item
FLOOR = 0.1  # least weight of an item: a network may fail where the model is certain that it does not


def pays(num_items: int, standard_error: float) -> bool:
    """Whether a sample can be much smaller than all items: the best of them, 1 / (`PEAK` SE²), are less than half."""
    return 2 / (PEAK * standard_error**2) < num_items


class Sample(NamedTuple):
    """Items of a sample in the order of difficulty.

    Attributes:
        places: (M,) int32 among the items in ascending order of difficulty; an item may be there more than once.
        weights: (M,) how many items each stands for; 0 from `count` on.
        count: scalar int32, how many were drawn.
    """

    places: jax.Array
    weights: jax.Array
    count: jax.Array


def draw(key: jax.Array, ascending: jax.Array, ability: jax.Array, standard_error: float, most: int) -> Sample:
    """Items to ask a network whose ability was last seen at θ.

    Item i is drawn with probability proportional to w_i = sqrt(P_i (1 - P_i)) + `FLOOR` at θ, which but for the floor
    minimises the variance of the weighted estimate: one from each of m strata of equal weight along the difficulties.
    It stands for 1/π_i items, π_i = m w_i / Σ w. Against answers to all items, whose information is I, the estimate has
    variance Σ (1/π_i - 1) P_i (1 - P_i) / I²; m is what makes it the square of the standard error.

    Args:
        key: of the draws.
        ascending: (N,) difficulties in logits, in ascending order.
        ability: θ; values beyond the items, infinite ones too, count as the nearest item's.
        standard_error: in logits, from which m follows.
        most: M, where m is at an end.
    """
    information = information_1pl(jnp.clip(ability, ascending[0], ascending[-1]), ascending)
    weights = jnp.sqrt(information) + FLOOR
    total = weights.sum()
    everything = information.sum()
    needed = total * (information / weights).sum() / (everything + (standard_error * everything) ** 2)
    count = jnp.clip(jnp.ceil(needed), 1, most)
    positions = (jnp.arange(most) + jax.random.uniform(key, (most,))) / count * total
    places = jnp.searchsorted(jnp.cumsum(weights), positions, side="right").clip(0, ascending.size - 1)
    stands_for = total / (count * weights[places])
    return Sample(places.astype(jnp.int32), jnp.where(jnp.arange(most) < count, stands_for, 0), count.astype(jnp.int32))


def ask_all(
    trainer: Trainer, parameters: jax.Array, data: Data, difficulty: jax.Array, population: Population | None = None
) -> tuple[Ability, jax.Array]:
    """As `ask`, from answers to all N training examples; (N,) difficulties in their own order, logits."""

    def ability_of(parameters):
        answers = classify(trainer.network, parameters, data.embeddings, data.train)
        return ability_1pl((answers == data.train.labels).astype(jnp.int8), difficulty, population)

    estimate = jax.vmap(ability_of)(parameters)
    return estimate, jnp.full(estimate.ability.shape, difficulty.size)


def ask(
    trainer: Trainer,
    keys: jax.Array,
    parameters: jax.Array,
    data: Data,
    order: jax.Array,
    ascending: jax.Array,
    last: jax.Array,
    population: Population | None = None,
    standard_error: float = STANDARD_ERROR,
) -> tuple[Ability, jax.Array]:
    """Abilities of G networks from their answers to samples of the training items, drawn anew at each call.

    As many blocks of items are answered as the network with the largest sample needs.

    Args:
        trainer: of the networks.
        keys: (G,) of the samples.
        parameters: of G networks.
        data: the task.
        order: (N,) training examples by ascending difficulty.
        ascending: (N,) their difficulties, logits.
        last: (G,) abilities that samples are drawn for, such as those of the epoch before.
        population: None for maximum likelihood, else the prior of a MAP estimate.
        standard_error: of the abilities, in logits, against those from answers to all items.

    Returns:
        Abilities (G,), and how many items each network was asked. Standard errors are those of sampling: how far the
        ability is from what answers to all items would give, sqrt(Σ s_i (s_i - 1) (y_i - P_i)²) / Σ s_i P_i (1 - P_i),
        s_i = 1/π_i the items that an answer stands for.
    """
    most = min(MOST, -(-order.size // ANSWER_BLOCK) * ANSWER_BLOCK)
    places, weights, count = jax.vmap(draw, (0, None, 0, None, None))(keys, ascending, last, standard_error, most)
    examples, level = order[places], jnp.zeros(places.shape, jnp.uint8)
    if trainer.buckets:  # those of like length side by side, what was not drawn at the end
        level = jnp.where(weights > 0, data.bucket[examples], len(trainer.buckets))
        by_length = jnp.argsort(level, axis=1)
        places, weights, examples, level = (
            jnp.take_along_axis(leaf, by_length, axis=1) for leaf in (places, weights, examples, level)
        )

    def answer(parameters, chosen, cut):
        network, embeddings = split_embeddings(parameters, data.embeddings)
        logits = trainer.network.logits(network, embeddings, take(data.inputs, chosen, cut), None)
        return logits.argmax(-1) == data.train.labels[chosen]

    levels = [jax.vmap(functools.partial(answer, cut=cut)) for cut in trainer.buckets or (None,)]

    def block(number, right):
        start = number * ANSWER_BLOCK
        chosen = jax.lax.dynamic_slice_in_dim(examples, start, ANSWER_BLOCK, axis=1)
        # clamped: what was not drawn lies above all levels
        longest = jax.lax.dynamic_slice_in_dim(level, start, ANSWER_BLOCK, axis=1)
        longest = jnp.where(longest < len(levels), longest, 0).max()
        answers = jax.lax.switch(longest, levels, parameters, chosen)
        return jax.lax.dynamic_update_slice_in_dim(right, answers.astype(jnp.int8), start, axis=1)

    num_blocks = -(-count.max() // ANSWER_BLOCK)
    right = jax.lax.fori_loop(0, num_blocks, block, jnp.zeros(places.shape, jnp.int8))

    def estimate(right, places, weights, start):
        difficulty = ascending[places]
        theta = ability_1pl(right, difficulty, population, start, weights).ability
        beyond = weights * jnp.maximum(weights - 1, 0)
        variance = (beyond * (right - probability_1pl(theta, difficulty)) ** 2).sum()
        return Ability(theta, jnp.sqrt(variance) / (weights * information_1pl(theta, difficulty)).sum())

    return jax.vmap(estimate)(right, places, weights, last), count
