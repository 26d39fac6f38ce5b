"""Training networks side by side: minibatches from a prefix of an order, early stopping, best parameters.

Everything here carries a leading axis of G networks. Networks are vmapped inside the loop over steps, not around it, so
that what a step reads can have one shape for all of them: text is cut to the longest sentence that any of them drew.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from irtjax.networks import Network, Parameters
from irtjax.networks.formulation import for_accelerator
from irtjax.networks.hashing import permute
from irtjax.training.data import Data, accuracy, take
from irtjax.training.sparse_embeddings import Owned, pad_rows, renumber, rows_of, update
from irtjax.types import AnyArray

WINDOW = 64  # minibatches that are drawn together; of text, sorted by length
ALL_UNITS = np.iinfo(np.int32).max  # a width that masks no hidden unit


def _turns() -> np.ndarray:
    """(WINDOW + 1, WINDOW): which of `count` minibatches by length comes at each place of a window.

    A random order of `count`, and at each place nearly the same share of them is shorter, whatever their number: so
    networks whose windows are of different size still read sentences of similar length together.
    """
    draws = np.random.default_rng(0).random(WINDOW)
    shorter = draws < draws[:, None]  # (place, other place)
    earlier = np.arange(WINDOW) < np.arange(WINDOW + 1)[:, None]  # (count, place)
    return np.where(earlier, earlier.astype(np.int32) @ shorter.T, 0)


TURNS = _turns()


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """The mean of -log p̂(label) over the B examples of a minibatch: logits (B, C), labels (B,) integers."""
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels.astype(jnp.int32)).mean()


@dataclasses.dataclass(frozen=True)
class Trainer:
    """How to train; hashable, so that it can be a static argument of jit.

    Attributes:
        network: what is trained.
        optimizer: an optax transformation at learning rate 1; each network scales its updates by its own rate.
        batch_size: examples in a step.
        patience: epochs without a better validation accuracy after which training stops.
        max_epochs: where it stops in any case.
        buckets: for text, `TextFormat.buckets`; else empty.
        own_embeddings: for text, whether each network trains the word vectors, from the task's on, for itself.
        warmup: share of the steps in which the learning rate rises to the network's own, to fall to 0 after them; None
            for a constant rate.
        steps_per_epoch: what the number of steps is counted by; None for a pass over the network's training set.
        augment: (key, inputs) -> inputs, at random, of a minibatch of images; None for none.
        loss: (logits, labels of the plan) -> scalar, of a minibatch.
    """

    network: Network
    optimizer: optax.GradientTransformation
    batch_size: int
    patience: int
    max_epochs: int
    buckets: tuple[tuple[int, ...], ...] = ()
    own_embeddings: bool = False
    warmup: float | None = None
    steps_per_epoch: int | None = None
    augment: Callable[[jax.Array, jax.Array], jax.Array] | None = None
    loss: Callable[[jax.Array, jax.Array], jax.Array] = cross_entropy


class Plan(NamedTuple):
    """What a network is trained on, and how it differs from others; every leaf with a leading axis of G networks.

    Attributes:
        key: of its initial weights, minibatches and dropout.
        order: (N,) int32 indices of training examples; the first `size` are its training set.
        size: scalar int32.
        labels: (N,) integer labels it is shown, corrupted ones included; (N, C) of a trainer with a loss of soft ones.
        learning_rate: scalar.
        width: scalar int32, hidden units that are not masked.
    """

    key: jax.Array
    order: AnyArray
    size: AnyArray
    labels: AnyArray
    learning_rate: AnyArray
    width: AnyArray


def same_plan(keys: jax.Array, order: AnyArray, size: AnyArray, labels: AnyArray, learning_rate: AnyArray) -> Plan:
    """One plan for each of G keys, on the same examples; no hidden unit is masked."""

    def for_all(value: AnyArray) -> jax.Array:
        return jnp.broadcast_to(value, (keys.shape[0], *jnp.shape(value)))

    return Plan(keys, *map(for_all, (order, size, labels, learning_rate, jnp.int32(ALL_UNITS))))


class Learner(NamedTuple):
    """Networks in training after `epoch` epochs of `steps` steps in all; what a rate that falls is counted by.

    `best_*` belong to the epoch of the highest validation accuracy so far.
    """

    key: jax.Array
    parameters: Parameters
    optimizer_state: Any
    steps: jax.Array
    epoch: jax.Array
    best_parameters: Parameters
    best_epoch: jax.Array
    best_accuracy: jax.Array


def start(trainer: Trainer, plan: Plan, given: tuple[AnyArray | None, Any]) -> Learner:
    """One learner before its first epoch, for a plan without the leading axis; begins from what `Data.given` is."""
    init_key, key = jax.random.split(plan.key)
    embeddings, weights = given
    parameters = trainer.network.init(init_key, jnp.asarray(plan.width), weights)
    optimizer_state = trainer.optimizer.init(parameters)
    if embeddings is not None and trainer.own_embeddings:
        vectors = jnp.asarray(embeddings)
        parameters = Owned(parameters, vectors)
        optimizer_state = (optimizer_state, trainer.optimizer.init(vectors))
    return Learner(
        key=key,
        parameters=parameters,
        optimizer_state=optimizer_state,
        steps=jnp.int32(0),
        epoch=jnp.int32(0),
        best_parameters=parameters,
        best_epoch=jnp.int32(0),
        best_accuracy=jnp.float32(-1),
    )


def is_training(trainer: Trainer, learners: Learner) -> jax.Array:
    """Whether neither patience nor epochs have run out."""
    return (learners.epoch - learners.best_epoch < trainer.patience) & (learners.epoch < trainer.max_epochs)


def train_epoch(
    trainer: Trainer,
    learners: Learner,
    plans: Plan,
    data: Data,
    num_steps: int | jax.Array,
    live: jax.Array | None = None,
    first: jax.Array | None = None,
) -> Learner:
    """`num_steps` minibatches for each network from the first `size` examples of its order: an epoch, or a part of it.

    The prefix is permuted anew each epoch and read from its beginning: no example returns before all others have been
    seen. Where it ends before the steps do, reading starts again from its beginning.

    Minibatches of text consist of examples of similar length. `WINDOW` of them are drawn at once, their examples are
    sorted by length, and dealt out again in one shared random order of length groups for all networks, windows
    and epochs. So padding costs little, even though all networks must pad to the longest. Within a window, the rule
    above does not hold: a training set smaller than a window has each example in it several times.

    Args:
        trainer: how.
        learners: G networks.
        plans: theirs.
        data: the task.
        num_steps: of all networks, or (G,), where those with fewer steps wait for the others.
        live: (G,) which of them matter; None for all. What becomes of the others means nothing, and their sentences
            make no minibatch longer.
        first: (G,) whole windows of the epoch that each network has behind it; None for none.
    """
    keys = jax.vmap(jax.random.split)(jax.vmap(jax.random.fold_in)(learners.key, learners.epoch))
    batch, last = trainer.batch_size, jnp.max(num_steps)
    live = jnp.ones(plans.size.shape, bool) if live is None else live
    first = jnp.zeros(plans.size.shape, jnp.int32) if first is None else first

    def gradients(parameters, at, chosen, cut):
        step_keys = jax.vmap(jax.random.fold_in)(keys[:, 1], first * WINDOW + at)
        return over_networks(functools.partial(_gradient, trainer, data, cut))(
            parameters, step_keys, plans.labels, chosen
        )

    # gradients alone: parameters that went in and out of a branch would be copied
    levels = [functools.partial(gradients, cut=cut) for cut in trainer.buckets or (None,)]

    def window(number, carry):
        count = jnp.clip(num_steps - number * WINDOW, 0, WINDOW)  # minibatches; fewer in the last window
        places = ((first + number)[:, None] * WINDOW * batch + jnp.arange(WINDOW * batch)[None]) % plans.size[:, None]
        drawn = jnp.take_along_axis(plans.order, jax.vmap(permute)(keys[:, 0], places, plans.size), axis=1)
        turns = jnp.arange(WINDOW)
        if trainer.buckets:
            beyond = jnp.arange(WINDOW * batch)[None] >= jnp.broadcast_to(count * batch, live.shape)[:, None]
            by_length = jnp.argsort(jnp.where(beyond, len(levels), data.bucket[drawn]), axis=1)
            drawn = jnp.take_along_axis(drawn, by_length, axis=1)
            turns = jnp.asarray(TURNS)[count]
        turns = jnp.broadcast_to(turns, (live.size, WINDOW))

        def step(at, carry):
            starts = turns[:, at % WINDOW] * batch
            chosen = jax.vmap(lambda row, start: jax.lax.dynamic_slice_in_dim(row, start, batch))(drawn, starts)
            active = live & (at < num_steps)
            if trainer.buckets:
                level = jnp.where(active[:, None], data.bucket[chosen], 0).max().astype(jnp.int32)
                gradient = jax.lax.switch(level, levels, carry[0], at, chosen)
            else:
                gradient = levels[0](carry[0], at, chosen)
            keep = jnp.ndim(num_steps) > 0
            descend = functools.partial(_descend, trainer, keep)
            rates = plans.learning_rate * share_of_rate(trainer, learners.steps + at, plans.size)
            return jax.vmap(descend)(*carry, gradient, rates, active)

        return jax.lax.fori_loop(number * WINDOW, number * WINDOW + jnp.max(count), step, carry)

    carry = jax.lax.fori_loop(0, -(-last // WINDOW), window, (learners.parameters, learners.optimizer_state))
    return learners._replace(parameters=carry[0], optimizer_state=carry[1], steps=learners.steps + num_steps)


def over_networks(function: Callable[..., Any]) -> Callable[..., Any]:
    """`jax.vmap`; one network alone has no batch axis in its products, which would cost an encoder 6% on a CPU.

    For gradients alone: an optimizer that took the axis away and put it back would copy all that it updates.
    """

    def mapped(*args: Any) -> Any:
        if len(jax.tree.leaves(args)[0]) > 1:
            return jax.vmap(function)(*args)
        return jax.tree.map(lambda leaf: leaf[None], function(*jax.tree.map(lambda leaf: leaf[0], args)))

    return mapped


def share_of_rate(trainer: Trainer, step: jax.Array, size: AnyArray) -> jax.Array | float:
    """The learning rate at a step, counted from 0, as a share of the network's own, with a training set of some size.

    Of n steps, in as many epochs as there may be, w are to warm up: (step + 1) / w in these, then (n - step) / (n - w).
    """
    if trainer.warmup is None:
        return 1.0
    per_epoch = (
        jnp.maximum(size // trainer.batch_size, 1) if trainer.steps_per_epoch is None else trainer.steps_per_epoch
    )
    total = jnp.asarray(trainer.max_epochs * per_epoch, jnp.float32)
    warm = jnp.maximum(trainer.warmup * total, 1)
    done = step.astype(jnp.float32)
    return jnp.clip(jnp.minimum((done + 1) / warm, (total - done) / jnp.maximum(total - warm, 1)), 0, 1)


def _gradient(
    trainer: Trainer,
    data: Data,
    cut: tuple[int, ...] | None,
    parameters: Parameters,
    key: jax.Array,
    labels: jax.Array,
    chosen: jax.Array,
) -> Any:
    """Gradient of one network's loss on the examples `chosen`; with vectors of its own, of their rows too."""
    augment_key, dropout_key = jax.random.split(key)
    inputs = take(data.inputs, chosen, cut)
    if trainer.augment is not None:
        inputs = trainer.augment(augment_key, inputs)

    def loss(network, embeddings, inputs):
        return trainer.loss(trainer.network.logits(network, embeddings, inputs, dropout_key), labels[chosen])

    if not trainer.own_embeddings:
        return jax.grad(loss)(parameters, data.embeddings, inputs)
    words, inputs = renumber(inputs)
    gradient, by_row = jax.grad(loss, (0, 1))(parameters.network, rows_of(parameters.embeddings, words), inputs)
    return gradient, pad_rows(words, by_row, trainer.batch_size * sum(trainer.buckets[-1]) + 1)


def _descend(
    trainer: Trainer,
    can_wait: bool,
    parameters: Parameters,
    optimizer_state: Any,
    gradient: Any,
    learning_rate: jax.Array,
    active: jax.Array,
) -> tuple[Parameters, Any]:
    """One step of one network down its gradient; none, if networks can wait and this one is not active."""

    def improve(network, state, gradient):
        updates, new_state = trainer.optimizer.update(gradient, state, network)
        new = optax.apply_updates(network, jax.tree.map(lambda update: learning_rate * update, updates))
        return tree_where(active, (new, new_state), (network, state)) if can_wait else (new, new_state)

    if not trainer.own_embeddings:
        return improve(parameters, optimizer_state, gradient)
    gradient, (words, rows) = gradient
    network, state = improve(parameters.network, optimizer_state[0], gradient)
    taken = active if can_wait else True
    table = parameters.embeddings, optimizer_state[1]
    embeddings, of_table = update(trainer.optimizer, *table, words, rows, learning_rate, taken)
    return Owned(network, embeddings), (state, of_table)


def validate(trainer: Trainer, learners: Learner, data: Data, live: jax.Array | None = None) -> Learner:
    """Ends an epoch of each network: answers the monitored split and keeps parameters that are the best so far.

    Args:
        trainer: how.
        learners: G networks.
        data: the task.
        live: (G,) which of them matter; None for all. On a processor the others do not answer, which would take as long
            as for those that do; on an accelerator all answer side by side.
    """
    answer = functools.partial(accuracy, trainer.network)
    split = data.validation if data.monitor is None else data.monitor
    if live is None or for_accelerator():
        accuracies = jax.vmap(answer, (0, None, None))(learners.parameters, data.embeddings, split)
    else:

        def in_turn(network: tuple[Parameters, jax.Array]) -> jax.Array:
            parameters, matters = network
            return jax.lax.cond(matters, lambda: answer(parameters, data.embeddings, split), lambda: jnp.float32(-1))

        accuracies = jax.lax.map(in_turn, (learners.parameters, live))
    return end_epoch(learners, accuracies)


def end_epoch(learners: Learner, validation_accuracy: jax.Array) -> Learner:
    """Counts the epoch, and keeps its parameters where no earlier epoch was as accurate."""
    learners = learners._replace(epoch=learners.epoch + 1)
    better = validation_accuracy > learners.best_accuracy
    return learners._replace(
        best_parameters=jax.vmap(tree_where)(better, learners.parameters, learners.best_parameters),
        best_epoch=jnp.where(better, learners.epoch, learners.best_epoch),
        best_accuracy=jnp.where(better, validation_accuracy, learners.best_accuracy),
    )


def tree_where(condition: jax.Array, new: Any, old: Any) -> Any:
    """`new` if a scalar condition holds, else `old`, leaf by leaf."""
    return jax.tree.map(functools.partial(jnp.where, condition), new, old)
