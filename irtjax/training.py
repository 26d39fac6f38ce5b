"""Training many networks as one program: minibatches from a prefix of an order, early stopping, best parameters."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from irtjax.networks import Network, Parameters
from irtjax.tasks import Task

ANSWER_BLOCK = 1024  # examples answered at once: bounds the memory of a crowd's hidden layers


class Examples(NamedTuple):
    """Inputs (N, ...) and gold labels (N,) on the device."""

    inputs: jax.Array
    labels: jax.Array


class Data(NamedTuple):
    """The three splits of a task on the device, once, shared by all networks."""

    train: Examples
    validation: Examples
    test: Examples


@dataclasses.dataclass(frozen=True)
class Trainer:
    """How to train; hashable, so that it can be a static argument of jit.

    Attributes:
        network: what is trained.
        optimizer: an optax transformation.
        batch_size: examples a step.
        patience: epochs without a better validation accuracy after which training stops.
        max_epochs: where it stops in any case.
    """

    network: Network
    optimizer: optax.GradientTransformation
    batch_size: int
    patience: int
    max_epochs: int


class Plan(NamedTuple):
    """What one network is trained on (a leading axis of networks is added by `train_networks`).

    Attributes:
        key: of its initial weights and minibatches.
        order: (N,) int32 indices of training examples; the first `size` are its training set.
        size: scalar int32.
        labels: (N,) integer labels it is shown, corrupted ones included.
    """

    key: jax.Array
    order: jax.Array
    size: jax.Array
    labels: jax.Array


class Learner(NamedTuple):
    """One network in training; `best_*` belong to the epoch of its highest validation accuracy so far."""

    key: jax.Array
    parameters: Parameters
    optimizer_state: Any
    epoch: jax.Array
    best_parameters: Parameters
    best_epoch: jax.Array
    best_accuracy: jax.Array


def to_device(task: Task) -> Data:
    """Puts the splits of a task on the default device, inputs in the dtype they have."""
    return Data(*(Examples(*map(jnp.asarray, split[:2])) for split in (task.train, task.validation, task.test)))


def start(trainer: Trainer, key: jax.Array) -> Learner:
    """A learner before its first epoch."""
    init_key, key = jax.random.split(key)
    parameters = trainer.network.init(init_key, width)
    return Learner(
        key=key,
        parameters=parameters,
        optimizer_state=trainer.optimizer.init(parameters),
        epoch=jnp.int32(0),
        best_parameters=parameters,
        best_epoch=jnp.int32(0),
        best_accuracy=jnp.float32(-1),
    )


def is_training(trainer: Trainer, learner: Learner) -> jax.Array:
    """Whether neither patience nor epochs have run out."""
    return (learner.epoch - learner.best_epoch < trainer.patience) & (learner.epoch < trainer.max_epochs)


def predict(network: Network, parameters: Parameters, inputs: jax.Array) -> jax.Array:
    """Most probable class of each input: (N, ...) -> (N,) int32, in blocks of bounded memory."""
    num_inputs = inputs.shape[0]
    block = min(ANSWER_BLOCK, num_inputs)
    whole = num_inputs // block * block

    def answer(x):
        return network.logits(parameters, x).argmax(-1).astype(jnp.int32)

    blocks = jax.lax.map(answer, inputs[:whole].reshape(-1, block, *inputs.shape[1:]))
    return jnp.concatenate([blocks.reshape(-1), answer(inputs[whole:])])


def accuracy(network: Network, parameters: Parameters, examples: Examples) -> jax.Array:
    """Share of examples whose predicted class is the gold label."""
    return (predict(network, parameters, examples.inputs) == examples.labels).mean()


def train_epoch(
    trainer: Trainer, learner: Learner, inputs: jax.Array, plan: Plan, num_steps: int | jax.Array
) -> Learner:
    """`num_steps` minibatches from the first `plan.size` examples of `plan.order`.

    The prefix is shuffled anew each epoch and read from its beginning: no example returns before all others
    have been seen. Where it ends before the steps do, reading starts again from its beginning.
    """
    num_examples = plan.order.shape[0]
    key = jax.random.fold_in(learner.key, learner.epoch)
    # a uniform draw a place, and 2 for places past the prefix: sorting shuffles the prefix and leaves it in front
    draws = jnp.where(jnp.arange(num_examples) < plan.size, jax.random.uniform(key, (num_examples,)), 2.0)
    shuffled = plan.order[jnp.argsort(draws)]

    def loss(parameters, chosen):
        logits = trainer.network.logits(parameters, inputs[chosen])
        labels = plan.labels[chosen].astype(jnp.int32)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    def step(at, carry):
        parameters, optimizer_state = carry
        places = (at * trainer.batch_size + jnp.arange(trainer.batch_size)) % plan.size
        gradient = jax.grad(loss)(parameters, shuffled[places])
        updates, optimizer_state = trainer.optimizer.update(gradient, optimizer_state, parameters)
        return optax.apply_updates(parameters, updates), optimizer_state

    parameters, optimizer_state = jax.lax.fori_loop(0, num_steps, step, (learner.parameters, learner.optimizer_state))
    return learner._replace(parameters=parameters, optimizer_state=optimizer_state)


def end_epoch(learner: Learner, validation_accuracy: jax.Array) -> Learner:
    """Counts the epoch, and keeps its parameters if no earlier epoch was as accurate."""
    learner = learner._replace(epoch=learner.epoch + 1)
    better = validation_accuracy > learner.best_accuracy
    return learner._replace(
        best_parameters=tree_where(better, learner.parameters, learner.best_parameters),
        best_epoch=jnp.where(better, learner.epoch, learner.best_epoch),
        best_accuracy=jnp.where(better, validation_accuracy, learner.best_accuracy),
    )


def tree_where(condition: jax.Array, new: Any, old: Any) -> Any:
    """`new` if a scalar condition holds, else `old`, leaf by leaf."""
    return jax.tree.map(functools.partial(jnp.where, condition), new, old)


def train_one(trainer: Trainer, plan: Plan, data: Data, steps_per_epoch: int) -> Learner:
    """Trains one network to its end; what each network of `train_networks` goes through, without the crowd."""

    def epoch(learner):
        return _epoch(trainer, learner, plan, data, steps_per_epoch)

    return jax.lax.while_loop(functools.partial(is_training, trainer), epoch, start(trainer, plan.key))


def _epoch(trainer, learner, plan, data, steps_per_epoch):
    learner = train_epoch(trainer, learner, data.train.inputs, plan, steps_per_epoch)
    return end_epoch(learner, accuracy(trainer.network, learner.parameters, data.validation))


# Both programs pin the placement of what they return: left to the compiler, leaves that start as constants would be
# copied to every device, and the second epoch would be compiled anew for another placement than the first.
@functools.partial(jax.jit, static_argnums=(0, 1))
def _start_all(trainer, spread, keys):
    return jax.lax.with_sharding_constraint(jax.vmap(functools.partial(start, trainer))(keys), spread)


@functools.partial(jax.jit, static_argnums=(0, 1, 2), donate_argnums=3)
def _advance_all(trainer, spread, steps_per_epoch, learners, plans, data):
    """One epoch of every network that is still training; the others stay as they are."""

    def advance(learner, plan):
        new = _epoch(trainer, learner, plan, data, steps_per_epoch)
        return tree_where(is_training(trainer, learner), new, learner)

    learners = jax.lax.with_sharding_constraint(jax.vmap(advance)(learners, plans), spread)
    return learners, is_training(trainer, learners)


def train_networks(
    trainer: Trainer,
    plans: Plan,
    data: Data,
    steps_per_epoch: int,
    *,
    mesh: jax.sharding.Mesh | None = None,
    on_epoch: Callable[[int, int, np.ndarray], None] | None = None,
) -> Learner:
    """Trains J networks as one jitted, vmapped program, called once an epoch until all have stopped.

    An epoch is the same number of steps for every network, whatever the size of its training set, so that no
    network waits for another.

    Args:
        trainer: how.
        plans: on what; every leaf with a leading axis of J networks.
        data: the splits.
        steps_per_epoch: minibatches between two looks at the validation accuracy.
        mesh: a one-dimensional device mesh that the networks are spread over; None for all local devices.
        on_epoch: called after each epoch with its number, how many networks are still training, and the best
            validation accuracies (J,).

    Returns:
        The learners, every leaf with a leading axis of J.
    """
    num_networks = plans.size.shape[0]
    mesh = default_mesh() if mesh is None else mesh
    # every device gets equally many networks: the last one is repeated, and its copies dropped at the end
    padding = -num_networks % mesh.size
    indices = np.minimum(np.arange(num_networks + padding), num_networks - 1)
    spread = jax.NamedSharding(mesh, jax.P(*mesh.axis_names))
    plans = jax.device_put(jax.tree.map(lambda leaf: leaf[indices], plans) if padding else plans, spread)
    data = jax.device_put(data, jax.NamedSharding(mesh, jax.P()))

    learners, training, epoch = _start_all(trainer, spread, plans.key), True, 0
    while np.any(training):
        learners, training = _advance_all(trainer, spread, steps_per_epoch, learners, plans, data)
        epoch += 1
        if on_epoch is not None:
            on_epoch(epoch, int(training[:num_networks].sum()), np.asarray(learners.best_accuracy)[:num_networks])
    return jax.tree.map(lambda leaf: leaf[:num_networks], learners) if padding else learners


def default_mesh() -> jax.sharding.Mesh:
    """All local devices in a row."""
    return jax.make_mesh((jax.local_device_count(),), ("network",), axis_types=(jax.sharding.AxisType.Auto,))


@functools.partial(jax.jit, static_argnums=0)
def predict_all(network: Network, parameters: Parameters, inputs: jax.Array) -> jax.Array:
    """Predicted classes (J, N) of J networks, for parameters with a leading axis of J."""
    return jax.vmap(lambda p: predict(network, p, inputs))(parameters)
