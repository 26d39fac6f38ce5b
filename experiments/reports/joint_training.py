"""The report on networks that learn a task and the difficulty of its items."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.reports import markdown
from irtjax.plots.new_items import difficulties_by_set, predicted_and_fitted
from irtjax.plots.style import save_figure
from irtjax.selection.summary import detectable
from irtjax.tasks import Task

ATTACKED = "adversarial_accuracy"
EXTREMES = 5  # items that are shown
LEARNS = {"alone": "the task alone", "joint": "difficulties by the crowd", "own": "difficulties by its own answers"}
SCORES = {"doubt": "1 - largest probability", "difficulty": "difficulty", "difficulty_sd": "its standard deviation"}


def write(task: Task, directory: Path, test: pd.DataFrame | None) -> dict[str, Any]:
    """Draws the pictures; returns the values of the report."""
    networks, outside, said = (
        pd.read_csv(directory / "joint" / f"{name}.csv") for name in ("networks", "outside", "said")
    )
    values = {"task": task, "of_test": None, "outside": outside} | _accuracy(networks)
    if test is not None:
        said_of_test, b = said[said["set"] == "test"], test.difficulty.to_numpy()
        title = f"{len(said_of_test):,} test items of {task.name}"
        save_figure(predicted_and_fitted(said_of_test.predicted.to_numpy(), b, title), directory / "predicted.png")
        found = networks.groupby("method")[["coverage", "spearman", "rmse", "spearman_doubt"]].agg(markdown.mean_of)
        values["of_test"] = {"by": found.T, "sd": b.std(), "extremes": _extremes(task, said_of_test, b)}
    if len(outside):
        save_figure(difficulties_by_set(said), directory / "outside.png")
        found = outside.groupby(["method", "score", "outside"], sort=False).auc.agg(markdown.mean_of).unstack()
        found = found[outside.outside.unique()].rename(index=SCORES, level="score").rename(index=LEARNS, level="method")
        values["outside"] = found.reset_index()
    return values


def _accuracy(networks: pd.DataFrame) -> dict[str, Any]:
    """Epochs and accuracies by what networks learn, and the changes against the task alone."""
    wide = networks.pivot(index="seed", columns="method", values="test_accuracy") * 100
    methods = networks.groupby("method", sort=False)
    rows = [
        {
            "learns": LEARNS[name],
            "epoch": of_method.best_epoch.mean(),
            "accuracy": markdown.mean_of(wide[name]),
            "change": markdown.Mean(np.nan, np.nan)
            if name == "alone"
            else markdown.mean_of(wide[name] - wide["alone"]),
            "detectable": np.nan if name == "alone" else detectable(wide[name] - wide["alone"]),
        }
        | ({"attacked": markdown.mean_of(of_method[ATTACKED] * 100)} if ATTACKED in of_method else {})
        for name, of_method in methods
    ]
    own = networks[networks.method == "own"]
    return {
        "num_seeds": len(wide),
        "accuracies": pd.DataFrame(rows),
        "of_training_items": markdown.mean_of(own.spearman_train) if len(own) else None,
    }


def _extremes(task: Task, said: pd.DataFrame, b: np.ndarray) -> pd.DataFrame:
    """The test items that are predicted to be the easiest, and the hardest."""
    order = np.argsort(said.predicted.to_numpy(), kind="stable")
    labels = [task.classes[label] for label in task.test.labels]
    known = {} if task.test.texts is None else {"text": task.test.texts}
    table = {"item_id": task.test.ids, "label": labels, "predicted": said.predicted.to_numpy(), "b": b, **known}
    return pd.DataFrame(table).iloc[[*order[:EXTREMES], *order[::-1][:EXTREMES]]]
