r"""What is gained by giving the slot of a network that has stopped to the next one? A pool against groups that wait.

  python -m benchmarks.regrouping --task=digits --num_models=384 --slots=32

Trains the same crowd twice, with the same programs: through a pool, and in groups of as many members as the pool has
slots, each group until its last member has stopped. Expected duration on 2 CPU cores: half a minute.
"""

import dataclasses
import time

import jax
import numpy as np
from absl import flags

from experiments.common import app, factory, flag_settings, settings, task_flags
from experiments.stages.crowd import choose_members
from irtjax.crowd.train import crowd_job
from irtjax.training.data import default_mesh, to_device
from irtjax.training.pool import EMPTY, Job, advance, begin, fill, shrink
from irtjax.training.pool_size import choose_slots
from irtjax.training.recipe import epoch_lengths, longest_first

_REPEATS = flags.DEFINE_integer("repeats", 3, "trainings each way, of which the fastest counts", lower_bound=1)
task_flags.define_flags(settings.of_stage("crowd"))


def train(job: Job, slots: int, regroup: bool) -> tuple[int, int]:
    """Trains all networks; returns minibatches that slots had time for, and those that a network was trained on."""
    pool, total, used = begin(job, slots), 0, 0
    while pool.waiting or (pool.numbers != EMPTY).any():
        pool = fill(job, pool)
        live, in_all, before = pool.numbers != EMPTY, job.steps[np.maximum(pool.numbers, 0)], pool.positions
        pool = advance(job, pool)
        steps = (np.where(pool.positions == 0, in_all, pool.positions) - before)[live]
        total, used = total + live.size * int(steps.max()), used + int(steps.sum())
        pool = shrink(job, pool) if regroup else pool
    return total, used


def in_groups(job: Job, slots: int) -> tuple[int, int]:
    """The same in full pools, one after the other, in which no network is replaced."""
    size, total = slots * job.mesh.size, (0, 0)
    for at in range(0, job.num_networks, size):
        rows = jax.tree.map(lambda column, at=at: column[at : at + size], job.rows)
        part = dataclasses.replace(job, rows=rows, steps=job.steps[at : at + size])
        counts = train(part, slots, regroup=False)
        total = total[0] + counts[0], total[1] + counts[1]
    return total


def main() -> None:
    """Trains and prints."""
    app.one_device_per_core()
    chosen = flag_settings.from_flags()
    task = factory.load_task(chosen, flags.FLAGS.data_dir)
    recipe = factory.recipe_of(chosen)
    members = choose_members(chosen, task)
    members = members.choose(longest_first(epoch_lengths(recipe, members.subset_size)))
    mesh = default_mesh(len(members))
    data = to_device(task, mesh)
    job = crowd_job(task, members, recipe, data, mesh)
    slots = choose_slots(task, recipe, data, len(members), mesh, chosen.slots or None)
    seconds: dict[str, list[float]] = {}
    for _ in range(1 + _REPEATS.value):  # the first compiles
        for name, work in (
            ("pool", lambda: train(job, slots, regroup=True)),
            ("groups", lambda: in_groups(job, slots)),
        ):
            began = time.perf_counter()
            total, used = work()
            seconds.setdefault(name, []).append(time.perf_counter() - began)
            if len(seconds[name]) == 1:
                print(f"{name:6}  {total:9,d} minibatches of slots, {used / total:.1%} of them in use")
    fastest = {name: min(values[1:]) for name, values in seconds.items()}
    print(f"the pool of {slots} slots per device is {fastest['groups'] / fastest['pool']:.2f} times as fast")


if __name__ == "__main__":
    app.run(main, compiles_anew=True)
