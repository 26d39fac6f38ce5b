"""The ability of networks in training: from a sample of their training items, as large as needed, or from all."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from irtjax.kernels.ability import Ability
from irtjax.kernels.ability_modes import ability_1pl
from irtjax.networks import Parameters
from irtjax.populations.normal import Population
from irtjax.selection.sampling import Sample, draw, score, size_for
from irtjax.training.data import ANSWER_BLOCK, Data, classify, split_embeddings, take
from irtjax.training.step import Trainer
from irtjax.types import Float, Int

PILOT_SIZE = 4 * ANSWER_BLOCK  # items that locate the ability; they decide which items to ask next, and how many
CAPACITIES = (16 * ANSWER_BLOCK, 256 * ANSWER_BLOCK)  # sizes of a sample's arrays; the smallest that holds it is used
MIN_ITEMS_TO_SAMPLE = 8 * PILOT_SIZE  # training items below which a sample does not pay
MAX_SAMPLED_SHARE = 0.5  # of the items; where a sample would be larger, all are asked


class RankedItems(NamedTuple):
    """Training examples with their place in ascending order of difficulty.

    Attributes:
        difficulty: (N,) of the examples in their own order, logits.
        order: (N,) int32 examples by ascending difficulty.
        ascending: (N,) difficulties in that order.
    """

    difficulty: jax.Array
    order: jax.Array
    ascending: jax.Array


def rank_items(difficulty: Float[jax.Array, " N"]) -> RankedItems:
    """Training examples sorted once, so that whatever an epoch selects is a range."""
    order = jnp.argsort(difficulty)
    return RankedItems(difficulty, order, difficulty[order])


class Subjects(NamedTuple):
    """G networks in training whose abilities are asked for.

    Attributes:
        keys: (G,) of the samples.
        parameters: of the networks.
        previous: (G,) abilities that pilots are drawn for, such as those of the epoch before, logits.
        active: (G,) which of them matter; None for all. Of the others only the pilot is asked.
    """

    keys: jax.Array
    parameters: Parameters
    previous: jax.Array
    active: jax.Array | None = None


class Estimate(NamedTuple):
    """Abilities of G networks.

    Attributes:
        ability: (G,) logits.
        standard_error: (G,) logits.
        items_asked: (G,) items answered for it, those of the pilot and of a sample; N where all are.
    """

    ability: jax.Array
    standard_error: jax.Array
    items_asked: jax.Array


def estimate_ability_from_all(
    trainer: Trainer,
    parameters: Parameters,
    data: Data,
    difficulty: Float[jax.Array, " N"],
    population: Population | None = None,
) -> Estimate:
    """Abilities of G networks from their answers to all N training examples.

    Args:
        trainer: of the networks.
        parameters: of G networks.
        data: the task.
        difficulty: (N,) of the training examples, logits.
        population: None for maximum likelihood, else the prior of a MAP estimate.
    """

    def ability_of(parameters: Parameters) -> Ability:
        answers = classify(trainer.network, parameters, data.embeddings, data.train)
        return ability_1pl((answers == data.train.labels).astype(jnp.int8), difficulty, population)

    ability, standard_error = jax.vmap(ability_of)(parameters)
    return Estimate(ability, standard_error, jnp.full(ability.shape, difficulty.size))


def estimate_ability(
    trainer: Trainer,
    required_se: Callable[[jax.Array], jax.Array],
    subjects: Subjects,
    data: Data,
    items: RankedItems,
    population: Population | None = None,
) -> Estimate:
    """Abilities of G networks from their answers to samples of the training items, drawn anew at each call.

    A pilot sample around the previous ability locates the present one. If that is not precise enough, a second sample
    around the new ability is as large as it must be. Where that is more than `MAX_SAMPLED_SHARE` of the items, all are
    asked. What a network is asked depends on that network alone, not on those beside it.

    Args:
        trainer: of the networks.
        required_se: ability -> standard error that is required there, in logits, against answers to all items.
        subjects: the networks.
        data: the task.
        items: its training examples, at least `MIN_ITEMS_TO_SAMPLE`.
        population: None for maximum likelihood, else the prior of a MAP estimate.

    Returns:
        Abilities with the standard errors of sampling: how far the ability is from what answers to all items would
        give, sqrt(Σ v_i (y_i - P_i)²) / (Σ s_i P_i (1 - P_i) + τ). There, s_i is the number of items that an answer
        stands for, and v_i = s_i (s_i - 1) + 1/3, or s_i³/3 where s_i < 1, as for an item that the ends of strata cut.
        τ is the population's 1/σ². The errors are 0 where all were asked, and inf where the ability is infinite.
    """
    keys, num_items = jax.vmap(jax.random.split)(subjects.keys), items.order.size
    pilot_size = jnp.full(subjects.previous.shape, PILOT_SIZE)

    def from_sample(capacity: int, keys: jax.Array, around: jax.Array, num_drawn: jax.Array) -> Ability:
        sample = jax.vmap(draw, (0, None, 0, 0, None))(keys, items.ascending, around, num_drawn, capacity)
        sample, right = _answered(trainer, subjects.parameters, data, items.order, sample)
        return jax.vmap(score, (0, 0, None, 0, None))(sample, right, items.ascending, around, population)

    def from_all() -> Ability:
        found = estimate_ability_from_all(trainer, subjects.parameters, data, items.difficulty, population)
        return Ability(found.ability, jnp.zeros_like(found.standard_error))

    pilot = from_sample(PILOT_SIZE, keys[:, 0], subjects.previous, pilot_size)
    num_drawn = _second_sample(required_se, pilot, items, population)
    if subjects.active is not None:
        num_drawn = jnp.where(subjects.active, num_drawn, 0)

    max_sampled = round(MAX_SAMPLED_SHARE * num_items)
    estimate, least = pilot, 0
    # each in arrays of the size that its own number needs: draws and rounding are then those it would have alone
    for capacity in _capacities(max_sampled):
        mine = (least < num_drawn) & (num_drawn <= min(capacity, max_sampled))
        ask = functools.partial(from_sample, capacity, keys[:, 1], pilot.ability, jnp.where(mine, num_drawn, 0))
        estimate, least = _renewed(estimate, mine, ask), capacity
    ask_all = num_drawn > max_sampled
    estimate = _renewed(estimate, ask_all, from_all)
    items_asked = jnp.where(ask_all, num_items, pilot_size + num_drawn)
    return Estimate(estimate.ability, estimate.standard_error, items_asked)


def _second_sample(
    required_se: Callable[[jax.Array], jax.Array], pilot: Ability, items: RankedItems, population: Population | None
) -> jax.Array:
    """How many items to ask after the pilot, (G,); 0 where that is precise enough."""
    precision = 0.0 if population is None else population.sd**-2.0
    required = jax.vmap(required_se)(pilot.ability)
    needed = jax.vmap(size_for, (None, 0, 0, None))(items.ascending, pilot.ability, required, precision)
    enough = pilot.standard_error <= required
    return jnp.where(enough, 0, jnp.maximum(jnp.ceil(needed), PILOT_SIZE)).astype(jnp.int32)


def _capacities(max_sampled: int) -> list[int]:
    """Sizes of arrays for samples of up to `max_sampled` items, ascending."""
    largest = -(-max_sampled // ANSWER_BLOCK) * ANSWER_BLOCK
    return [*(size for size in CAPACITIES if size < largest), largest]


def _renewed(estimate: Ability, mine: jax.Array, ask: Callable[[], Ability]) -> Ability:
    """The estimates (G,), with those of `ask` for the networks that are marked; not called if none is."""
    return jax.lax.cond(
        mine.any(), lambda old: jax.tree.map(functools.partial(jnp.where, mine), ask(), old), lambda old: old, estimate
    )


def _answered(
    trainer: Trainer, parameters: Parameters, data: Data, order: Int[jax.Array, " N"], sample: Sample
) -> tuple[Sample, jax.Array]:
    """Which of their samples the networks have right, (G, M); as many blocks are answered as the largest needs.

    Samples of texts come back in another order: texts of similar length are answered together.
    """
    places, weights, num_drawn = sample
    examples, level = order[places], jnp.zeros(places.shape, jnp.uint8)
    if data.bucket is not None:  # texts of similar length side by side, what was not drawn at the end
        level = jnp.where(weights > 0, data.bucket[examples], len(trainer.buckets))
        by_length = jnp.argsort(level, axis=1)
        places, weights, examples, level = (
            jnp.take_along_axis(leaf, by_length, axis=1) for leaf in (places, weights, examples, level)
        )

    def answer(parameters: Parameters, chosen: jax.Array, cut: tuple[int, ...] | None) -> jax.Array:
        network, embeddings = split_embeddings(parameters, data.embeddings)
        logits = trainer.network.logits(network, embeddings, take(data.inputs, chosen, cut), None)
        return logits.argmax(-1) == data.train.labels[chosen]

    cuts: tuple[Any, ...] = trainer.buckets or (None,)
    levels = [jax.vmap(functools.partial(answer, cut=cut)) for cut in cuts]

    def block(number: jax.Array, right: jax.Array) -> jax.Array:
        start = number * ANSWER_BLOCK
        chosen = jax.lax.dynamic_slice_in_dim(examples, start, ANSWER_BLOCK, axis=1)
        # clamped: what was not drawn lies above all levels
        longest = jax.lax.dynamic_slice_in_dim(level, start, ANSWER_BLOCK, axis=1)
        longest = jnp.where(longest < len(levels), longest, 0).max()
        answers = jax.lax.switch(longest, levels, parameters, chosen)
        return jax.lax.dynamic_update_slice_in_dim(right, answers.astype(jnp.int8), start, axis=1)

    num_blocks = -(-num_drawn.max() // ANSWER_BLOCK)
    right = jax.lax.fori_loop(0, num_blocks, block, jnp.zeros(places.shape, jnp.int8))
    return Sample(places, weights, num_drawn), right
