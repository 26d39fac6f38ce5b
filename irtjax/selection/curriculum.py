"""Curricula: which training examples in which epoch? Fixed schedules, and DDaCLAE, which asks the network's ability."""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.kernels.scoring import Ability, Population
from irtjax.selection.probe import LEAST, ask, ask_all
from irtjax.training.data import Data, accuracy
from irtjax.training.devices import default_mesh, on_devices
from irtjax.training.trainer import Plan, Trainer, end_epoch, is_training, start, train_epoch, tree_where

NEAR, LOOSE = 0.25, 0.5  # logits
PROBING = 1  # folded into a network's key, for the samples that it is asked


class History(NamedTuple):
    """One row an epoch: (S seeds, E epochs), NaN after a seed has stopped early.

    Attributes:
        share: of the training data that was selected, 0 to 1.
        ability: of the network before the epoch, in logits; NaN where the strategy does not ask for it.
        examples_used: examples trained on in the epoch, minibatches times their size.
        dev_accuracy: validation accuracy after the epoch.
        test_accuracy: likewise.
        ability_se: standard error of the ability: of a sample's, against what all items would give; of the answers to
            all items, by their information.
        items_asked: answered for the ability.
    """

    share: jax.Array
    ability: jax.Array
    examples_used: jax.Array
    dev_accuracy: jax.Array
    test_accuracy: jax.Array
    ability_se: jax.Array
    items_asked: jax.Array


class Range(NamedTuple):
    """Examples that an epoch trains on, as a range of those in ascending order of difficulty; int32."""

    first: jax.Array
    count: jax.Array


def ready(ascending: jax.Array, ability: jax.Array) -> Range:
    """DDaCLAE: what the network is ready for, b ≤ θ (Lalor and Yu 2020, algorithm 1).

    Args:
        ascending: (N,) difficulties in ascending order, logits.
        ability: θ, scalar, logits.
    """
    return Range(jnp.int32(0), jnp.searchsorted(ascending, ability, side="right").astype(jnp.int32))


def hard(ascending: jax.Array, ability: jax.Array) -> Range:
    """Hard-example mining: what is beyond the network, b ≥ θ; arguments as in `ready`."""
    first = jnp.searchsorted(ascending, ability, side="left").astype(jnp.int32)
    return Range(first, ascending.size - first)


@dataclasses.dataclass(frozen=True)
class Window:
    """What is near the network's ability, |b - θ| ≤ `half_width` logits; arguments of a call as in `ready`."""

    half_width: float

    def __call__(self, ascending: jax.Array, ability: jax.Array) -> Range:
        """The range."""
        first = jnp.searchsorted(ascending, ability - self.half_width, side="left").astype(jnp.int32)
        return Range(first, jnp.searchsorted(ascending, ability + self.half_width, side="right") - first)


def widened(selected: Range, size: jax.Array, num_examples: int) -> Range:
    """A range of `size` examples about the middle of the selected one, within what there is."""
    middle = selected.first + selected.count // 2
    return Range(jnp.clip(middle - size // 2, 0, num_examples - size), size)


def tolerable(rule: Callable, ascending: jax.Array, share_error: float, ability: jax.Array) -> jax.Array:
    """Standard error of the ability at which what a rule selects is off by the share `share_error` of the data.

    Each end of the selected range moves by its density of items a logit, taken from `NEAR` on both sides of θ. At most
    `LOOSE`, where hardly an item is near.

    Args:
        rule: `ready`, `hard` or a `Window`.
        ascending: (N,) difficulties in ascending order, logits.
        share_error: 0 to 1.
        ability: θ, scalar; beyond the items, the nearest item's.
    """
    ability = jnp.clip(ability, ascending[0], ascending[-1])
    low, high = rule(ascending, ability - NEAR), rule(ascending, ability + NEAR)
    first, end = jnp.abs(high.first - low.first), jnp.abs(high.first + high.count - low.first - low.count)
    moved = (first + end) / (2 * NEAR * ascending.size)
    return jnp.minimum(share_error / jnp.maximum(moved, jnp.finfo(jnp.float32).tiny), LOOSE)


def full_share(num_epochs: int) -> np.ndarray:
    """The baseline's schedule: all data in every epoch."""
    return np.ones(num_epochs)


def linear_share(num_epochs: int, length: int, c0: float) -> np.ndarray:
    """CB-linear, share of the data at epoch t = 0, 1, …: min(1, t (1 - c0)/T + c0) (Platanios et al. 2019, eq. 6).

    Args:
        num_epochs: entries of the schedule.
        length: T, the epoch at which all data are reached.
        c0: share at epoch 0.
    """
    t = np.arange(num_epochs)
    return np.minimum(1, t * (1 - c0) / length + c0)


def root_share(num_epochs: int, length: int, c0: float) -> np.ndarray:
    """CB-root: min(1, sqrt(t (1 - c0²)/T + c0²)) (Platanios et al. 2019, eq. 7); arguments as in `linear_share`."""
    t = np.arange(num_epochs)
    return np.minimum(1, np.sqrt(t * (1 - c0**2) / length + c0**2))


def train_curriculum(
    trainer: Trainer,
    keys: jax.Array,
    data: Data,
    difficulty: jax.Array,
    selection: np.ndarray | Callable[[jax.Array, jax.Array], Range],
    *,
    learning_rate: float,
    width: int,
    population: Population | None = None,
    probe: float | None = None,
    on_epoch: Callable[[np.ndarray, np.ndarray], None] | None = None,
    mesh: jax.sharding.Mesh | None = None,
) -> History:
    """Trains one network a key under one strategy; all epochs of all seeds are one jitted program.

    An epoch is one pass over the selected examples: as many whole minibatches as they fill, drawn without replacement,
    and at least one, filled by reading them again where they are fewer. A fixed schedule selects `selection[t]` of the
    data at epoch t, the easiest, rounded up. A rule (`ready`, `hard`, `Window`) is told the network's ability θ, from
    its graded answers to the training examples.

    A network that answers everything right has θ = +inf by maximum likelihood, one that answers everything wrong -inf.
    Where a rule selects fewer examples than one minibatch, `batch_size` examples about those are trained on instead,
    and twice as many at each further such epoch: training on a handful of the easiest, often of a single class, can
    leave the ability where it was. A selection of a minibatch or more is followed to the letter, also where the ability
    stays where it is until early stopping.

    Args:
        trainer: how.
        keys: (S,) of initial weights, minibatches and samples.
        data: the splits.
        difficulty: (N,) of the training examples, in logits, or in any unit for a schedule.
        selection: (max_epochs,) share of the data at each epoch, or a rule, hashable.
        learning_rate: of the optimizer.
        width: hidden units a layer, as the network was built with.
        population: for a rule, None to estimate ability by maximum likelihood, else the prior of a MAP estimate.
        probe: for a rule, standard error that the share selected is to have, 0 to 1, where a sample of the examples
            tells the ability, see `irtjax.selection.probe`; None to ask for all of them, as is done where they are few.
        on_epoch: called from within the program after each epoch with epochs made and best accuracies of the seeds, of
            those of one device.
        mesh: devices that seeds are spread over, with the data on each of them; None for the default device.
    """
    rule, shares = (selection, None) if callable(selection) else (None, jnp.asarray(selection, jnp.float32))
    rate, width = jnp.float32(learning_rate), jnp.int32(width)
    difficulty = jnp.asarray(difficulty, jnp.float32)
    if difficulty.size < LEAST:
        probe = None
    mesh = default_mesh(1) if mesh is None else mesh
    num_seeds = keys.shape[0]
    filled = keys[jnp.arange(-(-num_seeds // mesh.size) * mesh.size) % num_seeds]
    shared = data, difficulty, shares, population, rate, width
    history = _train(trainer, rule, probe, on_epoch, mesh, filled, *shared)
    return jax.tree.map(lambda table: table[:num_seeds], history)


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3, 4))
def _train(trainer, rule, probe, on_epoch, mesh, keys, *shared):
    train = functools.partial(_train_seeds, trainer, rule, probe, on_epoch)
    return on_devices(train, mesh, (True, *[False] * len(shared)))(keys, *shared)


def _train_seeds(trainer, rule, probe, on_epoch, keys, data, difficulty, shares, population, learning_rate, width):
    num_examples, num_seeds = difficulty.shape[0], keys.shape[0]
    # sorted once, so that whatever an epoch selects is a range
    order = jnp.argsort(difficulty)
    ascending = difficulty[order]
    least = min(trainer.batch_size, num_examples)

    def everyone(value):
        return jnp.broadcast_to(value, (num_seeds, *jnp.shape(value)))

    plans = Plan(
        keys,
        everyone(order),
        everyone(jnp.int32(1)),
        everyone(data.train.labels),
        everyone(learning_rate),
        everyone(width),
    )

    def ability_of(learners, last):
        """Abilities with standard errors, and how many items they rest on."""
        if probe is None:
            return ask_all(trainer, learners.parameters, data, difficulty, population)
        sampling = jax.vmap(lambda key, epoch: jax.random.fold_in(jax.random.fold_in(key, PROBING), epoch))
        drawn = sampling(learners.key, learners.epoch)
        tolerance = functools.partial(tolerable, rule, ascending, probe)
        return ask(trainer, tolerance, drawn, learners.parameters, data, order, ascending, last, population)

    def select(learners, last, fallback):
        """The range of each seed, what it rests on (ability, items asked), and the next fallback."""
        if rule is None:
            count = jnp.ceil(shares[learners.epoch] * num_examples).astype(jnp.int32)
            unknown = jnp.full(num_seeds, jnp.nan)
            return (
                Range(jnp.zeros_like(count), jnp.clip(count, 1, num_examples)),
                (Ability(unknown, unknown), jnp.zeros(num_seeds, jnp.int32)),
                fallback,
            )
        scored = ability_of(learners, last)
        chosen = jax.vmap(rule, (None, 0))(ascending, scored[0].ability)
        too_few = chosen.count < least
        wider = jax.vmap(widened, (0, 0, None))(chosen, fallback, num_examples)
        chosen = jax.tree.map(functools.partial(jnp.where, too_few), wider, chosen)
        return chosen, scored, jnp.where(too_few, jnp.minimum(2 * fallback, num_examples), fallback)

    def body(carry):
        learners, last, fallback, history = carry
        active, at = is_training(trainer, learners), learners.epoch
        chosen, (scored, asked), fallback = select(learners, last, fallback)
        num_steps = jnp.where(active, jnp.maximum(chosen.count // trainer.batch_size, 1), 0)
        orders = jax.vmap(jnp.roll)(plans.order, -chosen.first)
        new = train_epoch(trainer, learners, plans._replace(order=orders, size=chosen.count), data, num_steps)
        answer = jax.vmap(functools.partial(accuracy, trainer.network), (0, None, None))
        dev_accuracy, test_accuracy = (
            answer(new.parameters, data.embeddings, split) for split in (data.validation, data.test)
        )
        row = History(
            share=chosen.count / num_examples,
            ability=scored.ability,
            examples_used=num_steps * trainer.batch_size,
            dev_accuracy=dev_accuracy,
            test_accuracy=test_accuracy,
            ability_se=scored.standard_error,
            items_asked=asked,
        )
        learners = jax.vmap(tree_where)(active, end_epoch(new, dev_accuracy), learners)
        # a seed that has stopped writes past the end, which is dropped
        columns = jnp.where(active, at, trainer.max_epochs)
        history = jax.tree.map(
            lambda table, values: table.at[jnp.arange(num_seeds), columns].set(values, mode="drop"), history, row
        )
        if on_epoch is not None:
            jax.debug.callback(on_epoch, learners.epoch, learners.best_accuracy)
        return learners, scored.ability, fallback, history

    learners = jax.vmap(functools.partial(start, trainer), (0, None))(plans, data.embeddings)
    first = jnp.zeros(num_seeds, jnp.float32)  # the mean ability of the crowd, until the network has answered
    fallback = jnp.full(num_seeds, least)
    blank = jnp.full((num_seeds, trainer.max_epochs), jnp.nan)
    history = History(*[blank] * len(History._fields))
    *_, history = jax.lax.while_loop(
        lambda carry: is_training(trainer, carry[0]).any(), body, (learners, first, fallback, history)
    )
    return history
