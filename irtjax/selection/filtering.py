"""Data filtering: which training examples to keep, by item difficulty (Lalor, Wu and Yu 2019, section 4)."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from irtjax import processes
from irtjax.errors import InputError
from irtjax.tasks import Task
from irtjax.training.data import Data, default_mesh, to_device
from irtjax.training.groups import Group, Progress, train_groups
from irtjax.training.loop import Plan
from irtjax.training.pool import Finished, Job
from irtjax.training.pool_size import choose_slots
from irtjax.training.recipe import Recipe, epoch_lengths, fingerprint, longest_first, make_trainer
from irtjax.types import AnyArray, Float, Int

STRATEGIES = ("AVI", "AVO", "UB", "LB", "PCUB", "PCLB", "random")
CENTRED = ("AVI", "AVO")  # strategies that depend on what is average
CENTRES: dict[str, Callable[[np.ndarray], float]] = {
    "difficulty": lambda difficulty: float(difficulty.mean()),
    "median": lambda difficulty: float(np.median(difficulty)),
    "ability": lambda difficulty: 0.0,
    "midpoint": lambda difficulty: float(difficulty.mean()) / 2,
}


def centre_of(difficulty: Float[AnyArray, " N"], centre: str) -> float:
    """The difficulty of an average example, in logits.

        ==========  ============================================================
        difficulty  the mean difficulty
        median      the median difficulty
        ability     0, the mean ability of the crowd
        midpoint    halfway between mean ability and mean difficulty
        ==========  ============================================================

    The studies do not say where b = 0 is. Fits here put it at the mean ability. Free means of abilities and
    difficulties, both at 0 when a fit by gradients starts, end up with the midpoint at 0.

    Args:
        difficulty: (N,) b, relative to the mean ability of the crowd.
        centre: one of `CENTRES`.

    Raises:
        InputError: unknown centre.
    """
    if centre not in CENTRES:
        raise InputError(f"unknown centre {centre!r}, expected one of {', '.join(CENTRES)}")
    return CENTRES[centre](np.asarray(difficulty))


def ranking(
    strategy: str,
    difficulty: Float[AnyArray, " N"],
    percent_correct: Float[AnyArray, " N"],
    seed: int = 0,
    centre: str = "difficulty",
) -> Int[np.ndarray, " N"]:
    """Training examples in the order in which a strategy takes them in as its threshold d moves.

        =======  ===================  =======================================
        AVI      keep |b - c| < d     average examples first
        AVO      keep |b - c| > d     extreme examples, easy or hard, first
        UB       keep b < d           easy examples first
        LB       keep b > d           hard examples first
        PCUB     keep pc < d          examples that few answer right first
        PCLB     keep pc > d          examples that most answer right first
        random   control              any order
        =======  ===================  =======================================

    The first k of the order are what the strategy keeps at the threshold that keeps k examples.

    Args:
        strategy: one of `STRATEGIES`.
        difficulty: (N,) b, relative to the mean ability of the crowd.
        percent_correct: (N,) pc, 0 to 1.
        seed: of the random order, which also decides among ties (many where few answered).
        centre: what c is, see `centre_of`.

    Returns:
        (N,) indices.

    Raises:
        InputError: unknown strategy or centre.
    """
    key = _key(strategy, difficulty, percent_correct, centre)
    shuffled = np.random.default_rng(seed).permutation(difficulty.size)
    return shuffled[np.argsort(key[shuffled], kind="stable")]


def threshold(
    strategy: str,
    difficulty: Float[AnyArray, " N"],
    percent_correct: Float[AnyArray, " N"],
    kept: Int[AnyArray, " K"],
    centre: str = "difficulty",
) -> float:
    """The threshold d at which a strategy keeps the examples `kept`, (K,) indices: the value of the last of them.

    NaN for the random choice. Examples at the threshold itself are all, some or one of those kept.
    """
    if strategy == "random":
        return float("nan")
    last = float(_key(strategy, difficulty, percent_correct, centre)[kept].max())
    return -last if strategy in ("AVO", "LB", "PCLB") else last


def _key(strategy: str, difficulty: AnyArray, percent_correct: AnyArray, centre: str) -> np.ndarray:
    """What a strategy sorts by, those it keeps first."""
    distance = np.abs(difficulty - centre_of(difficulty, centre))
    keys = {
        "AVI": distance,
        "AVO": -distance,
        "UB": difficulty,
        "LB": -difficulty,
        "PCUB": percent_correct,
        "PCLB": -percent_correct,
        "random": np.zeros_like(difficulty),
    }
    if strategy not in keys:
        raise InputError(f"unknown filtering strategy {strategy!r}, expected one of {', '.join(STRATEGIES)}")
    return np.asarray(keys[strategy])


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
    """

    epochs: Int[np.ndarray, " G"]
    validation_accuracy: Float[np.ndarray, " G"]
    test_accuracy: Float[np.ndarray, " G"]


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

    def job(networks: np.ndarray) -> Job:
        rows = jax.tree.map(lambda column: column[networks], whole.rows)
        return dataclasses.replace(whole, rows=rows, steps=whole.steps[networks])

    def at_once(count: int) -> int:
        return choose_slots(task, recipe, data, count, own_mesh, slots)

    def answer(_: np.ndarray, finished: Finished) -> dict[str, np.ndarray]:
        return {"test_accuracy": (finished.classify(data.test) == task.test.labels).mean(axis=1)}

    results = train_groups(
        [Group(recipe.network, longest_first(whole.steps), job, at_once)],
        {"test_accuracy": jax.ShapeDtypeStruct((), np.float64)},
        answer,
        folder=None if checkpoints is None else Path(checkpoints),
        options=fingerprint(recipe, task),
        on_progress=on_progress,
    )
    return TrainedOnSubsets(results["epochs"], results["best_accuracies"], results["test_accuracy"])
