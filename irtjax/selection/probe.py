"""The ability of networks in training: from a sample of their training items, as large as needed, or from all."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.kernels.models import information_1pl, probability_1pl
from irtjax.kernels.scoring import Ability, Population, ability_1pl
from irtjax.training.data import ANSWER_BLOCK, Data, classify, take
from irtjax.training.sparse_embeddings import split as split_embeddings
from irtjax.training.trainer import Trainer

PILOT = 4 * ANSWER_BLOCK  # items that tell where the ability is now, and so which and how many to ask
SIZES = (16 * ANSWER_BLOCK, 256 * ANSWER_BLOCK)  # of the arrays of a sample, as little as its items fit in
LEAST = 8 * PILOT  # training items that there must be for a sample to pay
MOST = 0.5  # share of the items from which on all are asked instead
GROUP = 64
FLOOR = 0.1  # least weight of an item: a network may fail where the model is certain that it does not


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


class _Groups(NamedTuple):
    """Neighbours in difficulty, `GROUP` of them, that are drawn with one weight: so no draw reads all items.

    Attributes:
        size: (K,) items; the last group may be smaller.
        information: (K,) of an item in the middle of the group, at θ.
        weight: (K,) that an item is drawn with.
    """

    size: jax.Array
    information: jax.Array
    weight: jax.Array


def _groups(ascending: jax.Array, ability: jax.Array) -> _Groups:
    first = np.arange(0, ascending.size, GROUP)
    size = np.minimum(GROUP, ascending.size - first)
    ability = jnp.clip(ability, ascending[0], ascending[-1])
    information = information_1pl(ability, ascending[first + size // 2])
    return _Groups(jnp.asarray(size), information, jnp.sqrt(information) + FLOOR)


def size_for(
    ascending: jax.Array, ability: jax.Array, standard_error: jax.Array, precision: float | jax.Array = 0.0
) -> jax.Array:
    """How many items a sample must have for the standard error of the ability, against answers to all items.

    From m items drawn as in `draw`, it is the square root of Σ (s_i - 1 + 1/(3 s_i)) P_i (1 - P_i) / (I + τ)², I the
    information of all items, τ that of the population and s_i = Σ w / (m w_i), as long as no s_i is below 1.

    Args:
        ascending: (N,) difficulties in logits.
        ability: θ; values beyond the items, infinite ones too, count as the nearest item's.
        standard_error: in logits.
        precision: τ, 1/σ² of a MAP estimate's population, 0 for maximum likelihood.

    Returns:
        Scalar, not rounded.
    """
    size, information, weight = _groups(ascending, ability)
    everything, total = (size * information).sum(), (size * weight).sum()
    # spread/m + shared m = reach, the smaller root
    spread, shared = total * (size * information / weight).sum(), (size * information * weight).sum() / (3 * total)
    reach = everything + (standard_error * (everything + precision)) ** 2
    return 2 * spread / (reach + jnp.sqrt(jnp.maximum(reach**2 - 4 * spread * shared, 0.0)))


def draw(key: jax.Array, ascending: jax.Array, ability: jax.Array, count: jax.Array, most: int) -> Sample:
    """Items to ask a network whose ability was last seen at θ.

    Item i is drawn with probability proportional to w_i = sqrt(P_i (1 - P_i)) + `FLOOR` at θ, which but for the floor
    minimises the variance of the weighted estimate: one from each of m strata of equal weight along the difficulties,
    which may end within an item. It stands for s_i = 1/π_i items. w is that of the middle of the item's group of
    `GROUP` neighbours.

    Args:
        key: of the draws.
        ascending: (N,) difficulties in logits, in ascending order.
        ability: θ, as in `size_for`.
        count: m.
        most: M, the size of the arrays.
    """
    size, _, weight = _groups(ascending, ability)
    ends, at = jnp.cumsum(size * weight), jnp.arange(most)
    positions = (at + jax.random.uniform(key, (most,))) / count * ends[-1]
    group = jnp.searchsorted(ends, positions, side="right").clip(0, size.size - 1)
    within = (positions - ends[group]) / weight[group] + size[group]
    places = group * GROUP + within.astype(jnp.int32).clip(0, size[group] - 1)
    return Sample(places, jnp.where(at < count, ends[-1] / (count * weight[group]), 0), count)


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
    tolerance: Callable[[jax.Array], jax.Array],
    keys: jax.Array,
    parameters: jax.Array,
    data: Data,
    order: jax.Array,
    ascending: jax.Array,
    last: jax.Array,
    population: Population | None = None,
) -> tuple[Ability, jax.Array]:
    """Abilities of G networks from their answers to samples of the training items, drawn anew at each call.

    A pilot sample around the last ability tells where it is now. If that is not exact enough there, a second sample,
    around the new ability, is as large as it must be; where that is more than `MOST` of the items, all are asked.

    Args:
        trainer: of the networks.
        tolerance: ability -> standard error that is wanted there, in logits, against answers to all items.
        keys: (G,) of the samples.
        parameters: of G networks.
        data: the task.
        order: (N,) training examples by ascending difficulty, at least `LEAST`.
        ascending: (N,) their difficulties, logits.
        last: (G,) abilities that pilots are drawn for, such as those of the epoch before.
        population: None for maximum likelihood, else the prior of a MAP estimate.

    Returns:
        Abilities (G,), and how many items each network was asked. Standard errors are those of sampling: how far the
        ability is from what answers to all items would give, sqrt(Σ v_i (y_i - P_i)²) / (Σ s_i P_i (1 - P_i) + τ).
        There s_i are the items that an answer stands for, v_i = s_i (s_i - 1) + 1/3, or s_i³/3 where s_i < 1 (of an
        item that the ends of strata cut), and τ is the population's 1/σ². They are 0 where all were asked, and inf
        where the ability is infinite.
    """
    precision = 0.0 if population is None else population.sd**-2.0
    most = round(MOST * order.size)
    largest = -(-most // ANSWER_BLOCK) * ANSWER_BLOCK

    def scored(most, keys, around, count):
        sample = jax.vmap(draw, (0, None, 0, 0, None))(keys, ascending, around, count, most)
        sample, right = _answered(trainer, parameters, data, order, sample)
        return jax.vmap(score, (0, 0, None, 0, None))(sample, right, ascending, around, population)

    def all_of_them():
        found, _ = ask_all(trainer, parameters, data, jnp.zeros_like(ascending).at[order].set(ascending), population)
        return found._replace(standard_error=jnp.zeros_like(found.standard_error))

    keys = jax.vmap(jax.random.split)(keys)
    pilot = jnp.full(last.shape, PILOT)
    around = scored(PILOT, keys[:, 0], last, pilot)
    wanted = jax.vmap(tolerance)(around.ability)
    needed = jax.vmap(size_for, (None, 0, 0, None))(ascending, around.ability, wanted, precision)
    enough = around.standard_error <= wanted
    count = jnp.where(enough, 0, jnp.maximum(jnp.ceil(needed), PILOT)).astype(jnp.int32)

    sizes = [0, *sorted({*(size for size in SIZES if size < largest), largest})]
    way = jnp.where(count.max() > most, len(sizes), jnp.searchsorted(jnp.asarray(sizes), count.max()))
    ways = [functools.partial(scored, size, keys[:, 1], around.ability, count) for size in sizes[1:]]
    found = jax.lax.switch(way, [lambda: around, *ways, all_of_them])
    count = jnp.where((way == len(sizes)) & ~enough, order.size, count)
    estimate = jax.tree.map(functools.partial(jnp.where, enough), around, found)
    return estimate, pilot + count


def score(
    sample: Sample, right: jax.Array, ascending: jax.Array, start: jax.Array, population: Population | None
) -> Ability:
    """The ability of one network by its graded answers (M,) to its sample, and its error of sampling, see `ask`."""
    places, weights, _ = sample
    difficulty = ascending[places]
    theta = ability_1pl(right, difficulty, population, start, weights).ability
    beyond = jnp.where(weights >= 1, weights * (weights - 1) + 1 / 3, weights**3 / 3) * (weights > 0)
    variance = (beyond * (right - probability_1pl(theta, difficulty)) ** 2).sum()
    information = (weights * information_1pl(theta, difficulty)).sum()
    if population is not None:
        information += population.sd**-2.0
    error = jnp.sqrt(variance) / information
    return Ability(theta, jnp.where(jnp.isfinite(theta), error, jnp.inf))


def _answered(trainer, parameters, data, order, sample: Sample) -> tuple[Sample, jax.Array]:
    """Which of their samples the networks have right, (G, M); as many blocks are answered as the largest needs."""
    places, weights, count = sample
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
    return Sample(places, weights, count), right
