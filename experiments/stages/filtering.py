"""The filtering stage: train new networks on the subsets that each strategy keeps."""

import dataclasses
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.common.factory import make_trainer, pool_slots
from experiments.common.progress import networks_bar
from experiments.common.settings import Settings
from irtjax.selection.filtering import STRATEGIES, SubsetRow, plan_subset, ranking, threshold
from irtjax.storage.files import write_csv
from irtjax.tasks import Task
from irtjax.training.data import to_device
from irtjax.training.devices import default_mesh
from irtjax.training.pool import Job, begin, classify_all, progress, train_all

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def run(
    settings: Settings,
    task: Task,
    items: pd.DataFrame,
    folder: Path,
    strategies: Sequence[str] = STRATEGIES,
    shares: Sequence[float] = SHARES,
) -> None:
    """Writes `filtering.csv`, a row a strategy, share of data kept and seed, and `kept.csv`, see `kept`.

    All networks are trained as one program, as many at once as is fastest.

    Args:
        settings: of the run.
        task: networks train on its training split.
        items: difficulty and percent_correct of the training items, in their order.
        folder: to write to.
        strategies: of `STRATEGIES`.
        shares: of the training data, 0 to 1.
    """
    num_examples = len(task.train.labels)
    seeds = range(settings.seed, settings.seed + settings.filtering_seeds)
    scales = items.difficulty.to_numpy(), items.percent_correct.to_numpy()
    orders = {(strategy, seed): ranking(strategy, *scales, seed) for strategy, seed in product(strategies, seeds)}
    table = pd.DataFrame(product(strategies, shares, seeds), columns=["strategy", "share", "seed"])
    table["examples"] = np.maximum(np.round(table.share * num_examples), 1).astype(int)
    trainer, mesh = make_trainer(settings, task, settings.patience), default_mesh(len(table))
    predictions = np.empty((len(table), len(task.test.labels)), np.int32)
    job = Job(
        trainer=trainer,
        plan=plan_subset,
        rows=SubsetRow(
            seed=table.seed.to_numpy(np.uint32),
            order=np.stack([orders[row.strategy, row.seed] for row in table.itertuples()]).astype(np.int32),
            size=table.examples.to_numpy(np.int32),
            learning_rate=np.full(len(table), settings.learning_rate, np.float32),
            width=np.full(len(table), settings.width, np.int32),
        ),
        shared=task.train.labels,
        data=to_device(task, mesh),
        steps_per_epoch=settings.steps_per_epoch,
        slots=1,
        mesh=mesh,
    )
    job = dataclasses.replace(job, slots=pool_slots(settings, task, job, settings.networks[0]))

    def on_finished(numbers, parameters):
        predictions[numbers] = classify_all(job, parameters, job.data.test)

    with networks_bar("filtering", len(table)) as on_progress:
        pool = train_all(job, begin(job), on_finished, lambda pool: on_progress(progress(pool)))
    table["epochs"] = pool.epochs
    table["dev_accuracy"] = pool.best_accuracies
    table["test_accuracy"] = (predictions == task.test.labels).mean(axis=1)
    write_csv(table, folder / "filtering.csv")
    write_csv(
        kept(task, scales, {strategy: orders[strategy, settings.seed] for strategy in strategies}, table),
        folder / "kept.csv",
    )


def kept(
    task: Task, scales: tuple[np.ndarray, np.ndarray], orders: dict[str, np.ndarray], table: pd.DataFrame
) -> pd.DataFrame:
    """What each strategy keeps at each share, for the first seed: a row a strategy, share and class.

    Columns: `threshold` d, empty for random; the `class`; how many `examples` of it are kept, and their
    `share_of_kept`.
    """
    rows = []
    for (strategy, share), group in table.groupby(["strategy", "share"], sort=False):
        chosen = orders[strategy][: group.examples.iloc[0]]
        counts = np.bincount(task.train.labels[chosen], minlength=task.num_classes)
        rows.append(
            pd.DataFrame(
                {
                    "strategy": strategy,
                    "share": share,
                    "threshold": threshold(strategy, *scales, chosen),
                    "class": task.classes,
                    "examples": counts,
                    "share_of_kept": counts / chosen.size,
                }
            )
        )
    return pd.concat(rows, ignore_index=True)
