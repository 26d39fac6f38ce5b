"""Curricula: which training examples in which epoch? Fixed schedules, and DDaCLAE, which asks the network's ability."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.scoring import Population, ability_1pl
from irtjax.training import (
    Data,
    Learner,
    Plan,
    Trainer,
    accuracy,
    end_epoch,
    is_training,
    predict,
    start,
    train_epoch,
    tree_where,
)


class History(NamedTuple):
    """One row an epoch: (S seeds, E epochs), NaN after a seed has stopped early.

    Attributes:
        share: of the training data that was selected, 0 to 1.
        ability: of the network before the epoch, in logits; NaN where the strategy does not ask for it.
        examples_used: examples trained on in the epoch, minibatches times their size.
        dev_accuracy: validation accuracy after the epoch.
        test_accuracy: likewise.
    """

    share: jax.Array
    ability: jax.Array
    examples_used: jax.Array
    dev_accuracy: jax.Array
    test_accuracy: jax.Array


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
    shares: jax.Array | None,
    *,
    population: Population | None = None,
    on_epoch: Callable[[np.ndarray, np.ndarray], None] | None = None,
) -> History:
    """Trains one network a key under one strategy; all epochs of all seeds are one jitted program.

    An epoch is one pass over the selected examples, the easiest first to be selected: as many whole minibatches
    as they fill, drawn without replacement, and at least one, filled by reading them again where they are fewer. A
    fixed schedule selects `shares[t]` of the data at epoch t, rounded up. DDaCLAE
    (Lalor and Yu 2020, algorithm 1) grades the network's own answers to the training examples, estimates its
    ability θ from them and selects the examples with difficulty b ≤ θ.

    A network that answers everything right has θ = +inf by maximum likelihood, and all data are selected; one that
    answers everything wrong has -inf, and none are. Where fewer examples than one minibatch are eligible, the
    easiest `batch_size` are trained on instead, and twice as many at each further such epoch: training on a handful
    of the easiest, often of a single class, can leave the ability where it was, and this gets the network out of it
    in at most log2(N / batch_size) epochs.

    Args:
        trainer: how.
        keys: (S,) of initial weights and minibatches.
        data: the splits.
        difficulty: (N,) of the training examples, in logits.
        shares: (max_epochs,) share of the data at each epoch; None for DDaCLAE.
        population: for DDaCLAE, None to estimate ability by maximum likelihood, else the prior of a MAP estimate.
        on_epoch: called from within the program after each epoch with (S,) epochs made and best accuracies.
    """
    difficulty = jnp.asarray(difficulty, jnp.float32)
    if shares is not None:
        shares = jnp.asarray(shares, jnp.float32)
    return _train(trainer, on_epoch, keys, data, difficulty, shares, population)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _train(trainer, on_epoch, keys, data, difficulty, shares, population):
    num_examples = difficulty.shape[0]
    # sorted once, so that whatever an epoch selects is a prefix
    order = jnp.argsort(difficulty)
    ascending = difficulty[order]

    def eligible(learner: Learner):
        """How many of the easiest examples the strategy selects, and the ability where it asks for it."""
        if shares is not None:
            return jnp.ceil(shares[learner.epoch] * num_examples).astype(jnp.int32), jnp.float32(jnp.nan)
        answers = predict(trainer.network, learner.parameters, data.train.inputs)
        ability, _ = ability_1pl((answers == data.train.labels).astype(jnp.int8), difficulty, population)
        return jnp.searchsorted(ascending, ability, side="right").astype(jnp.int32), ability

    def epoch(learner: Learner, fallback: jax.Array):
        active = is_training(trainer, learner)
        count, ability = eligible(learner)
        if shares is None:
            too_few = count < trainer.batch_size
            count = jnp.where(too_few, fallback, count)
            fallback = jnp.where(too_few, jnp.minimum(2 * fallback, num_examples), fallback)
        size = jnp.clip(count, 1, num_examples)
        num_steps = jnp.where(active, jnp.maximum(size // trainer.batch_size, 1), 0)
        plan = Plan(learner.key, order, size, data.train.labels)
        new = train_epoch(trainer, learner, data.train.inputs, plan, num_steps)
        dev_accuracy = accuracy(trainer.network, new.parameters, data.validation)
        row = History(
            share=size / num_examples,
            ability=ability,
            examples_used=num_steps * trainer.batch_size,
            dev_accuracy=dev_accuracy,
            test_accuracy=accuracy(trainer.network, new.parameters, data.test),
        )
        return tree_where(active, end_epoch(new, dev_accuracy), learner), fallback, row

    def body(carry):
        learners, fallbacks, history = carry
        active, at = is_training(trainer, learners), learners.epoch
        learners, fallbacks, row = jax.vmap(epoch)(learners, fallbacks)
        # a seed that has stopped writes past the end, which is dropped
        columns = jnp.where(active, at, trainer.max_epochs)
        history = jax.tree.map(
            lambda table, values: table.at[jnp.arange(keys.shape[0]), columns].set(values, mode="drop"),
            history,
            row,
        )
        if on_epoch is not None:
            jax.debug.callback(on_epoch, learners.epoch, learners.best_accuracy)
        return learners, fallbacks, history

    learners = jax.vmap(functools.partial(start, trainer))(keys)
    fallbacks = jnp.full(keys.shape, trainer.batch_size, jnp.int32)
    blank = jnp.full((*keys.shape, trainer.max_epochs), jnp.nan)
    history = History(*[blank] * len(History._fields))
    _, _, history = jax.lax.while_loop(
        lambda carry: is_training(trainer, carry[0]).any(), body, (learners, fallbacks, history)
    )
    return history
