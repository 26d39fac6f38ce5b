"""The curriculum stage: the same network under each strategy, on the difficulties of the crowd."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from experiments.common import peers
from experiments.common.factory import curriculum_recipe_of
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
    checkpoints: Path | None = None,
    strategies: Sequence[str] = STRATEGIES,
) -> pd.DataFrame:
    """Trains networks under each strategy: one row per strategy, seed and epoch.

    Args:
        settings: of the run.
        task: its training split is what the curricula choose from.
        items: difficulties of the training items, in their order.
        population: abilities of the crowd, for a MAP estimate.
        checkpoints: folder for what has finished.
        strategies: those that the task allows, the baseline among them.
    """
    recipe = curriculum_recipe_of(settings)
    progress = CurriculumProgress(recipe.max_epochs)
    return compare_curricula(
        task,
        items.difficulty.to_numpy(),
        strategies,
        recipe=recipe,
        options=Options(settings.curriculum_length, settings.initial_share, settings.window),
        num_seeds=settings.curriculum_seeds,
        first_seed=settings.seed,
        population=population if settings.ability == "map" else None,
        probe_error=settings.probe_error if settings.probe == "sample" else None,
        slots=settings.slots or None,
        checkpoints=checkpoints,
        on_strategy=progress.strategy,
        on_epoch=progress.on_epoch,
        mesh=peers.mesh(),
    )


def write(table: pd.DataFrame, folder: Path) -> None:
    """Writes `curriculum.csv`, and `summary.csv`, one row per strategy."""
    write_csv(table, folder / "curriculum.csv")
    write_csv(summarise(table), folder / "summary.csv")
