"""Any number of networks through a pool of slots: when a network stops, its slot goes to the next one that waits.

A crowd is as large as its user likes, but a device is not. So a few networks train at a time, in rounds: until the
first of them ends an epoch. Between rounds, networks that have stopped give their slots to others. Towards the end,
when no network waits any more, the pool shrinks to the networks that are left. Memory is bounded by the number of
slots, and few steps are wasted on networks that have stopped. Slots are spread evenly over the devices of a mesh; no
device waits for another within a round.

Epochs may be of different length. A round goes on to the end of a window of `trainer.WINDOW` minibatches, so that the
windows of all networks begin together; networks whose epochs end earlier in that window wait for it.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from irtjax.networks import Parameters
from irtjax.training import pool_programs as programs
from irtjax.training.data import Data, EvaluationSplit
from irtjax.training.trainer import WINDOW, Learner, Plan, Trainer

EMPTY = -1  # in place of a network's number
SHRINK_FACTOR = 4  # the pool shrinks by this factor when the networks left fit into that part of it


class Progress(NamedTuple):
    """Where a pool, or a crowd that is trained in several pools, stands.

    Attributes:
        finished, training, waiting: numbers of networks.
        accuracies: (J,) best validation accuracies so far, NaN for networks without a first one.
    """

    finished: int
    training: int
    waiting: int
    accuracies: np.ndarray


class Pool(NamedTuple):
    """The state between two rounds: together with its job, all that is needed to go on.

    Attributes:
        numbers: (slots on all devices,) which network is in a slot, or `EMPTY`.
        positions: (slots on all devices,) minibatches of the epoch that the network has behind it.
        plans, learners: those of the networks, with a leading axis of slots; meaningless in empty slots.
        waiting: number of the first network that has not started; it and all after it wait.
        done: (number, parameters of the best epoch) of networks that have stopped and have not been handed on yet.
        epochs, best_epochs, best_accuracies: (J,) of all networks so far.
        answer_batch: how many networks answer at once when they have stopped.
    """

    numbers: np.ndarray
    positions: np.ndarray
    plans: Plan
    learners: Learner
    waiting: int
    done: tuple[tuple[int, Parameters], ...]
    epochs: np.ndarray
    best_epochs: np.ndarray
    best_accuracies: np.ndarray
    answer_batch: int


@dataclasses.dataclass(frozen=True, eq=False)
class Job:
    """What a pool works on.

    Attributes:
        trainer: how networks are trained.
        plan: (row, shared) -> Plan of one network. Programs are compiled for this function: equal work should give the
            same one.
        rows: what networks differ in; NumPy arrays with a leading axis of J.
        shared: arrays that all plans have in common.
        data: the task, on all devices of the mesh.
        steps: (J,) minibatches in an epoch, between two looks at the validation accuracy, of each network.
        mesh: devices in a row.
    """

    trainer: Trainer
    plan: programs.MakePlan
    rows: Any
    shared: Any
    data: Data
    steps: np.ndarray
    mesh: jax.sharding.Mesh

    @property
    def num_networks(self) -> int:
        """J."""
        return len(jax.tree.leaves(self.rows)[0])


@dataclasses.dataclass(frozen=True, eq=False)
class Finished:
    """Networks that have stopped and are about to leave the pool.

    Attributes:
        job: that they were trained in.
        numbers: (n,) which they are.
        parameters: of their best epochs, with a leading axis of n.
        epochs, best_epochs, best_accuracies: (n,) as in `Pool`.
        answer_batch: of their pool.
    """

    job: Job
    numbers: np.ndarray
    parameters: Parameters
    epochs: np.ndarray
    best_epochs: np.ndarray
    best_accuracies: np.ndarray
    answer_batch: int

    def classify(self, split: EvaluationSplit) -> np.ndarray:
        """The classes (n, N) that they predict for the N examples of a split."""
        # filled up with copies, so that the last few networks need no program of their own
        at = np.minimum(np.arange(self.answer_batch), self.numbers.size - 1)
        parameters = jax.tree.map(lambda leaf: leaf[at], self.parameters)
        job = self.job
        classes = programs.classify_all(job.trainer.network, job.mesh, parameters, job.data.embeddings, split)
        return np.asarray(classes)[: self.numbers.size]


def begin(job: Job, slots: int) -> Pool:
    """An empty pool of so many slots on each device, or as many as the networks can fill; all networks wait."""
    size = pool_size(job, slots)
    plans, learners = programs.empty(job.mesh, size, *shapes(job))
    return Pool(
        numbers=np.full(size, EMPTY),
        positions=np.zeros(size, np.int32),
        plans=plans,
        learners=learners,
        waiting=0,
        done=(),
        epochs=np.zeros(job.num_networks, np.int32),
        best_epochs=np.zeros(job.num_networks, np.int32),
        best_accuracies=np.full(job.num_networks, np.nan, np.float32),
        answer_batch=_answer_batch(job, slots),
    )


def pool_size(job: Job, slots: int) -> int:
    """Slots on all devices together, where there are so many on each, or as many as the networks can fill."""
    return min(slots, -(-job.num_networks // job.mesh.size)) * job.mesh.size


def _answer_batch(job: Job, slots: int) -> int:
    return job.mesh.size * max(1, slots // SHRINK_FACTOR)


def shapes(job: Job) -> tuple[Plan, Learner]:
    """The plan and the learner of one network, as shapes and types."""
    return programs.shapes(job.trainer, job.plan, job.rows, job.shared, job.data.given)


class Stored(NamedTuple):
    """A pool as arrays, without what follows from its job.

    Attributes:
        slots: on a device, as given to `begin`.
        numbers, positions, waiting, epochs, best_epochs, best_accuracies: as in `Pool`.
        learners: leaves in the order of `jax.tree.leaves`, made NumPy arrays by `pool_programs.storable`.
        done: numbers of networks that have stopped, each with the leaves of its parameters.
    """

    slots: int
    numbers: np.ndarray
    positions: np.ndarray
    waiting: int
    epochs: np.ndarray
    best_epochs: np.ndarray
    best_accuracies: np.ndarray
    learners: list[np.ndarray]
    done: list[tuple[int, list[np.ndarray]]]


def store(pool: Pool, slots: int) -> Stored:
    """The pool as arrays; `slots` as given to `begin`."""
    tables = {name: getattr(pool, name) for name in Stored._fields if name not in ("slots", "learners", "done")}
    learners = list(map(programs.storable, jax.tree.leaves(pool.learners)))
    done = [(number, jax.tree.leaves(parameters)) for number, parameters in pool.done]
    return Stored(slots=slots, learners=learners, done=done, **tables)


def resume(job: Job, stored: Stored) -> Pool:
    """A pool as it was, on the devices of a job."""
    fields = stored._asdict()
    rows = jax.tree.map(lambda column: column[np.maximum(stored.numbers, 0)], job.rows)
    plans = programs.plan(job.plan, job.mesh, rows, job.shared)
    _, learner = shapes(job)
    restore = functools.partial(programs.restored, programs.spread(job.mesh))
    learners = jax.tree.map(restore, learner, jax.tree.unflatten(jax.tree.structure(learner), fields.pop("learners")))
    structure = jax.tree.structure(learner.parameters)
    done = tuple((number, jax.tree.unflatten(structure, parameters)) for number, parameters in fields.pop("done"))
    return Pool(
        plans=plans, learners=learners, done=done, answer_batch=_answer_batch(job, fields.pop("slots")), **fields
    )


def fill(job: Job, pool: Pool) -> Pool:
    """Gives empty slots to networks that wait."""
    numbers, waiting = pool.numbers.copy(), pool.waiting
    fresh = np.flatnonzero(numbers == EMPTY)[: job.num_networks - waiting]
    if fresh.size == 0:
        return pool
    numbers[fresh] = np.arange(waiting, waiting + fresh.size)
    marks = np.isin(np.arange(numbers.size), fresh)
    rows = jax.tree.map(lambda column: column[np.maximum(numbers, 0)], job.rows)
    old = pool.plans, pool.learners
    plans, learners = programs.fill(job.trainer, job.plan, job.mesh, old, marks, rows, job.shared, job.data.given)
    positions = np.where(marks, 0, pool.positions)
    return pool._replace(
        numbers=numbers, positions=positions, plans=plans, learners=learners, waiting=waiting + fresh.size
    )


def train_slots(
    job: Job,
    learners: Learner,
    plans: Plan,
    live: np.ndarray,
    num_steps: int | np.ndarray,
    positions: np.ndarray | None = None,
) -> Learner:
    """Trains every slot that is marked `live` (slots,) for `num_steps` minibatches; the given learners are used up.

    Args:
        job: of the networks.
        learners: theirs.
        plans: theirs.
        live: (slots,) which are trained.
        num_steps: of all, or (slots,).
        positions: (slots,) minibatches of the epoch that lie behind, a multiple of `WINDOW`; None for none.
    """
    first = np.zeros(live.shape, np.int32) if positions is None else positions // WINDOW
    return programs.train(job.trainer, job.mesh, learners, plans, live, first, num_steps, job.data)


def advance(job: Job, pool: Pool) -> Pool:
    """One round: every network in the pool trains until one of them ends an epoch; those that have stopped leave."""
    live = pool.numbers != EMPTY
    left = np.where(live, job.steps[np.maximum(pool.numbers, 0)] - pool.positions, 0)
    steps = np.minimum(left, -(-left[live].min() // WINDOW) * WINDOW)
    common = steps[live][0]
    # one number for all makes a program that does not choose in each step who takes it
    num_steps = int(common) if (steps[live] == common).all() else steps
    learners = train_slots(job, pool.learners, pool.plans, live, num_steps, pool.positions)
    ended = live & (steps == left)
    learners, training = programs.validate_all(job.trainer, job.mesh, learners, ended, job.data)
    stopped = ended & ~np.asarray(training)
    table = {}
    for name, column in (("epochs", "epoch"), ("best_epochs", "best_epoch"), ("best_accuracies", "best_accuracy")):
        table[name] = getattr(pool, name).copy()
        table[name][pool.numbers[ended]] = np.asarray(getattr(learners, column))[ended]
    best = learners.best_parameters
    done = tuple((int(pool.numbers[at]), programs.read_slot(best, int(at))) for at in np.flatnonzero(stopped))
    return pool._replace(
        numbers=np.where(stopped, EMPTY, pool.numbers),
        positions=np.where(ended, 0, pool.positions + steps).astype(np.int32),
        learners=learners,
        done=pool.done + done,
        **table,
    )


def shrink(job: Job, pool: Pool) -> Pool:
    """A pool smaller by `SHRINK_FACTOR`, if no network waits and those left fit into it; else the pool as it is."""
    live = np.flatnonzero(pool.numbers != EMPTY)
    slots = -(-pool.numbers.size // (SHRINK_FACTOR * job.mesh.size)) * job.mesh.size
    if pool.waiting < job.num_networks or not 0 < live.size <= slots < pool.numbers.size:
        return pool
    at = np.resize(live, slots)
    numbers = np.where(np.arange(slots) < live.size, pool.numbers[at], EMPTY)
    plans, learners = jax.tree.map(lambda leaf: programs.choose_slots(leaf, at), (pool.plans, pool.learners))
    return pool._replace(numbers=numbers, positions=pool.positions[at], plans=plans, learners=learners)


def train_all(
    job: Job,
    pool: Pool,
    on_finished: Callable[[Finished], None],
    on_round: Callable[[Pool], None] | None = None,
) -> Pool:
    """Trains all networks of a job, each to its own end.

    Args:
        job: what to do.
        pool: from `begin` or `resume`. Its arrays are used up.
        on_finished: called with networks that have stopped, in groups of at most `Pool.answer_batch`, so that they can
            answer together.
        on_round: called after each round with the pool, whose arrays the next round uses up. Networks that
            `on_finished` was called with are no longer in it.

    Returns:
        The pool at its end, with epochs and accuracies of all networks.
    """
    pool = _hand_over(job, pool, on_finished)  # one that goes on may have nothing else to do
    while not _at_end(job, pool):
        pool = _hand_over(job, shrink(job, advance(job, fill(job, pool))), on_finished)
        if on_round is not None:
            on_round(pool)
    return pool


def _at_end(job: Job, pool: Pool) -> bool:
    return pool.waiting == job.num_networks and bool((pool.numbers == EMPTY).all())


def _hand_over(job: Job, pool: Pool, on_finished: Callable[[Finished], None]) -> Pool:
    """Networks that have stopped leave the pool, as soon as they fill a group, or nothing is left to wait for."""
    batch = pool.answer_batch
    while len(pool.done) >= batch or (pool.done and _at_end(job, pool)):
        numbers, parameters = zip(*pool.done[:batch], strict=True)
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *parameters)
        at = np.array(numbers)
        tables = (pool.epochs[at], pool.best_epochs[at], pool.best_accuracies[at])
        on_finished(Finished(job, at, stacked, *tables, batch))
        pool = pool._replace(done=pool.done[batch:])
    return pool


def progress(pool: Pool) -> Progress:
    """Where a pool stands."""
    training, waiting = int((pool.numbers != EMPTY).sum()), pool.epochs.size - pool.waiting
    return Progress(pool.epochs.size - training - waiting, training, waiting, pool.best_accuracies)
