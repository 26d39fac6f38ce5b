"""How many networks should train at once on a device? Measured: it depends on caches, cores, memory and the network."""

import dataclasses
import os
import time
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np

from irtjax.cache import cached
from irtjax.pool import LADDER, Job, begin, fill, train_slots

PROBE_SECONDS = 0.3  # that a measurement should last
MOST_STEPS = 4**6  # that it may take to do so
TOLERANCE = 0.05  # a larger pool must be faster by this share: it takes more memory, and ends with more empty slots
MEMORY_SHARE = 0.5  # of a device's memory that the pool may fill


def measure(job: Job) -> tuple[int, dict[int, float]]:
    """The number of slots a device at which most minibatches are trained on in a second.

    Tries 1, 4, 16, … slots, up to what the networks can fill and the memory hold, until one is slower than the best by
    more than `TOLERANCE`.

    Returns:
        The number, and minibatches a second by number of slots.
    """
    rates: dict[int, float] = {}
    slots, most = 1, -(-job.num_networks // job.mesh.size)
    while slots <= most:
        rates[slots], bytes_a_slot = _rate(dataclasses.replace(job, slots=slots))
        if rates[slots] < (1 - TOLERANCE) * max(rates.values()):
            break
        slots *= LADDER
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
    key = (*key, device.device_kind, job.mesh.size, jax.__version__)
    return int(cached("pool_size", key, lambda: {"slots": np.array(measure(job)[0])})["slots"])


def _rate(job: Job) -> tuple[float, float]:
    """Minibatches a second of a full pool, and bytes that a device needs a slot."""
    pool = fill(job, begin(job))
    live, steps, seconds = np.ones(pool.numbers.size, bool), 1, 0.0
    # the first call compiles
    learners = jax.block_until_ready(train_slots(job, pool.learners, pool.plans, live, steps))
    while seconds < PROBE_SECONDS and steps < MOST_STEPS:
        steps *= 4
        began = time.perf_counter()
        learners = jax.block_until_ready(train_slots(job, learners, pool.plans, live, steps))
        seconds = time.perf_counter() - began
    return pool.numbers.size * steps / seconds, _bytes_in_use(job.mesh, (learners, pool.plans)) / job.slots


def _bytes_in_use(mesh: jax.sharding.Mesh, state: Any) -> float:
    """Bytes that a device has needed so far; where it does not tell, those of the state and as many again."""
    statistics = mesh.devices.flat[0].memory_stats() or {}
    return statistics.get("peak_bytes_in_use", 2 * sum(leaf.nbytes for leaf in jax.tree.leaves(state)) / mesh.size)


def _memory(mesh: jax.sharding.Mesh) -> float:
    """Bytes of a device; on CPUs all devices share the machine's."""
    statistics = mesh.devices.flat[0].memory_stats() or {}
    if "bytes_limit" in statistics:
        return statistics["bytes_limit"]
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / mesh.size
