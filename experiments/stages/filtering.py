"""The filtering stage: train new networks on the subsets that each strategy keeps."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from experiments.common import peers
from experiments.common.factory import recipe_of
from experiments.common.progress import networks_bar
from experiments.common.settings import Settings
from irtjax.selection.choices import FILTERS
from irtjax.selection.filter_summary import kept_classes
from irtjax.selection.filtering import drawn, number_kept, ranking, within_classes
from irtjax.selection.subsets import train_on_subsets
from irtjax.storage.files import write_csv
from irtjax.tasks import Task

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


class Filtered(NamedTuple):
    """The results of the stage: one row per strategy, share of data kept and seed; and the classes of what is kept."""

    filtering: pd.DataFrame
    kept: pd.DataFrame


def run(
    settings: Settings,
    task: Task,
    items: pd.DataFrame,
    checkpoints: Path,
    strategies: Sequence[str] = FILTERS,
    shares: Sequence[float] = SHARES,
) -> Filtered:
    """Trains networks on what each strategy keeps.

    Args:
        settings: of the run.
        task: networks train on its training split.
        items: difficulty and proportion_correct of the training items, in their order; with `settings.sampled` also
            difficulty_se.
        checkpoints: folder for the state of training.
        strategies: of `FILTERS`.
        shares: of the training data, 0 to 1.
    """
    num_examples = len(task.train.labels)
    seeds = range(settings.seed, settings.seed + settings.filtering_seeds)
    difficulty, percent_correct = items.difficulty.to_numpy(), items.proportion_correct.to_numpy()

    def scales(seed: int) -> tuple[np.ndarray, np.ndarray]:
        own = drawn(difficulty, items.difficulty_se.to_numpy(), seed) if settings.sampled else difficulty
        return own, percent_correct

    def order(strategy: str, seed: int) -> np.ndarray:
        found = ranking(strategy, *scales(seed), seed, settings.centre)
        return within_classes(found, task.train.labels) if settings.by_class else found

    orders = {(strategy, seed): order(strategy, seed) for strategy, seed in product(strategies, seeds)}
    table = pd.DataFrame(product(strategies, shares, seeds), columns=["strategy", "share", "seed"])
    table["examples"] = [number_kept(share, num_examples) for share in table.share]
    with networks_bar("filtering", len(table)) as on_progress:
        trained = train_on_subsets(
            task,
            recipe_of(settings),
            np.stack([orders[row.strategy, row.seed] for row in table.itertuples()]),
            table.examples.to_numpy(),
            table.seed.to_numpy(),
            slots=settings.slots or None,
            checkpoints=checkpoints,
            on_progress=on_progress,
            mesh=peers.mesh(),
        )
    table["epochs"] = trained.epochs
    table["dev_accuracy"] = trained.validation_accuracy
    table["test_accuracy"] = trained.test_accuracy
    table["test_geometric_mean"] = trained.test_geometric_mean
    examples = table.set_index(["strategy", "share"]).examples.to_dict()  # the same for all seeds
    kept = {(name, share): orders[name, settings.seed][:count] for (name, share), count in examples.items()}
    first, labels = scales(settings.seed), task.train.labels
    classes = kept_classes(kept, labels, task.classes, first, settings.centre, by_class=settings.by_class)
    return Filtered(table, classes)


def write(filtered: Filtered, folder: Path) -> None:
    """Writes one table per field."""
    for name, table in filtered._asdict().items():
        write_csv(table, folder / f"{name}.csv")
