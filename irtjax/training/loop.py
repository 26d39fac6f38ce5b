"""Epochs until patience runs out: minibatches from a prefix of an order, early stopping, best parameters.

Everything here carries a leading axis of G networks. Networks are vmapped inside the loop over steps, not around it, so
that what a step reads can have one shape for all of them: text is cut to the longest sentence that any of them drew.

`train` is the loop of programs whose networks all begin together: curricula, soft labels, joint training. Networks that
begin one after the other, as in crowds, go through the slots of `irtjax.training.pool`, which calls `train_epoch`, too.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.errors import InputError
from irtjax.kernels.formulation import for_accelerator
from irtjax.networks import Parameters
from irtjax.networks.hashing import permute
from irtjax.training.data import Data, Owned, accuracy, default_mesh, on_devices
from irtjax.training.step import Place, Trainer, descend, gradient, over_networks, share_of_rate, tree_where
from irtjax.types import AnyArray

WINDOW = 64  # minibatches that are drawn together; of text, sorted by length
ALL_UNITS = np.iinfo(np.int32).max  # a width that masks no hidden unit


def _length_order() -> np.ndarray:
    """(WINDOW + 1, WINDOW): which of `count` minibatches by length comes at each place of a window.

    A random order of `count`, and at each place nearly the same share of them is shorter, whatever their number: so
    networks whose windows are of different size still read sentences of similar length together.
    """
    draws = np.random.default_rng(0).random(WINDOW)
    shorter = draws < draws[:, None]  # (place, other place)
    earlier = np.arange(WINDOW) < np.arange(WINDOW + 1)[:, None]  # (count, place)
    return np.where(earlier, earlier.astype(np.int32) @ shorter.T, 0)


LENGTH_ORDER = _length_order()


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
    """Networks in training after `epoch` epochs.

    `best_*` belong to the epoch of the highest validation accuracy so far.
    """

    key: jax.Array
    parameters: Parameters
    optimizer_state: Any
    epoch: jax.Array
    best_parameters: Parameters
    best_epoch: jax.Array
    best_accuracy: jax.Array


def start(trainer: Trainer, plan: Plan, initial: tuple[AnyArray | None, Any]) -> Learner:
    """One learner before its first epoch, for a plan without the leading axis; begins from what `Data.initial` is.

    Raises:
        InputError: word vectors to be trained, and none to begin from.
    """
    init_key, key = jax.random.split(plan.key)
    embeddings, weights = initial
    parameters = trainer.network.init(init_key, jnp.asarray(plan.width), weights)
    optimizer_state = trainer.optimizer.init(parameters)
    if trainer.own_embeddings:
        if embeddings is None:
            raise InputError("`own_embeddings` is set, but the data have no word vectors to train: leave it out")
        vectors = jnp.asarray(embeddings)
        parameters = Owned(parameters, vectors)
        optimizer_state = (optimizer_state, trainer.optimizer.init(vectors))
    return Learner(
        key=key,
        parameters=parameters,
        optimizer_state=optimizer_state,
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
    place: Place | None = None,
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
        place: of these minibatches in the epoch, for a rate that rises and falls; None where they are all of it.
    """
    keys = jax.vmap(jax.random.split)(jax.vmap(jax.random.fold_in)(learners.key, learners.epoch))
    batch, last = trainer.batch_size, jnp.max(num_steps)
    live = jnp.ones(plans.size.shape, bool) if live is None else live
    first = jnp.zeros(plans.size.shape, jnp.int32) if first is None else first
    behind, in_all = Place(0, num_steps) if place is None else place
    step_share = 1 / (trainer.max_epochs * jnp.maximum(in_all, 1))  # one minibatch, of the training

    def gradients(parameters, at, chosen, cut):
        step_keys = jax.vmap(jax.random.fold_in)(keys[:, 1], first * WINDOW + at)
        return over_networks(functools.partial(gradient, trainer, data, cut))(
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
            turns = jnp.asarray(LENGTH_ORDER)[count]
        turns = jnp.broadcast_to(turns, (live.size, WINDOW))

        def step(at, carry):
            starts = turns[:, at % WINDOW] * batch
            chosen = jax.vmap(lambda row, start: jax.lax.dynamic_slice_in_dim(row, start, batch))(drawn, starts)
            active = live & (at < num_steps)
            if trainer.buckets:
                level = jnp.where(active[:, None], data.bucket[chosen], 0).max().astype(jnp.int32)
                slopes = jax.lax.switch(level, levels, carry[0], at, chosen)
            else:
                slopes = levels[0](carry[0], at, chosen)
            progress = learners.epoch / trainer.max_epochs + (behind + at) * step_share
            rates = plans.learning_rate * share_of_rate(trainer.warmup, progress, step_share)
            can_wait = jnp.ndim(num_steps) > 0
            return jax.vmap(functools.partial(descend, trainer, can_wait))(*carry, slopes, rates, active)

        return jax.lax.fori_loop(number * WINDOW, number * WINDOW + jnp.max(count), step, carry)

    carry = jax.lax.fori_loop(0, -(-last // WINDOW), window, (learners.parameters, learners.optimizer_state))
    return learners._replace(parameters=carry[0], optimizer_state=carry[1])


def validate(trainer: Trainer, learners: Learner, data: Data, live: jax.Array | None = None) -> Learner:
    """Ends an epoch of each network: answers the split to stop on and keeps parameters that are the best so far.

    Args:
        trainer: how.
        learners: G networks.
        data: the task.
        live: (G,) which of them matter; None for all. On a processor the others do not answer, which would take as long
            as for those that do; on an accelerator all answer side by side.
    """
    answer = functools.partial(accuracy, trainer.network)
    split = data.validation if data.stop_on is None else data.stop_on
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


OnEpoch = Callable[[np.ndarray, np.ndarray], None]


class Program(Protocol):
    """What networks that begin together do in an epoch. Equal ones are compiled once: frozen dataclasses.

    A problem is a pytree of arrays that no epoch changes; a memory, one of what an epoch leaves to the next, each array
    with a leading axis of networks.
    """

    @property
    def trainer(self) -> Trainer:
        """Whose patience and number of epochs count."""

    def begin(self, problem: Any, keys: jax.Array) -> tuple[Learner, Any]:
        """The networks of some keys, and the memory, before the first epoch."""

    def epoch(self, problem: Any, learners: Learner, memory: Any, active: jax.Array) -> tuple[Learner, jax.Array, Any]:
        """The networks after an epoch, their validation accuracies, and the memory; of the `active` (G,) ones.

        What becomes of the other networks means nothing; their part of the memory is to stay.
        """

    def end(self, problem: Any, learners: Learner, memory: Any) -> Any:
        """What is kept, with a leading axis of networks."""


def train(
    program: Program,
    keys: jax.Array,
    problem: Any,
    mesh: jax.sharding.Mesh | None = None,
    on_epoch: OnEpoch | None = None,
) -> Any:
    """Trains one network per key, each until its patience runs out; all epochs of all are one call of one program.

    With `on_epoch` each epoch is a call of that program, so that nothing has to be called from within it: a program
    that calls the host is compiled anew in every process, as it cannot be kept on disk.

    Args:
        program: what an epoch is.
        keys: (S,) of initial weights and minibatches.
        problem: arrays, on every device of the mesh.
        mesh: devices that networks are spread over; None for the default device.
        on_epoch: called after each epoch with the epochs completed and the best validation accuracies, (S,) each.

    Returns:
        What `Program.end` keeps, with a leading axis of S.
    """
    mesh = default_mesh(1) if mesh is None else mesh
    number = keys.shape[0]
    # filled up with copies, so that all devices have equally many
    filled = keys[jnp.arange(-(-number // mesh.size) * mesh.size) % number]
    state, most = _begin(program, mesh, filled, problem), program.trainer.max_epochs
    for until in range(1, most + 1) if on_epoch is not None else [most]:
        state, trains = _train(program, mesh, state, problem, until)
        if on_epoch is not None:
            on_epoch(*(np.asarray(told[:number]) for told in (state[0].epoch, state[0].best_accuracy)))
            if not trains.any():
                break
    return jax.tree.map(lambda leaf: leaf[:number], _end(program, mesh, state, problem))


_State = tuple[Learner, Any]


@functools.partial(jax.jit, static_argnums=(0, 1))
def _begin(program: Program, mesh: jax.sharding.Mesh, keys: jax.Array, problem: Any) -> _State:
    return on_devices(lambda keys, problem: program.begin(problem, keys), mesh, (True, False))(keys, problem)


@functools.partial(jax.jit, static_argnums=(0, 1), donate_argnums=2)
def _train(
    program: Program, mesh: jax.sharding.Mesh, state: _State, problem: Any, until: int | jax.Array
) -> tuple[_State, jax.Array]:
    """Epochs until so many are completed, and which networks then go on."""

    def epochs(state: _State, problem: Any, until: jax.Array) -> tuple[_State, jax.Array]:
        def active(learners: Learner) -> jax.Array:
            return is_training(program.trainer, learners) & (learners.epoch < until)

        def epoch(state: _State) -> _State:
            learners, memory = state
            trained, validation_accuracy, memory = program.epoch(problem, learners, memory, active(learners))
            ended = end_epoch(trained, validation_accuracy)
            return jax.vmap(tree_where)(active(learners), ended, learners), memory

        state = jax.lax.while_loop(lambda state: active(state[0]).any(), epoch, state)
        return state, is_training(program.trainer, state[0])

    return on_devices(epochs, mesh, (True, False, False))(state, problem, until)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _end(program: Program, mesh: jax.sharding.Mesh, state: _State, problem: Any) -> Any:
    return on_devices(lambda state, problem: program.end(problem, *state), mesh, (True, False))(state, problem)
