"""The curriculum stage: the same network under each strategy, on the difficulties of the crowd."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from experiments.common.factory import make_trainer
from experiments.common.progress import CurriculumProgress
from experiments.common.settings import Settings
from irtjax.kernels.scoring import Population
from irtjax.selection.compare import compare_curricula
from irtjax.selection.strategies import BASELINE, Options
from irtjax.selection.summary import summarise
from irtjax.storage.files import write_csv
from irtjax.tasks import Task

STRATEGIES = (BASELINE, "CB-linear", "CB-root", "DDaCLAE")  # of the pipeline


def run(
    settings: Settings,
    task: Task,
    items: pd.DataFrame,
    population: Population,
    folder: Path,
    strategies: Sequence[str] = STRATEGIES,
) -> None:
    """Writes `curriculum.csv`, one row per strategy, seed and epoch, and `summary.csv`, one row per strategy.

    Args:
        settings: of the run.
        task: its training split is what the curricula choose from.
        items: difficulties of the training items, in their order.
        population: abilities of the crowd, for a MAP estimate.
        folder: to write to.
        strategies: those that the task allows, the baseline among them.
    """
    progress = CurriculumProgress(settings.epochs)
    table = compare_curricula(
        task,
        items.difficulty.to_numpy(),
        make_trainer(settings, task, settings.curriculum_patience),
        strategies,
        learning_rate=settings.learning_rate,
        options=Options(settings.curriculum_length, settings.initial_share, settings.window),
        num_seeds=settings.curriculum_seeds,
        first_seed=settings.seed,
        population=population if settings.ability == "map" else None,
        probe_error=settings.probe_error if settings.probe == "sample" else None,
        on_strategy=progress.strategy,
        on_epoch=progress.on_epoch,
    )
    write_csv(table, folder / "curriculum.csv")
    write_csv(summarise(table), folder / "summary.csv")
