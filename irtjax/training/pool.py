"""Any number of networks through a pool of slots: when a network stops, its slot goes to the next one that waits.

A crowd is as large as its user likes, but a device is not. So a few networks train at a time, in rounds: until the
first of them ends an epoch. Between rounds, networks that have stopped give their slots to others. Towards the end,
when no network waits any more, the pool shrinks to the networks that are left. Memory is bounded by the number of
slots, and few steps are wasted on networks that have stopped. Slots are spread evenly over the devices of a mesh; no
device waits for another within a round.

Epochs may be of different length. A round goes on to the end of a window of `loop.WINDOW` minibatches, so that the
windows of all networks begin together; networks whose epochs end earlier in that window wait for it.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from irtjax.networks import Parameters
from irtjax.training import slots as programs
from irtjax.training.data import Data, EvaluationSplit
from irtjax.training.loop import WINDOW, Learner, Plan
from irtjax.training.step import Place, Trainer

EMPTY = -1  # in place of a network's number
SHRINK_FACTOR = 4  # the pool shrinks by this factor when the networks left fit into that part of it
SLOTS_PER_ANSWER = 4  # networks that have stopped answer together as soon as there is one for so many slots


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
        shrinks: whether the pool gets smaller when no network waits: for each size, programs are compiled.
    """

    trainer: Trainer
    plan: programs.MakePlan
    rows: Any
    shared: Any
    data: Data
    steps: np.ndarray
    mesh: jax.sharding.Mesh
    shrinks: bool = True

    @property
    def num_networks(self) -> int:
        """J."""
        return len(jax.tree.leaves(self.rows)[0])


class Stopped(NamedTuple):
    """A network that has stopped, with the parameters of its best epoch."""

    number: int
    parameters: Parameters
    epochs: int
    best_epoch: int
    best_accuracy: float


class Begun(NamedTuple):
    """A network that was in training in another pool: its position, and the leaves of its learner as stored."""

    position: int
    learner: list[np.ndarray]


class Pool(NamedTuple):
    """The state between two rounds: together with its job, all that is needed to go on.

    Attributes:
        slots: on each device, as given to `begin`.
        numbers: (slots on all devices,) which network of the job is in a slot, or `EMPTY`.
        positions: (slots on all devices,) minibatches of the epoch that the network has behind it.
        plans, learners: those of the networks, with a leading axis of slots; meaningless in empty slots.
        waiting: networks that wait for a slot, in their order.
        begun: those of them that go on from where another pool left them.
        stopped: networks that have stopped and have not been handed on yet.
    """

    slots: int
    numbers: np.ndarray
    positions: np.ndarray
    plans: Plan
    learners: Learner
    waiting: tuple[int, ...]
    begun: Mapping[int, Begun]
    stopped: tuple[Stopped, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Finished:
    """Networks that have stopped and are about to leave the pool.

    Attributes:
        job: that they were trained in.
        numbers: (n,) which they are.
        parameters: of their best epochs, with a leading axis of n.
        epochs: (n,) that they were trained for.
        best_epochs: (n,) from 1.
        best_accuracies: (n,) of those epochs, on the validation split.
        answer_batch: how many networks answer at once.
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


def begin(
    job: Job,
    slots: int,
    waiting: tuple[int, ...] | None = None,
    begun: Mapping[int, Begun] | None = None,
    stopped: tuple[Stopped, ...] = (),
) -> Pool:
    """An empty pool.

    Args:
        job: of the networks.
        slots: on each device; fewer, if the networks of the job cannot fill so many.
        waiting: networks to be trained, in this order; None for all of the job.
        begun: how some of them go on, that were in training in other pools.
        stopped: others that were, and are to be handed on.
    """
    size = min(slots, -(-job.num_networks // job.mesh.size)) * job.mesh.size
    plans, learners = programs.empty(job.mesh, size, *shapes(job))
    waiting = tuple(range(job.num_networks)) if waiting is None else waiting
    nobody = np.full(size, EMPTY)
    return Pool(slots, nobody, np.zeros(size, np.int32), plans, learners, waiting, begun or {}, stopped)


def shapes(job: Job) -> tuple[Plan, Learner]:
    """The plan and the learner of one network, as shapes and types."""
    return programs.shapes(job.trainer, job.plan, job.rows, job.shared, job.data.initial)


def fill(job: Job, pool: Pool) -> Pool:
    """Gives empty slots to networks that wait."""
    fresh = np.flatnonzero(pool.numbers == EMPTY)[: len(pool.waiting)]
    if fresh.size == 0:
        return pool
    numbers, positions = pool.numbers.copy(), pool.positions.copy()
    numbers[fresh], positions[fresh] = pool.waiting[: fresh.size], 0
    marks = np.isin(np.arange(numbers.size), fresh)
    old = pool.plans, pool.learners
    rows = rows_of(job, numbers)
    plans, learners = programs.fill(job.trainer, job.plan, job.mesh, old, marks, rows, job.shared, job.data.initial)
    going_on = {slot: pool.begun[number] for slot in fresh.tolist() if (number := int(numbers[slot])) in pool.begun}
    if going_on:
        positions[list(going_on)] = [network.position for network in going_on.values()]
        learners = programs.put(learners, {slot: network.learner for slot, network in going_on.items()})
    waiting = pool.waiting[fresh.size :]
    return pool._replace(numbers=numbers, positions=positions, plans=plans, learners=learners, waiting=waiting)


def rows_of(job: Job, numbers: np.ndarray) -> Any:
    """The rows of the networks in the slots; of empty ones, any."""
    return jax.tree.map(lambda column: column[np.maximum(numbers, 0)], job.rows)


def train_slots(
    job: Job,
    learners: Learner,
    plans: Plan,
    live: np.ndarray,
    num_steps: int | np.ndarray,
    positions: np.ndarray | None = None,
    steps: np.ndarray | None = None,
) -> Learner:
    """Trains every slot that is marked `live` (slots,) for `num_steps` minibatches; the given learners are used up.

    Args:
        job: of the networks.
        learners: theirs.
        plans: theirs.
        live: (slots,) which are trained.
        num_steps: of all, or (slots,).
        positions: (slots,) minibatches of the epoch that lie behind, a multiple of `WINDOW`; None for none.
        steps: (slots,) minibatches of the epoch; None where these are all.
    """
    behind = np.zeros(live.shape, np.int32) if positions is None else positions
    place = Place(behind, np.broadcast_to(num_steps, live.shape) if steps is None else steps)
    return programs.train(job.trainer, job.mesh, learners, plans, live, place, num_steps, job.data)


def advance(job: Job, pool: Pool) -> Pool:
    """One round: every network in the pool trains until one of them ends an epoch; those that have stopped leave."""
    live = pool.numbers != EMPTY
    in_all = job.steps[np.maximum(pool.numbers, 0)]
    left = np.where(live, in_all - pool.positions, 0)
    steps = np.minimum(left, -(-left[live].min() // WINDOW) * WINDOW)
    common = steps[live][0]
    # one number for all makes a program that does not choose in each step who takes it
    num_steps = int(common) if (steps[live] == common).all() else steps
    learners = train_slots(job, pool.learners, pool.plans, live, num_steps, pool.positions, in_all)
    ended = live & (steps == left)
    learners, training = programs.validate_all(job.trainer, job.mesh, learners, ended, job.data)
    out = ended & ~np.asarray(training)
    columns = [np.asarray(column) for column in (learners.epoch, learners.best_epoch, learners.best_accuracy)]
    stopped = tuple(
        Stopped(
            int(pool.numbers[at]),
            programs.read_slot(learners.best_parameters, int(at)),
            *(column[at].item() for column in columns),
        )
        for at in np.flatnonzero(out)
    )
    return pool._replace(
        numbers=np.where(out, EMPTY, pool.numbers),
        positions=np.where(ended, 0, pool.positions + steps).astype(np.int32),
        learners=learners,
        stopped=pool.stopped + stopped,
    )


def shrink(job: Job, pool: Pool) -> Pool:
    """A pool smaller by `SHRINK_FACTOR`, if no network waits and those left fit into it; else the pool as it is."""
    if not job.shrinks:
        return pool
    live = np.flatnonzero(pool.numbers != EMPTY)
    slots = -(-pool.numbers.size // (SHRINK_FACTOR * job.mesh.size)) * job.mesh.size
    if pool.waiting or not 0 < live.size <= slots < pool.numbers.size:
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
    """Trains all networks of a pool, each to its own end.

    Args:
        job: what to do.
        pool: from `begin` or `resume.restored`. Its arrays are used up.
        on_finished: called with networks that have stopped, in groups of at most `Finished.answer_batch`, so that they
            can answer together.
        on_round: called after each round with the pool, whose arrays the next round uses up. Networks that
            `on_finished` was called with are no longer in it.

    Returns:
        The pool at its end, which is empty.
    """
    pool = _hand_over(job, pool, on_finished)  # one that goes on may have nothing else to do
    while not _at_end(pool):
        pool = _hand_over(job, shrink(job, advance(job, fill(job, pool))), on_finished)
        if on_round is not None:
            on_round(pool)
    return pool


def _at_end(pool: Pool) -> bool:
    return not pool.waiting and bool((pool.numbers == EMPTY).all())


def _hand_over(job: Job, pool: Pool, on_finished: Callable[[Finished], None]) -> Pool:
    """Networks that have stopped leave the pool, as soon as they fill a group, or nothing is left to wait for."""
    batch = job.mesh.size * max(1, pool.slots // SLOTS_PER_ANSWER)
    while len(pool.stopped) >= batch or (pool.stopped and _at_end(pool)):
        numbers, parameters, epochs, best_epochs, accuracies = zip(*pool.stopped[:batch], strict=True)
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *parameters)
        counts = np.array(epochs, np.int32), np.array(best_epochs, np.int32), np.array(accuracies, np.float32)
        on_finished(Finished(job, np.array(numbers), stacked, *counts, batch))
        pool = pool._replace(stopped=pool.stopped[batch:])
    return pool


def accuracies(job: Job, pool: Pool) -> np.ndarray:
    """(J,) best validation accuracies of the networks in the pool, NaN for others and for those without a first."""
    found = np.full(job.num_networks, np.nan, np.float32)
    best = np.asarray(pool.learners.best_accuracy)
    known = (pool.numbers != EMPTY) & (best >= 0)
    found[pool.numbers[known]] = best[known]
    for network in pool.stopped:
        found[network.number] = network.best_accuracy
    return found


def epochs(job: Job, pool: Pool) -> np.ndarray:
    """(J,) epochs that the networks in the pool have behind them, 0 for others."""
    found = np.zeros(job.num_networks, np.int64)
    live = pool.numbers != EMPTY
    found[pool.numbers[live]] = np.asarray(pool.learners.epoch)[live]
    for network in pool.stopped:
        found[network.number] = network.epochs
    return found
