r"""A crowd in a pool against the same networks trained one after the other: examples per second, share of the peak.

  python -m benchmarks.crowd --task=sst2 --network=lstm --data_dir=DIR
  python -m benchmarks.crowd --task=mnist --network=lenet --width=16 --batch_size=64 --data_dir=DIR

Prints, for crowds of 1 to 256 members, the size of the pool that `irtjax.training.pool_size` chooses, and how many
training examples all members together see in a second. Beside them stand the ratio to the sequential loop (the same
jitted program with one network at a time, free to use all cores; both are timed alternately), and the useful operations
of matrix products as a share of the machine's own rate.
With --versus=torch, another column beside it: the ratio to PyTorch, a process on each core with one thread, which
trains the same network on batches of the same kind; again alternately.
Expected duration on 2 CPU cores: two to five minutes per network.
"""

import dataclasses
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from absl import flags

from benchmarks import flops
from benchmarks.contestants import cpu_cores
from benchmarks.torch_crowd import TorchCrowd
from experiments.common import app, factory, flag_settings, settings, task_flags
from experiments.stages.crowd import choose_members
from irtjax.crowd.train import crowd_job
from irtjax.kernels.formulation import formulated_for
from irtjax.tasks.task import PADDING
from irtjax.training import pool_size
from irtjax.training.data import default_mesh, take, to_device
from irtjax.training.pool import EMPTY, Job, begin, fill, train_slots
from irtjax.training.step import Trainer

_SIZES = flags.DEFINE_list("sizes", ["1", "4", "16", "64", "256"], "members")
_STEPS = flags.DEFINE_integer("steps", 32, "gradient steps in a measurement", lower_bound=1)
_REPEATS = flags.DEFINE_integer("repeats", 5, "measurements, of which the median counts", lower_bound=1)
_VERSUS = flags.DEFINE_enum("versus", None, ["torch"], "what else to compare with")
_ENVIRONMENT = flags.DEFINE_string("environment", ".versus_torch", "folder of the virtual environment with PyTorch")
_PYTHON = flags.DEFINE_string("python", sys.executable, "interpreter to make that environment with")
task_flags.define_flags(settings.of_stage("crowd"))
TORCH_STEPS = 4  # as many for each of ours, so that turns are of similar length


def useful_operations(trainer: Trainer, job: Job) -> float:
    """Operations of products in one gradient step of one network, on sentences of mean length without padding."""
    inputs, cut = job.data.inputs, None
    if trainer.buckets:
        cut = tuple(round(float((np.asarray(sentence) != PADDING).sum(1).mean())) for sentence in inputs)
    chosen = jnp.arange(trainer.batch_size)
    parameters = trainer.network.init(jax.random.key(0), job.rows.width[0])

    def loss(parameters, inputs):
        return trainer.network.logits(parameters, job.data.embeddings, inputs, jax.random.key(0)).sum()

    # as on a GPU, where convolutions are plain ones: the formulation for CPUs does more products than needed
    with formulated_for("gpu"):
        return flops.of_products(jax.grad(loss), parameters, take(inputs, chosen, cut))


class Runner:
    """A full pool that can be timed."""

    def __init__(self, job: Job, slots: int):
        self.job, pool = job, fill(job, begin(job, slots))
        self.live, self.plans, self.learners = pool.numbers != EMPTY, pool.plans, pool.learners

    def seconds(self, steps: int) -> float:
        """How long so many steps of all networks in the pool take."""
        began = time.perf_counter()
        self.learners = train_slots(self.job, self.learners, self.plans, self.live, steps)
        jax.block_until_ready(self.learners)
        return time.perf_counter() - began


def main() -> None:
    """Measures and prints."""
    app.one_device_per_core()
    chosen = flag_settings.from_flags()
    task = factory.load_task(chosen, flags.FLAGS.data_dir)
    recipe = factory.recipe_of(chosen)
    sizes, steps = [int(size) for size in _SIZES.value], _STEPS.value
    devices = default_mesh(max(sizes)).size
    members = choose_members(dataclasses.replace(chosen, num_models=max(2, *sizes)), task)

    def job_of(count):
        mesh = default_mesh(count)
        return crowd_job(task, members.choose(slice(count)), recipe, to_device(task, mesh), mesh)

    alone = Runner(job_of(1), slots=1)
    alone.seconds(1)
    trainer = alone.job.trainer
    operations = useful_operations(trainer, alone.job)
    device = jax.devices()[0]
    peak = flops.product_rate() * (1 if device.platform == "cpu" else devices)
    print(
        f"{chosen.task}, {chosen.networks[0]} of width {chosen.width}, batches of {trainer.batch_size}, on {devices} × "
        f"{device.device_kind}; {operations / 1e6:.1f} MFLOP of products a step, peak {peak / 1e9:.0f} GFLOP/s"
    )
    rival = None if _VERSUS.value is None else TorchCrowd(task, recipe, _ENVIRONMENT.value, _PYTHON.value)
    if rival is not None:
        rival.steps_per_second(steps)
        print(f"torch {rival.version}, {cpu_cores()} processes")
    last = "" if rival is None else "  torch examples/s  × torch  (of each turn)"
    print(f"members  slots/device  examples/s  × sequential  share of peak  sequential's share{last}")
    for size in sizes:
        job = job_of(size)
        slots, _ = pool_size.measure(job)
        runner = Runner(job, slots)
        runner.seconds(1)
        together, one, other = [], [], []
        for _ in range(_REPEATS.value):
            together.append(runner.seconds(steps) / runner.live.sum())
            one.append(alone.seconds(steps))
            if rival is not None:
                other.append(rival.steps_per_second(steps * TORCH_STEPS))
        ratio = np.median(np.array(one) / np.array(together))
        rate = steps / np.median(together)
        print(
            f"{size:7d}  {slots:12d}  {rate * trainer.batch_size:10,.0f}  {ratio:12.2f}  "
            f"{rate * operations / peak:13.1%}  {steps / np.median(one) * operations / peak:18.1%}"
            + against(steps / np.array(together), np.array(other), trainer.batch_size),
            flush=True,
        )
    if rival is not None:
        rival.close()


def against(ours: np.ndarray, theirs: np.ndarray, batch_size: int) -> str:
    """Examples a second of a rival, and the ratio to it: median, smallest and largest of all turns; from steps."""
    if not theirs.size:
        return ""
    ratios = ours / theirs
    rate = np.median(theirs) * batch_size
    return f"  {rate:16,.0f}  {np.median(ratios):7.2f}  {ratios.min():.2f} to {ratios.max():.2f}"


if __name__ == "__main__":
    app.run(main, compiles_anew=True)
