"""The filtering stage: train new networks on the subsets that each strategy keeps."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.progress import training_bar
from experiments.settings import Settings, make_trainer
from irtjax.files import write_csv
from irtjax.filtering import STRATEGIES, plan_subsets, ranking
from irtjax.tasks import Task
from irtjax.training import predict_all, to_device, train_networks

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def run(settings: Settings, task: Task, items: pd.DataFrame, folder: Path) -> None:
    """Writes `filtering.csv`: a row a strategy, share of data kept and seed, all trained as one program.

    Args:
        settings: of the run.
        task: networks train on its training split.
        items: difficulty and percent_correct of the training items, in their order.
        folder: to write to.
    """
    num_examples = len(task.train.labels)
    seeds = range(settings.seed, settings.seed + settings.filtering_seeds)
    orders = {
        (strategy, seed): ranking(strategy, items.difficulty.to_numpy(), items.percent_correct.to_numpy(), seed)
        for strategy, seed in product(STRATEGIES, seeds)
    }
    table = pd.DataFrame(product(STRATEGIES, SHARES, seeds), columns=["strategy", "share", "seed"])
    table["examples"] = np.maximum(np.round(table.share * num_examples), 1).astype(int)
    plans = plan_subsets(
        np.stack([orders[row.strategy, row.seed] for row in table.itertuples()]),
        table.examples.to_numpy(),
        table.seed.to_numpy(),
        task.train.labels,
    )
    trainer = make_trainer(settings, task, settings.patience)
    data = to_device(task)
    with training_bar("filtering", settings.epochs, len(table)) as on_epoch:
        learners = train_networks(trainer, plans, data, settings.steps_per_epoch, on_epoch=on_epoch)
    table["epochs"] = np.asarray(learners.epoch)
    table["dev_accuracy"] = np.asarray(learners.best_accuracy)
    predictions = predict_all(trainer.network, learners.best_parameters, data.test.inputs)
    table["test_accuracy"] = (np.asarray(predictions) == task.test.labels).mean(axis=1)
    write_csv(table, folder / "filtering.csv")
