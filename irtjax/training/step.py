"""One step of a network: the gradient of a minibatch's loss, the learning rate, the optimizer's update."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from irtjax.networks import Network, Parameters
from irtjax.training.data import Data, Owned, take
from irtjax.training.sparse_embeddings import pad_rows, renumber, rows_of, update
from irtjax.types import AnyArray


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
    augment: Callable[[jax.Array, jax.Array], jax.Array] | None = None
    loss: Callable[[jax.Array, jax.Array], jax.Array] = cross_entropy


def over_networks(function: Callable[..., Any]) -> Callable[..., Any]:
    """`jax.vmap`; one network alone has no batch axis in its products, which would cost an encoder 6% on a CPU.

    For gradients alone: an optimizer that took the axis away and put it back would copy all that it updates.
    """

    def mapped(*args: Any) -> Any:
        if len(jax.tree.leaves(args)[0]) > 1:
            return jax.vmap(function)(*args)
        return jax.tree.map(lambda leaf: leaf[None], function(*jax.tree.map(lambda leaf: leaf[0], args)))

    return mapped


class Place(NamedTuple):
    """Where minibatches are in an epoch: of its `steps`, `behind` lie behind them; scalars, or (G,) of networks."""

    behind: AnyArray | int
    steps: AnyArray | int


def share_of_rate(
    warmup: float | None, progress: AnyArray | float, step_share: AnyArray | float = 0.0
) -> jax.Array | float:
    """The learning rate as a share of the network's own, which rises to 1 and then falls to 0, each by a straight line.

    (p + δ) / w while training warms up, then (1 - p) / (1 - w).

    Args:
        warmup: w, the share of the training in which it rises, at least δ; None for a constant rate.
        progress: p, the share of the training, if it takes all the epochs that it may, that lies behind a minibatch.
        step_share: δ, the share that one minibatch is.
    """
    if warmup is None:
        return 1.0
    warm = jnp.maximum(warmup, step_share)
    rising, falling = (progress + step_share) / warm, (1 - progress) / jnp.maximum(1 - warm, step_share)
    return jnp.clip(jnp.minimum(rising, falling), 0, 1)


def gradient(
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


def descend(
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


def tree_where(condition: jax.Array, new: Any, old: Any) -> Any:
    """`new` if a scalar condition holds, else `old`, leaf by leaf."""
    return jax.tree.map(functools.partial(jnp.where, condition), new, old)
