"""The curriculum stage: the same network under each strategy, on the difficulties of the crowd."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from experiments.building import make_trainer
from experiments.progress import CurriculumProgress
from experiments.settings import Settings
from irtjax.curriculum import History, full_share, linear_share, ready, root_share, train_curriculum
from irtjax.device_data import to_device
from irtjax.files import write_csv
from irtjax.plots import interval
from irtjax.scoring import Population
from irtjax.tasks import Task

BASELINE = "baseline"
STRATEGIES = (BASELINE, "CB-linear", "CB-root", "DDaCLAE")


def run(settings: Settings, task: Task, items: pd.DataFrame, subjects: pd.DataFrame, folder: Path) -> None:
    """Writes `curriculum.csv`, a row a strategy, seed and epoch, and `summary.csv`, a row a strategy.

    Args:
        settings: of the run.
        task: its training split is what the curricula choose from.
        items: difficulties of the training items, in their order.
        subjects: abilities of the crowd, the population of a MAP estimate.
        folder: to write to.
    """
    trainer = make_trainer(settings, task, settings.curriculum_patience)
    data = to_device(task)
    seeds = np.arange(settings.seed, settings.seed + settings.curriculum_seeds)
    keys = jax.vmap(jax.random.key)(jnp.asarray(seeds, jnp.uint32))
    schedule = (settings.epochs, settings.curriculum_length, settings.initial_share)
    shares = {
        "baseline": full_share(settings.epochs),
        "CB-linear": linear_share(*schedule),
        "CB-root": root_share(*schedule),
        "DDaCLAE": ready,
    }
    population = None
    if settings.ability == "map":
        population = Population(float(subjects.ability.mean()), float(subjects.ability.std()))
    tables = []
    progress = CurriculumProgress(settings.epochs)
    for strategy in STRATEGIES:
        with progress.strategy(strategy):
            history = train_curriculum(
                trainer,
                keys,
                data,
                items.difficulty.to_numpy(),
                shares[strategy],
                learning_rate=settings.learning_rate,
                width=settings.width,
                population=population,
                on_epoch=progress.on_epoch,
            )
            jax.effects_barrier()
        tables.append(_rows(strategy, seeds, history))
    table = pd.concat(tables, ignore_index=True)
    write_csv(table, folder / "curriculum.csv")
    write_csv(summarise(table), folder / "summary.csv")


def _rows(strategy: str, seeds: np.ndarray, history: History) -> pd.DataFrame:
    """One row a seed and epoch that took place."""
    columns = {name: np.asarray(values) for name, values in history._asdict().items()}
    seed_index, epoch = np.nonzero(~np.isnan(columns["dev_accuracy"]))
    rows = {name: values[seed_index, epoch] for name, values in columns.items()}
    rows["examples_used"] = rows["examples_used"].astype(int)
    return pd.DataFrame({"strategy": strategy, "seed": seeds[seed_index], "epoch": epoch, **rows})


def summarise(table: pd.DataFrame) -> pd.DataFrame:
    """Per strategy, means over seeds with the half width of their 95% interval, at the best validation epoch.

    Columns: `best_epoch`, counted from 1; `examples_used` up to and including that epoch; `test_accuracy` at it; the
    change of both against the baseline, in percent of its mean and in percentage points.
    """
    total = table.groupby(["strategy", "seed"]).examples_used.cumsum()
    table = table.assign(total=total, epochs=table.epoch + 1)
    best = table.loc[table.groupby(["strategy", "seed"], sort=False).dev_accuracy.idxmax()]
    rows = []
    for strategy, group in best.groupby("strategy", sort=False):
        row = {"strategy": strategy, "seeds": len(group)}
        for name, column in (
            ("best_epoch", "epochs"),
            ("examples_used", "total"),
            ("test_accuracy", "test_accuracy"),
        ):
            row |= {name: group[column].mean(), f"{name}_ci": interval(group[column])}
        rows.append(row)
    summary = pd.DataFrame(rows)
    baseline = summary[summary.strategy == BASELINE].iloc[0]
    summary["examples_change_percent"] = 100 * (summary.examples_used / baseline.examples_used - 1)
    summary["accuracy_change_points"] = 100 * (summary.test_accuracy - baseline.test_accuracy)
    return summary
