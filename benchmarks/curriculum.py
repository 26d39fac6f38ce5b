r"""The cost of estimating the network's ability in DDaCLAE, from a sample of items and from all; do the two agree?

  python -m benchmarks.curriculum --task=mnist --data_dir=DIR --items=RUN/difficulty/hierarchical/items.csv

Trains one network by DDaCLAE in three ways, from the same weights: as one jitted program with the probe, as the same
program with all items, and by a plain loop that answers everything, selects on the host with NumPy and re-enters jit
each epoch. Then it estimates the ability of a network in training both ways, with several samples per epoch. Without
--items, difficulties are drawn from a normal distribution. Expected duration on 2 CPU cores: digits one minute, mnist
two, six epochs of sst2 nine.
"""

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from absl import flags
from scipy.optimize import brentq
from scipy.special import expit

from experiments.common import app, factory, flag_settings, settings, task_flags
from experiments.common.task_items import items_of
from irtjax.networks import Parameters
from irtjax.selection.ddaclae import train_curriculum
from irtjax.selection.probe import (
    MIN_ITEMS_TO_SAMPLE,
    Subjects,
    estimate_ability,
    estimate_ability_from_all,
    rank_items,
)
from irtjax.selection.rules import required_se, up_to_ability
from irtjax.tasks import Task
from irtjax.training.data import Data, accuracy, classify, to_device
from irtjax.training.loop import Learner, Plan, start, train_epoch, validate
from irtjax.training.recipe import make_trainer
from irtjax.training.step import Trainer
from irtjax.types import AnyArray

_ITEMS = flags.DEFINE_string("items", None, "items.csv with the difficulty of every training example")
_REPEATS = flags.DEFINE_integer("repeats", 3, "runs in each way; the fastest counts", lower_bound=1)
_SAMPLES = flags.DEFINE_integer(
    "samples", 10, "samples per epoch that are compared with answers to all items", lower_bound=2
)
task_flags.define_flags(
    settings.of_stage("crowd") & settings.of_stage("curriculum") | {"probe_error", "curriculum_epochs"}
)


def plan_of(task: Task, order: AnyArray, size: int, chosen: settings.Settings) -> Plan:
    """What one network is trained on, with a leading axis of one."""
    plan = Plan(
        jax.random.key(chosen.seed),
        jnp.asarray(order, jnp.int32),
        jnp.int32(size),
        jnp.asarray(task.train.labels),
        jnp.float32(chosen.learning_rate),
        jnp.int32(chosen.width),
    )
    return jax.tree.map(lambda leaf: leaf[None], plan)


@functools.partial(jax.jit, static_argnums=0)
def _answers(trainer: Trainer, parameters: Parameters, data: Data) -> jax.Array:
    return classify(trainer.network, parameters, data.embeddings, data.train)


@functools.partial(jax.jit, static_argnums=0)
def _epoch(trainer: Trainer, learners: Learner, plans: Plan, data: Data, num_steps: int) -> Learner:
    return validate(trainer, train_epoch(trainer, learners, plans, data, num_steps), data)


@functools.partial(jax.jit, static_argnums=0)
def _accuracy(trainer: Trainer, parameters: Parameters, data: Data) -> jax.Array:
    answer = jax.vmap(functools.partial(accuracy, trainer.network), (0, None, None))
    return answer(parameters, data.embeddings, data.test)


def host_loop(trainer: Trainer, task: Task, data: Data, difficulty: np.ndarray, chosen: settings.Settings) -> None:
    """DDaCLAE as it is usually written: selection on the host, jit for the answers and for the epoch.

    It answers validation and test split after each epoch, as the other ways do.
    """
    labels, num_examples = task.train.labels, difficulty.size
    learners = jax.vmap(functools.partial(start, trainer), (0, None))(
        plan_of(task, np.arange(num_examples), 1, chosen), data.initial
    )
    fallback = trainer.batch_size
    for _ in range(trainer.max_epochs):
        parameters = jax.tree.map(lambda leaf: leaf[0], learners.parameters)
        right = np.asarray(_answers(trainer, parameters, data)) == labels
        theta = np.inf if right.all() else -np.inf
        if 0 < right.sum() < num_examples:
            total = right.sum()
            theta = brentq(lambda theta, total=total: total - expit(theta - difficulty).sum(), -40, 40, xtol=1e-4)
        selected = np.flatnonzero(difficulty <= theta)
        if selected.size < trainer.batch_size:
            selected = np.argsort(difficulty)[:fallback]
            fallback = min(2 * fallback, num_examples)
        plan = plan_of(task, np.resize(selected, num_examples), selected.size, chosen)
        learners = _epoch(trainer, learners, plan, data, max(selected.size // trainer.batch_size, 1))
        jax.block_until_ready(_accuracy(trainer, learners.parameters, data))
    jax.block_until_ready(learners.parameters)


def race(trainer: Trainer, task: Task, data: Data, difficulty: np.ndarray, chosen: settings.Settings) -> None:
    """Prints the time of whole trainings."""
    run = functools.partial(
        train_curriculum,
        trainer,
        jax.random.key(chosen.seed)[None],
        data,
        difficulty,
        learning_rate=chosen.learning_rate,
    )
    shares = np.asarray(run(up_to_ability, probe_error=chosen.probe_error).share[0])
    ways: dict[str, Callable[[], Any]] = {
        "schedule": lambda: jax.block_until_ready(run(shares)),
        "probe": lambda: jax.block_until_ready(run(up_to_ability, probe_error=chosen.probe_error)),
        "all items": lambda: jax.block_until_ready(run(up_to_ability)),
        "host loop": lambda: host_loop(trainer, task, data, difficulty, chosen),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for repeat in range(1 + _REPEATS.value):
        for name, work in ways.items():
            began = time.perf_counter()
            work()
            if repeat:  # the first compiles
                seconds[name].append(time.perf_counter() - began)
    fastest = {name: min(values) for name, values in seconds.items()}
    print(f"{trainer.max_epochs} epochs of DDaCLAE; time relative to the same shares as a fixed schedule:")
    for name, value in fastest.items():
        print(f"  {name:9}  {value / fastest['schedule']:.3f}")


_train = jax.jit(train_epoch, static_argnums=0)
_from_sample = jax.jit(estimate_ability, static_argnums=(0, 1))
_from_all = jax.jit(estimate_ability_from_all, static_argnums=0)


def follow(trainer: Trainer, task: Task, data: Data, difficulty: np.ndarray, chosen: settings.Settings) -> None:
    """Prints what samples would have selected for a network that answers to all items lead, and the cost of both."""
    num_examples, samples = difficulty.size, _SAMPLES.value
    items = rank_items(jnp.asarray(difficulty))
    required = functools.partial(required_se, up_to_ability, items.ascending, chosen.probe_error)

    def timed(name, function, *arguments):
        began = time.perf_counter()
        result = jax.block_until_ready(function(*arguments))
        seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - began
        return result

    def share_of(theta):
        return np.searchsorted(np.asarray(items.ascending), np.asarray(theta), side="right") / num_examples

    seconds: dict[str, float] = {}
    rows: list[tuple[float, np.ndarray, int, float]] = []
    for _ in range(2):  # the first compiles
        plans = plan_of(task, items.order, 1, chosen)
        learners = jax.vmap(functools.partial(start, trainer), (0, None))(plans, data.initial)
        seconds, rows, previous, fallback = {}, [], jnp.zeros(1), trainer.batch_size
        for epoch in range(trainer.max_epochs):
            parameters = learners.parameters
            full = timed("all items", _from_all, trainer, parameters, data, items.difficulty)
            keys = jax.random.split(jax.random.fold_in(jax.random.key(chosen.seed), epoch), samples)
            found = [
                timed("probe", _from_sample, trainer, required, Subjects(key, parameters, previous), data, items)
                for key in keys[:, None]
            ]
            shares = np.concatenate([share_of(estimate.ability) for estimate in found])
            share, first = share_of(full.ability)[0], found[0]
            rows.append((share, shares - share, int(first.items_asked[0]), float(first.standard_error[0])))
            size = round(share * num_examples)
            if size < trainer.batch_size:
                size, fallback = fallback, min(2 * fallback, num_examples)
            plans = plan_of(task, items.order, size, chosen)
            num_steps = jnp.int32(max(size // trainer.batch_size, 1))
            learners = timed("training", _train, trainer, learners, plans, data, num_steps)
            learners = learners._replace(epoch=learners.epoch + 1)
            previous = full.ability
    seconds["probe"] /= samples
    print("epoch  share by all items  items asked  standard error  share by samples minus share by all: rms, largest")
    for epoch, (share, apart, asked, error) in enumerate(rows):
        rms, largest = np.sqrt((apart**2).mean()), np.abs(apart).max()
        print(f"{epoch:5d}  {share:18.2%}  {asked:11,d}  {error:14.3f}  {100 * rms:6.2f}, {100 * largest:.2f} points")
    apart = np.concatenate([row[1] for row in rows])
    within = (np.abs(apart) <= 0.01).mean()
    print(
        f"over all epochs: rms {100 * np.sqrt((apart**2).mean()):.2f} points, {within:.0%} of samples within 1 point\n"
        f"estimating the ability takes {seconds['probe'] / seconds['training']:.2%} of the time of training from a "
        f"sample, {seconds['all items'] / seconds['training']:.2%} from all items"
    )


def main() -> None:
    """Runs both."""
    chosen = flag_settings.from_flags()
    task = factory.load_task(chosen, flags.FLAGS.data_dir)
    if _ITEMS.value is None:
        difficulty = np.random.default_rng(chosen.seed).normal(size=len(task.train.labels))
    else:
        difficulty = items_of(_ITEMS.value, task).difficulty.to_numpy()
    difficulty = difficulty.astype(np.float32)
    trainer = make_trainer(factory.curriculum_recipe_of(dataclasses.replace(chosen, curriculum_patience=0)), task)
    data = to_device(task)
    race(trainer, task, data, difficulty, chosen)
    if difficulty.size >= MIN_ITEMS_TO_SAMPLE:
        follow(trainer, task, data, difficulty, chosen)
    else:
        print(f"{difficulty.size:,} items are too few for a sample: all are asked")


if __name__ == "__main__":
    app.run(main, compiles_anew=True)
