"""Curricula: which training examples in which epoch? Fixed schedules, and DDaCLAE, which asks the network's ability."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.device_data import Data, accuracy, classify
from irtjax.scoring import Population, ability_1pl
from irtjax.training import Learner, Plan, Trainer, end_epoch, is_training, start, train_epoch, tree_where


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
    learning_rate: float,
    width: int,
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
        learning_rate: of the optimizer.
        width: hidden units a layer, as the network was built with.
        population: for DDaCLAE, None to estimate ability by maximum likelihood, else the prior of a MAP estimate.
        on_epoch: called from within the program after each epoch with (S,) epochs made and best accuracies.
    """
    difficulty = jnp.asarray(difficulty, jnp.float32)
    if shares is not None:
        shares = jnp.asarray(shares, jnp.float32)
    rate, width = jnp.float32(learning_rate), jnp.int32(width)
    return _train(trainer, on_epoch, keys, data, difficulty, shares, population, rate, width)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _train(trainer, on_epoch, keys, data, difficulty, shares, population, learning_rate, width):
    num_examples, num_seeds = difficulty.shape[0], keys.shape[0]
    # sorted once, so that whatever an epoch selects is a prefix
    order = jnp.argsort(difficulty)
    ascending = difficulty[order]

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

    def ability_of(parameters):
        answers = classify(trainer.network, parameters, data.embeddings, data.train)
        return ability_1pl((answers == data.train.labels).astype(jnp.int8), difficulty, population).ability

    def eligible(learners: Learner):
        """How many of the easiest examples the strategy selects, and the abilities where it asks for them."""
        if shares is not None:
            return jnp.ceil(shares[learners.epoch] * num_examples).astype(jnp.int32), jnp.full(num_seeds, jnp.nan)
        ability = jax.vmap(ability_of)(learners.parameters)
        return jnp.searchsorted(ascending, ability, side="right").astype(jnp.int32), ability

    def body(carry):
        learners, fallback, history = carry
        active, at = is_training(trainer, learners), learners.epoch
        count, ability = eligible(learners)
        if shares is None:
            too_few = count < trainer.batch_size
            count = jnp.where(too_few, fallback, count)
            fallback = jnp.where(too_few, jnp.minimum(2 * fallback, num_examples), fallback)
        size = jnp.clip(count, 1, num_examples)
        num_steps = jnp.where(active, jnp.maximum(size // trainer.batch_size, 1), 0)
        new = train_epoch(trainer, learners, plans._replace(size=size), data, num_steps)
        answer = jax.vmap(functools.partial(accuracy, trainer.network), (0, None, None))
        dev_accuracy, test_accuracy = (
            answer(new.parameters, data.embeddings, split) for split in (data.validation, data.test)
        )
        row = History(
            share=size / num_examples,
            ability=ability,
            examples_used=num_steps * trainer.batch_size,
            dev_accuracy=dev_accuracy,
            test_accuracy=test_accuracy,
        )
        learners = jax.vmap(tree_where)(active, end_epoch(new, dev_accuracy), learners)
        # a seed that has stopped writes past the end, which is dropped
        columns = jnp.where(active, at, trainer.max_epochs)
        history = jax.tree.map(
            lambda table, values: table.at[jnp.arange(num_seeds), columns].set(values, mode="drop"), history, row
        )
        if on_epoch is not None:
            jax.debug.callback(on_epoch, learners.epoch, learners.best_accuracy)
        return learners, fallback, history

    learners = jax.vmap(functools.partial(start, trainer), (0, None))(plans, data.embeddings)
    fallback = jnp.full(num_seeds, trainer.batch_size, jnp.int32)
    blank = jnp.full((num_seeds, trainer.max_epochs), jnp.nan)
    history = History(*[blank] * len(History._fields))
    _, _, history = jax.lax.while_loop(
        lambda carry: is_training(trainer, carry[0]).any(), body, (learners, fallback, history)
    )
    return history
