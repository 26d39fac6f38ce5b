"""The curriculum stage: the same network under each strategy, on the difficulties of the crowd."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from experiments.common import peers
from experiments.common.factory import curriculum_recipe_of
from experiments.common.progress import CurriculumProgress
from experiments.common.settings import Settings
from irtjax.errors import InputError
from irtjax.evaluation.adaptive import adaptive_test
from irtjax.evaluation.adaptive_options import Stop
from irtjax.evaluation.binary_adaptive import AdaptiveTest
from irtjax.item_models.tables import from_columns
from irtjax.populations.normal import Population
from irtjax.selection.choices import BASELINE, CurriculumOptions
from irtjax.selection.compare import compare_curricula
from irtjax.selection.summary import summarise
from irtjax.selection.tracking import Tracked
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
    monitor: AdaptiveTest | None = None,
) -> pd.DataFrame:
    """Trains networks under each strategy: one row per strategy, seed and epoch.

    Args:
        settings: of the run.
        task: its training split is what the curricula choose from.
        items: difficulties of the training items, in their order.
        population: abilities of the crowd, for a MAP estimate.
        checkpoints: folder for what has finished.
        strategies: those that the task allows, the baseline among them.
        monitor: an adaptive test on the training items, which networks take after each epoch.
    """
    recipe = curriculum_recipe_of(settings)
    progress = CurriculumProgress(recipe.max_epochs)
    return compare_curricula(
        task,
        items.difficulty.to_numpy(),
        strategies,
        recipe=recipe,
        options=CurriculumOptions(settings.curriculum_length, settings.initial_share, settings.window, settings.floor),
        num_seeds=settings.curriculum_seeds,
        first_seed=settings.seed,
        population=population if settings.ability == "map" else None,
        probe_error=settings.probe_error if settings.probe == "sample" else None,
        by_class=settings.by_class,
        monitor=monitor,
        slots=settings.slots or None,
        checkpoints=checkpoints,
        on_strategy=progress.strategy,
        on_epoch=progress.on_epoch,
        mesh=peers.mesh(),
    )


def monitor_of(items: pd.DataFrame, task: Task, number: int, population: Population) -> AdaptiveTest:
    """An adaptive test on the training examples; classes keep their shares.

    A network that has just begun is right on some classes and wrong on others, which no single ability describes.

    Args:
        items: parameters, by the ids of the examples and perhaps others.
        task: whose examples they are.
        number: of items of each test.
        population: of abilities.

    Raises:
        InputError: a parameter is missing or out of range, or there are fewer examples.
    """
    bank = from_columns(items.loc[task.train.ids.astype(str)])
    if number > len(bank.intercept):
        raise InputError(
            f"`monitor` {number:,}, but there are {len(bank.intercept):,} training examples: ask for fewer"
        )
    stop = Stop(number)
    return adaptive_test(bank, rule="variance", population=population, stop=stop, groups=task.train.labels)


def write(table: pd.DataFrame, folder: Path) -> None:
    """Writes `curriculum.csv`, `summary.csv`, one row per strategy, and `monitor.csv` where there was a monitor."""
    monitored = list(Tracked._fields)
    write_csv(table.drop(columns=monitored), folder / "curriculum.csv")
    if table.monitor_ability.notna().any():
        write_csv(table[["strategy", "seed", "epoch", *monitored, "dev_accuracy"]], folder / "monitor.csv")
    write_csv(summarise(table), folder / "summary.csv")
