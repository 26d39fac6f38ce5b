"""Networks that are trained on some of the examples, such as those that a filter keeps."""

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from irtjax import processes
from irtjax.arguments import checks_types
from irtjax.selection.recalls import geometric_mean_of_recalls
from irtjax.storage.digests import digest
from irtjax.tasks import Task
from irtjax.training.data import Data, default_mesh, to_device
from irtjax.training.groups import Group, train_groups
from irtjax.training.loop import Plan
from irtjax.training.pool import Finished, Job
from irtjax.training.pool_size import choose_slots, is_short
from irtjax.training.progress import Progress
from irtjax.training.recipe import Recipe, epoch_lengths, fingerprint, longest_first, make_trainer
from irtjax.types import AnyArray, Float, Int

MEASURES = ("test_accuracy", "test_geometric_mean")


class SubsetRow(NamedTuple):
    """What one network's plan is made of.

    Attributes:
        seed: of weights and minibatches; networks of equal seeds start from equal weights, so that strategies can be
            compared pair by pair.
        order: (N,) indices from `ranking`.
        size: examples kept.
        learning_rate: of its optimizer.
        width: hidden units that are not masked.
    """

    seed: AnyArray
    order: AnyArray
    size: AnyArray
    learning_rate: AnyArray
    width: AnyArray


def plan_subset(row: SubsetRow, labels: AnyArray) -> Plan:
    """A network trained on the first `size` examples of its order, with gold labels (N,)."""
    return Plan(jax.random.key(row.seed), row.order, row.size, labels, row.learning_rate, row.width)


def subset_job(
    task: Task,
    recipe: Recipe,
    data: Data,
    orders: Int[AnyArray, "G N"],
    sizes: Int[AnyArray, " G"],
    seeds: Int[AnyArray, " G"],
    mesh: jax.sharding.Mesh,
) -> Job:
    """The job to train G networks, as in `train_on_subsets`, on devices in a row that have the data."""
    count = len(sizes)
    rows = SubsetRow(
        seed=np.asarray(seeds, np.uint32),
        order=np.asarray(orders, np.int32),
        size=np.asarray(sizes, np.int32),
        learning_rate=np.full(count, recipe.learning_rate, np.float32),
        width=np.full(count, recipe.width, np.int32),
    )
    steps = epoch_lengths(recipe, rows.size)
    return Job(make_trainer(recipe, task), plan_subset, rows, task.train.labels, data, steps, mesh)


class TrainedOnSubsets(NamedTuple):
    """What became of G networks.

    Attributes:
        epochs: that each was trained for.
        validation_accuracy: of its best epoch.
        test_accuracy: of that epoch.
        test_geometric_mean: of the recalls of the classes, at that epoch (`irtjax.selection.recalls`).
    """

    epochs: Int[np.ndarray, " G"]
    validation_accuracy: Float[np.ndarray, " G"]
    test_accuracy: Float[np.ndarray, " G"]
    test_geometric_mean: Float[np.ndarray, " G"]


@checks_types
@processes.collective
def train_on_subsets(
    task: Task,
    recipe: Recipe,
    orders: Int[AnyArray, "G N"],
    sizes: Int[AnyArray, " G"],
    seeds: Int[AnyArray, " G"],
    *,
    slots: int | None = None,
    checkpoints: str | Path | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    mesh: jax.sharding.Mesh | None = None,
) -> TrainedOnSubsets:
    """Trains G networks by one recipe, each on some of the training examples, and tests them.

    They train side by side, as many at once as is fastest.

    Args:
        task: what they are trained on.
        recipe: how.
        orders: indices of all N training examples, such as those from `ranking`.
        sizes: network g is trained on the first `sizes[g]` examples of `orders[g]`.
        seeds: of initial weights and minibatches. Networks of equal seeds start from equal weights, so that strategies
            can be compared pair by pair.
        slots: networks that train at once on a device; None for what is fastest, by a measurement that is kept in the
            cache.
        checkpoints: a folder for the state of training, see `irtjax.crowd.train_crowd`.
        on_progress: called as networks end epochs.
        mesh: devices to train on, see `irtjax.crowd.train_crowd`.

    Raises:
        InputError: a recipe that the task does not allow, or checkpoints that are damaged or of other networks.
    """
    own_mesh = default_mesh(len(sizes), mesh)
    data = to_device(task, own_mesh)
    whole = subset_job(task, recipe, data, orders, sizes, seeds, own_mesh)
    whole = dataclasses.replace(whole, shrinks=not is_short(recipe, whole.steps))

    def job(networks: np.ndarray) -> Job:
        rows = jax.tree.map(lambda column: column[networks], whole.rows)
        return dataclasses.replace(whole, rows=rows, steps=whole.steps[networks])

    def at_once(count: int) -> int:
        return choose_slots(task, recipe, data, count, own_mesh, slots)

    def answer(_: np.ndarray, finished: Finished) -> dict[str, np.ndarray]:
        right = finished.classify(data.test) == task.test.labels
        of_each = jax.vmap(functools.partial(geometric_mean_of_recalls, num_classes=len(task.classes)), (0, None))
        found = right.mean(axis=1), np.asarray(of_each(right, task.test.labels), float)
        return dict(zip(MEASURES, found, strict=True))

    results = train_groups(
        [Group(recipe.network, longest_first(whole.steps), job, at_once)],
        dict.fromkeys(MEASURES, jax.ShapeDtypeStruct((), np.float64)),
        answer,
        folder=None if checkpoints is None else Path(checkpoints),
        options=digest(fingerprint(recipe, task), MEASURES),
        on_progress=on_progress,
    )
    return TrainedOnSubsets(results["epochs"], results["best_accuracies"], *(results[name] for name in MEASURES))
