"""Any number of networks through a pool of slots: a slot whose network has stopped takes the next that waits.

A crowd is as large as its user likes, a device is not. So a few networks train at once, an epoch of all of them at a
time; between epochs those that have stopped give their slots to others, and towards the end, when none waits any more,
the ones left close ranks. Memory is bounded by the number of slots, and hardly a step is wasted on a network that has
stopped. Slots are spread evenly over the devices of a mesh; no device waits for another within an epoch.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.training.data import Data, EvaluationSplit, classify
from irtjax.training.devices import on_devices
from irtjax.training.trainer import Learner, Plan, Trainer, is_training, start, train_epoch, tree_where, validate

EMPTY = -1  # in place of a network's number
LADDER = 4  # the pool shrinks by this factor when no more than that share of it is in use


class Progress(NamedTuple):
    """Where a pool stands.

    Attributes:
        finished, training, waiting: numbers of networks.
        accuracies: (J,) best validation accuracies so far, NaN before a network's first.
    """

    finished: int
    training: int
    waiting: int
    accuracies: np.ndarray


class Pool(NamedTuple):
    """The state between two epochs: with what made it, all that is needed to go on.

    Attributes:
        numbers: (slots,) which network is in a slot, or `EMPTY`.
        plans, learners: theirs, with a leading axis of slots; None before the first are made.
        waiting: number of the first network that has not started; those from it on wait.
        done: (number, parameters of the best epoch) of networks that have stopped and have not been handed over yet.
        epochs, best_epochs, best_accuracies: (J,) of all networks so far.
    """

    numbers: np.ndarray
    plans: Plan | None
    learners: Learner | None
    waiting: int
    done: tuple[tuple[int, Any], ...]
    epochs: np.ndarray
    best_epochs: np.ndarray
    best_accuracies: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Job:
    """What a pool works on.

    Attributes:
        trainer: how networks are trained.
        plan: (row, shared) -> Plan of one network; the same function for equal work, as programs are compiled for it.
        rows: what networks differ in; NumPy arrays with a leading axis of J.
        shared: arrays that all plans have in common.
        data: the task, on all devices of the mesh.
        steps_per_epoch: minibatches between two looks at the validation accuracy. The same number for every network,
            whatever the size of its training set, so that no network waits for another.
        slots: networks on a device at once; see `pool_size`.
        mesh: devices in a row.
    """

    trainer: Trainer
    plan: Callable[[Any, Any], Plan]
    rows: Any
    shared: Any
    data: Data
    steps_per_epoch: int
    slots: int
    mesh: jax.sharding.Mesh

    @property
    def num_networks(self) -> int:
        """J."""
        return len(jax.tree.leaves(self.rows)[0])

    @property
    def together(self) -> int:
        """Networks that answer together once they have stopped."""
        return self.mesh.size * max(1, self.slots // LADDER)


# The programs, each on every device's own slots.
@functools.partial(jax.jit, static_argnums=(0, 1, 2), donate_argnums=3)
def _fill(trainer, make_plan, mesh, slots, fresh, rows, shared, embeddings):
    """Puts new networks into the slots marked `fresh`, one after the other: making a plan sorts all examples."""

    def fill(slots, fresh, rows, shared, embeddings):
        def one(slot):
            old, fresh, row = slot

            def begin():
                plan = make_plan(row, shared)
                return plan, start(trainer, plan, embeddings)

            return begin() if old is None else jax.lax.cond(fresh, begin, lambda: old)

        return jax.lax.map(one, (slots, fresh, rows))

    return on_devices(fill, mesh, (True, True, True, False, False))(slots, fresh, rows, shared, embeddings)


@functools.partial(jax.jit, static_argnums=(0, 1), donate_argnums=2)
def _train(trainer, mesh, learners, plans, live, data, num_steps):
    def train(learners, plans, live, data, num_steps):
        new = train_epoch(trainer, learners, plans, data, jnp.where(live.any(), num_steps, 0), live)
        return jax.vmap(tree_where)(live, new, learners)

    return on_devices(train, mesh, (True, True, True, False, False))(learners, plans, live, data, num_steps)


@functools.partial(jax.jit, static_argnums=(0, 1), donate_argnums=2)
def _validate(trainer, mesh, learners, live, data):
    def end(learners, live, data):
        learners = jax.vmap(tree_where)(live, validate(trainer, learners, data), learners)
        return learners, live & is_training(trainer, learners)

    return on_devices(end, mesh, (True, True, False))(learners, live, data)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _classify(network, mesh, parameters, embeddings, split):
    def answer(parameters, embeddings, split):
        return jax.vmap(functools.partial(classify, network), (0, None, None))(parameters, embeddings, split)

    return on_devices(answer, mesh, (True, False, False))(parameters, embeddings, split)


@jax.jit
def _row(tree, at):
    return jax.tree.map(lambda leaf: leaf[at], tree)


def _slot(tree: Any, at: int) -> Any:
    """What a slot holds, from the device that holds it: a slice of the whole arrays would make all devices meet."""
    first = jax.tree.leaves(tree)[0]
    on_device = first.shape[0] // len(first.addressable_shards)
    start = at // on_device * on_device

    def part(leaf):
        return next(shard.data for shard in leaf.addressable_shards if (shard.index[0].start or 0) == start)

    return jax.device_get(_row(jax.tree.map(part, tree), at - start))


def classify_all(job: Job, parameters: Any, split: EvaluationSplit) -> np.ndarray:
    """Predicted classes (J, N) of networks whose parameters have a leading axis of J, any number.

    Filled up to a multiple of `job.together` with copies, so that the last few need no program of their own.
    """
    count = len(jax.tree.leaves(parameters)[0])
    at = np.minimum(np.arange(-(-count // job.together) * job.together), count - 1)
    parameters = jax.tree.map(lambda leaf: leaf[at], parameters)
    return np.asarray(_classify(job.trainer.network, job.mesh, parameters, job.data.embeddings, split))[:count]


def begin(job: Job) -> Pool:
    """An empty pool, no larger than the networks can fill; all of them waiting."""
    num_networks = job.num_networks
    return Pool(
        numbers=np.full(min(job.slots, -(-num_networks // job.mesh.size)) * job.mesh.size, EMPTY),
        plans=None,
        learners=None,
        waiting=0,
        done=(),
        epochs=np.zeros(num_networks, np.int32),
        best_epochs=np.zeros(num_networks, np.int32),
        best_accuracies=np.full(num_networks, np.nan, np.float32),
    )


def resume(job: Job, tables: dict[str, Any], leaves: list[np.ndarray], done: tuple[tuple[int, list], ...]) -> Pool:
    """A pool whose learners and done parameters are given as lists of leaves, in the order of `jax.tree.leaves`."""
    rows = jax.tree.map(lambda column: column[np.maximum(tables["numbers"], 0)], job.rows)
    marks = np.ones(tables["numbers"].size, bool)
    plans, made = _fill(job.trainer, job.plan, job.mesh, None, marks, rows, job.shared, job.data.embeddings)
    learners = jax.tree.map(_like, made, jax.tree.unflatten(jax.tree.structure(made), leaves))
    structure = jax.tree.structure(made.parameters)
    done = tuple((number, jax.tree.unflatten(structure, parameters)) for number, parameters in done)
    return Pool(plans=plans, learners=learners, done=done, **tables)


def storable(leaf: jax.Array) -> jax.Array:
    """An array that NumPy has a type for: random keys as the integers they are made of."""
    return jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf


def _like(made: jax.Array, stored: np.ndarray) -> jax.Array:
    """A stored array back as one of the kind and placement of `made`."""
    if jnp.issubdtype(made.dtype, jax.dtypes.prng_key):
        stored = jax.random.wrap_key_data(stored)
    return jax.device_put(stored, made.sharding)


def fill(job: Job, pool: Pool) -> Pool:
    """Gives empty slots to networks that wait."""
    numbers, waiting = pool.numbers.copy(), pool.waiting
    fresh = np.flatnonzero(numbers == EMPTY)[: job.num_networks - waiting]
    if fresh.size == 0:
        return pool
    numbers[fresh] = np.arange(waiting, waiting + fresh.size)
    marks = np.isin(np.arange(numbers.size), fresh)
    rows = jax.tree.map(lambda column: column[np.maximum(numbers, 0)], job.rows)
    old = None if pool.plans is None else (pool.plans, pool.learners)
    plans, learners = _fill(job.trainer, job.plan, job.mesh, old, marks, rows, job.shared, job.data.embeddings)
    return pool._replace(numbers=numbers, plans=plans, learners=learners, waiting=waiting + fresh.size)


def train_slots(job: Job, learners: Learner, plans: Plan, live: np.ndarray, num_steps: int) -> Learner:
    """So many minibatches of every slot that is marked `live` (slots,); the given learners are used up."""
    return _train(job.trainer, job.mesh, learners, plans, live, job.data, num_steps)


def epoch(job: Job, pool: Pool) -> Pool:
    """One epoch of every network in the pool; those that have stopped leave their slots."""
    live = pool.numbers != EMPTY
    learners = train_slots(job, pool.learners, pool.plans, live, job.steps_per_epoch)
    learners, training = _validate(job.trainer, job.mesh, learners, live, job.data)
    training = np.asarray(training)
    table = {}
    for name, column in (("epochs", "epoch"), ("best_epochs", "best_epoch"), ("best_accuracies", "best_accuracy")):
        table[name] = getattr(pool, name).copy()
        table[name][pool.numbers[live]] = np.asarray(getattr(learners, column))[live]
    stopped = np.flatnonzero(live & ~training)
    best = learners.best_parameters
    done = tuple((int(pool.numbers[at]), _slot(best, at)) for at in stopped)
    numbers = np.where(training, pool.numbers, EMPTY)
    return pool._replace(numbers=numbers, learners=learners, done=pool.done + done, **table)


def shrink(job: Job, pool: Pool) -> Pool:
    """A smaller pool for the networks left, if none waits and they fit on the next rung of the ladder."""
    live = np.flatnonzero(pool.numbers != EMPTY)
    slots = -(-pool.numbers.size // (LADDER * job.mesh.size)) * job.mesh.size
    if pool.waiting < job.num_networks or not 0 < live.size <= slots < pool.numbers.size:
        return pool
    at = np.resize(live, slots)
    numbers = np.where(np.arange(slots) < live.size, pool.numbers[at], EMPTY)
    # by way of the host, which is simplest and happens a few times in a run
    plans, learners = jax.tree.map(lambda leaf: _with_rows(leaf, at), (pool.plans, pool.learners))
    return pool._replace(numbers=numbers, plans=plans, learners=learners)


def _with_rows(leaf: jax.Array, at: np.ndarray) -> jax.Array:
    return _like(leaf, np.asarray(storable(leaf))[at])


def train_all(
    job: Job,
    pool: Pool,
    on_finished: Callable[[np.ndarray, Any], None],
    on_epoch: Callable[[Pool], None] | None = None,
) -> Pool:
    """Trains all networks of a job, each to its own end.

    Args:
        job: what to do.
        pool: from `begin`, or from `resume`. Its arrays are used up.
        on_finished: called with the numbers (n,) of networks that have stopped and the parameters of their best epochs,
            with a leading axis of n; a few at a time, so that they can answer together.
        on_epoch: called after each epoch with the pool, whose arrays the next epoch uses up. Networks that were handed
            over before are no longer in it.

    Returns:
        The pool at its end, with epochs and accuracies of all networks.
    """
    while pool.waiting < job.num_networks or (pool.numbers != EMPTY).any():
        pool = shrink(job, epoch(job, fill(job, pool)))
        at_end = pool.waiting == job.num_networks and (pool.numbers == EMPTY).all()
        while len(pool.done) >= job.together or (at_end and pool.done):
            numbers, parameters = zip(*pool.done[: job.together], strict=True)
            on_finished(np.array(numbers), jax.tree.map(lambda *leaves: np.stack(leaves), *parameters))
            pool = pool._replace(done=pool.done[job.together :])
        if on_epoch is not None:
            on_epoch(pool)
    return pool


def progress(pool: Pool) -> Progress:
    """Where a pool stands."""
    training, waiting = int((pool.numbers != EMPTY).sum()), pool.epochs.size - pool.waiting
    return Progress(pool.epochs.size - training - waiting, training, waiting, pool.best_accuracies)
