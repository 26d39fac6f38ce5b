"""The curriculum stage: the same network under each strategy, on the difficulties of the crowd."""

from collections.abc import Callable, Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from experiments.common.factory import make_trainer
from experiments.common.progress import CurriculumProgress
from experiments.common.settings import Settings
from irtjax.kernels.scoring import Population
from irtjax.selection.curriculum import (
    History,
    Window,
    full_share,
    hard,
    linear_share,
    ready,
    root_share,
    train_curriculum,
)
from irtjax.selection.summary import interval
from irtjax.storage.files import write_csv
from irtjax.tasks import Task
from irtjax.tasks.task import TextFormat
from irtjax.tasks.text import lengths
from irtjax.training.data import to_device
from irtjax.training.devices import default_mesh

BASELINE = "baseline"
SCHEDULES = {"baseline": full_share, "CB-linear": linear_share, "CB-root": root_share}
BY_LENGTH = {f"{name}-length": name for name in ("CB-linear", "CB-root")}  # the same, the shortest texts first
RULES = ("DDaCLAE", "DDaCLAE-hard", "window")
STRATEGIES = (*SCHEDULES, "DDaCLAE")
ALL_STRATEGIES = (*SCHEDULES, *BY_LENGTH, *RULES)


def choices(task: Task) -> tuple[str, ...]:
    """The strategies that the task allows: images have no length."""
    return ALL_STRATEGIES if isinstance(task.format, TextFormat) else (*SCHEDULES, *RULES)


def run(
    settings: Settings,
    task: Task,
    items: pd.DataFrame,
    population: Population,
    folder: Path,
    strategies: Sequence[str] = STRATEGIES,
) -> None:
    """Writes `curriculum.csv`, a row a strategy, seed and epoch, and `summary.csv`, a row a strategy.

    Args:
        settings: of the run.
        task: its training split is what the curricula choose from.
        items: difficulties of the training items, in their order.
        population: abilities of the crowd, for a MAP estimate.
        folder: to write to.
        strategies: of `choices`, the baseline among them.
    """
    trainer = make_trainer(settings, task, settings.curriculum_patience)
    seeds = np.arange(settings.seed, settings.seed + settings.curriculum_seeds)
    keys = jax.vmap(jax.random.key)(jnp.asarray(seeds, jnp.uint32))
    mesh = default_mesh(len(seeds))
    data = to_device(task, mesh)
    tables = []
    progress = CurriculumProgress(settings.epochs)
    for strategy in strategies:
        with progress.strategy(strategy):
            history = train_curriculum(
                trainer,
                keys,
                data,
                lengths(task.train) if strategy in BY_LENGTH else items.difficulty.to_numpy(),
                _selection(settings, strategy),
                learning_rate=settings.learning_rate,
                width=settings.width,
                population=population if settings.ability == "map" else None,
                probe=settings.probe_error if settings.probe == "sample" else None,
                on_epoch=progress.on_epoch,
                mesh=mesh,
            )
            jax.effects_barrier()
        tables.append(_rows(strategy, seeds, history))
    table = pd.concat(tables, ignore_index=True)
    write_csv(table, folder / "curriculum.csv")
    write_csv(summarise(table), folder / "summary.csv")


def _selection(settings: Settings, strategy: str) -> np.ndarray | Callable:
    """What `train_curriculum` selects by."""
    schedule = SCHEDULES.get(BY_LENGTH.get(strategy, strategy))
    if schedule is full_share:
        return full_share(settings.epochs)
    if schedule is not None:
        return schedule(settings.epochs, settings.curriculum_length, settings.initial_share)
    return {"DDaCLAE": ready, "DDaCLAE-hard": hard, "window": Window(settings.window)}[strategy]


def _rows(strategy: str, seeds: np.ndarray, history: History) -> pd.DataFrame:
    """One row a seed and epoch that took place."""
    columns = {name: np.asarray(values) for name, values in history._asdict().items()}
    seed_index, epoch = np.nonzero(~np.isnan(columns["dev_accuracy"]))
    rows = {name: values[seed_index, epoch] for name, values in columns.items()}
    rows |= {name: rows[name].astype(int) for name in ("examples_used", "items_asked")}
    return pd.DataFrame({"strategy": strategy, "seed": seeds[seed_index], "epoch": epoch, **rows})


def summarise(table: pd.DataFrame) -> pd.DataFrame:
    """Per strategy, means over seeds with the half width of their 95% interval (`_ci`), at the best validation epoch.

    Columns: `best_epoch`, counted from 1; `examples_used` and `items_asked` up to and including that epoch;
    `test_accuracy` at it. `examples_change_percent` and `accuracy_change_percent` are the mean over seeds of the
    difference from the baseline of the same seed, which began with the same weights, in percent of the baseline's mean,
    whose own uncertainty their intervals leave out; `accuracy_change_points` is in percentage points.
    """
    sums = table.groupby(["strategy", "seed"])[["examples_used", "items_asked"]].cumsum()
    table = table.assign(**sums, best_epoch=table.epoch + 1)
    best = table.loc[table.groupby(["strategy", "seed"], sort=False).dev_accuracy.idxmax()].set_index("seed")
    baseline = best[best.strategy == BASELINE]
    rows = []
    for strategy, group in best.groupby("strategy", sort=False):
        columns = {name: group[name] for name in ("best_epoch", "examples_used", "items_asked", "test_accuracy")}
        for name, column in (("examples", "examples_used"), ("accuracy", "test_accuracy")):
            change = group[column] - baseline[column]
            columns[f"{name}_change_percent"] = 100 * change / baseline[column].mean()
        columns["accuracy_change_points"] = 100 * change
        row = {"strategy": strategy, "seeds": len(group)}
        for name, values in columns.items():
            row |= {name: values.mean(), f"{name}_ci": interval(values)}
        rows.append(row)
    return pd.DataFrame(rows)
