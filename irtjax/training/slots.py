"""How many networks should train at once on a device? Measured: it depends on caches, cores, memory and the network."""

import dataclasses
import importlib.metadata
import os
import time
from collections.abc import Iterable

import jax
import numpy as np

from irtjax.storage.cache import cached
from irtjax.training.pool import LADDER, Job, begin, fill, train_slots

PROBE_SECONDS = 0.3  # that a measurement should last
MOST_STEPS = 4**6  # that it may take to do so
TOLERANCE = 0.05  # a larger pool must be faster by this share: it takes more memory, and ends with more empty slots
MEMORY_SHARE = 0.5  # of a device's memory that the pool may fill


def measure(job: Job) -> tuple[int, dict[int, float]]:
    """The number of slots a device at which most minibatches are trained on in a second.

    Tries 1, 4, 16, … slots and as many as the networks can fill, until the memory would not hold them or one is slower
    than the best by more than `TOLERANCE`.

    Returns:
        The number, and minibatches a second by number of slots.
    """
    rates: dict[int, float] = {}
    slots, most = 1, -(-job.num_networks // job.mesh.size)
    while slots <= most:
        rates[slots], bytes_a_slot = _rate(dataclasses.replace(job, slots=slots))
        if rates[slots] < (1 - TOLERANCE) * max(rates.values()):
            break
        slots = min(LADDER * slots, most) if slots < most else most + 1
        if slots * bytes_a_slot > MEMORY_SHARE * _memory(job.mesh):
            break
    best = max(rates.values())
    return min(slots for slots, rate in rates.items() if rate >= (1 - TOLERANCE) * best), rates


def remembered(job: Job, key: Iterable[object]) -> int:
    """`measure`, or what it found before for the same key and devices.

    Timings differ from run to run, and networks in a pool of another size are the same only to rounding; a number that
    is kept lets the same command give the same results.
    """
    device = job.mesh.devices.flat[0]
    key = (*key, device.device_kind, job.mesh.size, *map(importlib.metadata.version, ("irtjax", "jax")))
    return int(cached("pool_size", key, lambda: {"slots": np.array(measure(job)[0])})["slots"])


def _rate(job: Job) -> tuple[float, float]:
    """Minibatches a second of a full pool, and bytes that a device needs a slot."""
    before = _statistic(job.mesh, "peak_bytes_in_use")
    pool = fill(job, begin(job))
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
    # as much again for what is in work, or what the device says, if this pool needed more than any before
    return pool.numbers.size * steps / seconds, max(
        2 * state, _statistic(job.mesh, "peak_bytes_in_use") - before
    ) / slots


def _statistic(mesh: jax.sharding.Mesh, name: str) -> float:
    """What a device tells of its memory, 0 where it does not."""
    return (mesh.devices.flat[0].memory_stats() or {}).get(name, 0)


def _memory(mesh: jax.sharding.Mesh) -> float:
    """Bytes of a device; on CPUs all devices share the machine's."""
    return _statistic(mesh, "bytes_limit") or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / mesh.size
