"""How many networks should train at once on a device? Measured: it depends on caches, cores, memory and the network."""

import importlib.metadata
import os
import time

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.storage.cache import cached
from irtjax.tasks import Task
from irtjax.training.data import Data
from irtjax.training.loop import ALL_UNITS, Plan
from irtjax.training.pool import SHRINK_FACTOR, Job, begin, fill, shapes, train_slots
from irtjax.training.recipe import Recipe, epoch_lengths, make_trainer

PROBE_SECONDS = 0.3  # that a measurement should last
MOST_STEPS = 4**6  # that it may take to do so
GROWTH_FACTOR = SHRINK_FACTOR  # from one size that is tried to the next
TOLERANCE = 0.05  # a larger pool must be faster by this share: it takes more memory, and ends with more empty slots
MEMORY_SHARE = 0.5  # of a device's memory that the pool may fill
KNOWN = {("digits", "mlp"): 32}  # where measuring would take longer than the crowd
SHORT = (
    200_000  # minibatches of all networks together, fewer than which cost less time than compiling for several sizes
)
SHORT_SLOTS = 16  # of such a training on a processor, of networks so small that one does not fill a core
SMALL = 2**18  # bytes of the state of such a network; of larger ones, one at a time is fastest, or nearly
FILLS_A_CORE = ("bert",)  # one network's products are as fast as the core is; compiling larger pools takes minutes


def choose_slots(
    task: Task, recipe: Recipe, data: Data, count: int, mesh: jax.sharding.Mesh, slots: int | None = None
) -> int:
    """The given number of slots on a device; for None, what is fastest here: known, or measured once and remembered.

    Of a short training (`is_short`) on a processor nothing is measured: compiling for several sizes would take longer.

    Timings differ from run to run, and networks in a pool of another size are the same only to rounding. A number that
    is kept lets the same command give the same results.

    Args:
        task: what is trained on.
        recipe: how.
        data: the task, on the devices of the mesh.
        count: networks that the pool is for.
        mesh: devices in a row.
        slots: a number to be used in any case.
    """
    if slots is not None:
        return slots
    known = KNOWN.get((task.name, recipe.network))
    if known is not None:
        return known
    if recipe.network in FILLS_A_CORE and mesh.devices.flat[0].platform == "cpu":
        return 1
    job = on_all_examples(task, recipe, data, count, mesh)
    if is_short(recipe, job.steps) and mesh.devices.flat[0].platform == "cpu":
        return min(SHORT_SLOTS, -(-count // mesh.size)) if _state_bytes(job) < SMALL else 1
    return int(cached("pool_size", _key(job, task, recipe), lambda: {"slots": np.array(measure(job)[0])})["slots"])


def is_short(recipe: Recipe, steps: np.ndarray) -> bool:
    """Whether networks are trained in less time than programs for pools of several sizes take to compile.

    Args:
        recipe: how they are trained.
        steps: (J,) minibatches in an epoch of each.
    """
    return int(np.sum(steps)) * recipe.max_epochs < SHORT


def _state_bytes(job: Job) -> int:
    """Of a network in training: parameters, those of its best epoch, and what the optimizer keeps."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes(job)[1]))


def on_all_examples(task: Task, recipe: Recipe, data: Data, count: int, mesh: jax.sharding.Mesh) -> Job:
    """A job to measure: networks of some seeds that are trained on all examples."""
    size = len(task.train.labels)
    shared = np.arange(size, dtype=np.int32), task.train.labels, np.float32(recipe.learning_rate)
    steps = epoch_lengths(recipe, np.full(count, size))
    return Job(make_trainer(recipe, task), _plan, np.arange(count, dtype=np.uint32), shared, data, steps, mesh)


def _plan(seed: jax.Array, shared: tuple[jax.Array, jax.Array, jax.Array]) -> Plan:
    order, labels, learning_rate = shared
    return Plan(jax.random.key(seed), order, jnp.int32(order.size), labels, learning_rate, jnp.int32(ALL_UNITS))


def _key(job: Job, task: Task, recipe: Recipe) -> tuple[object, ...]:
    """All that the fastest number depends on."""
    trainer, device = job.trainer, job.mesh.devices.flat[0]
    vectors = jax.tree.map(np.shape, job.data.initial)
    shapes = [array.shape for array in jax.tree.leaves(task.train.inputs)]
    network = (recipe.network, recipe.width, shapes, task.num_classes, vectors)
    training = (trainer.batch_size, trainer.buckets, trainer.own_embeddings, trainer.augment is not None)
    versions = map(importlib.metadata.version, ("irtjax", "jax"))
    return (*network, *training, job.num_networks, device.device_kind, job.mesh.size, *versions)


def measure(job: Job) -> tuple[int, dict[int, float]]:
    """The number of slots on a device with which most minibatches are trained on in a second.

    Tries 1, 4, 16, … slots and as many as the networks can fill, until the memory would not hold them or one is slower
    than the best by more than `TOLERANCE`.

    Returns:
        The number, and minibatches a second by number of slots.
    """
    rates: dict[int, float] = {}
    slots, most = 1, -(-job.num_networks // job.mesh.size)
    while slots <= most:
        rates[slots], bytes_per_slot = _rate(job, slots)
        if rates[slots] < (1 - TOLERANCE) * max(rates.values()):
            break
        slots = min(GROWTH_FACTOR * slots, most) if slots < most else most + 1
        if slots * bytes_per_slot > MEMORY_SHARE * _memory(job.mesh):
            break
    best = max(rates.values())
    return min(slots for slots, rate in rates.items() if rate >= (1 - TOLERANCE) * best), rates


def _rate(job: Job, slots: int) -> tuple[float, float]:
    """Minibatches a second of a full pool, and bytes that a device needs for each slot."""
    before = _statistic(job.mesh, "peak_bytes_in_use")
    pool = fill(job, begin(job, slots))
    slots = pool.numbers.size // job.mesh.size
    live, steps, seconds = np.ones(pool.numbers.size, bool), 1, 0.0
    # the first call compiles
    learners = jax.block_until_ready(train_slots(job, pool.learners, pool.plans, live, steps))
    while seconds < PROBE_SECONDS and steps < MOST_STEPS:
        steps *= 4
        began = time.perf_counter()
        learners = jax.block_until_ready(train_slots(job, learners, pool.plans, live, steps))
        seconds = time.perf_counter() - began
    state = sum(leaf.nbytes for leaf in jax.tree.leaves((learners, pool.plans))) / job.mesh.size
    # as much again for intermediate results, or what the device reports, if this pool needed more than any before
    needed = max(2 * state, _statistic(job.mesh, "peak_bytes_in_use") - before)
    return pool.numbers.size * steps / seconds, needed / slots


def _statistic(mesh: jax.sharding.Mesh, name: str) -> float:
    """What a device reports of its memory, 0 where it does not."""
    return (mesh.devices.flat[0].memory_stats() or {}).get(name, 0)


def _memory(mesh: jax.sharding.Mesh) -> float:
    """Bytes of a device; on CPUs all devices share the machine's."""
    return _statistic(mesh, "bytes_limit") or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / mesh.size
