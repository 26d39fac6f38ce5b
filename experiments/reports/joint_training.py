"""The report on networks that learn a task and the difficulty of its items."""

from pathlib import Path

import numpy as np
import pandas as pd

from experiments.reports import markdown
from irtjax.plots.new_items import difficulties_by_set, predicted_and_fitted
from irtjax.plots.style import save_figure
from irtjax.selection.summary import detectable, interval
from irtjax.tasks import Task

EXTREMES = 5  # items that are shown
SCORES = {"doubt": "1 - largest probability", "difficulty": "difficulty", "difficulty_sd": "its standard deviation"}


def write(task: Task, directory: Path, test: pd.DataFrame | None) -> list[str]:
    """Writes the pictures; returns the sections of the report."""
    networks, outside, said = (
        pd.read_csv(directory / "joint" / f"{name}.csv") for name in ("networks", "outside", "said")
    )
    parts = [_accuracy(networks)]
    if test is not None:
        parts.append(_difficulty(task, networks, said[said["set"] == "test"], test, directory))
    if len(outside):
        parts.append(_outside(outside, said, directory))
    return parts


def _accuracy(networks: pd.DataFrame) -> str:
    wide = networks.pivot(index="seed", columns="method", values="test_accuracy") * 100
    rows = [
        [
            name,
            f"{networks[networks.method == name].best_epoch.mean():.1f}",
            _mean(wide[name], ".2f"),
        ]
        for name in networks.method.unique()
    ]
    change = wide["joint"] - wide["alone"]
    seen = detectable(change)
    power = "" if np.isnan(seen) else f" The smallest change detectable with 80% power is {seen:.2f}."
    return f"""## The task

Test accuracy at the best validation epoch: mean of {markdown.seeds(len(wide))}. Networks of one seed begin with the
same weights. Where they learn the difficulties too, accuracy changes by {_mean(change, "+.2f")} points.{power}

{markdown.table(["learns", "best epoch", "test accuracy (%)"], rows)}"""


def _difficulty(task: Task, networks: pd.DataFrame, said: pd.DataFrame, test: pd.DataFrame, directory: Path) -> str:
    joint = networks[networks.method == "joint"]
    alone = networks[networks.method == "alone"]
    b = test.difficulty.to_numpy()
    save_figure(
        predicted_and_fitted(said.predicted.to_numpy(), b, f"{len(said):,} test items of {task.name}"),
        directory / "predicted.png",
    )
    rows = [
        ["difficulty", _mean(joint.spearman, ".3f"), _mean(joint.rmse, ".3f")],
        ["softmax uncertainty of the same networks", _mean(joint.spearman_doubt, ".3f"), ""],
        ["softmax uncertainty of networks that learn the task alone", _mean(alone.spearman_doubt, ".3f"), ""],
        ["mean difficulty of the test items", "", f"{b.std():.3f}"],
    ]
    texts = task.test.texts
    order = np.argsort(said.predicted.to_numpy(), kind="stable")
    shown = [
        [
            markdown.inline(str(task.test.ids[at])),
            markdown.inline(task.classes[task.test.labels[at]]),
            f"{said.predicted.iloc[at]:.2f}",
            f"{b[at]:.2f}",
            *([] if texts is None else [markdown.inline(texts[at])]),
        ]
        for at in (*order[:EXTREMES], *order[::-1][:EXTREMES])
    ]
    header = ["item", "label", "predicted", "by the crowd", *([] if texts is None else ["text"])]
    return f"""## Difficulties of test items

The networks saw no difficulty of these. Softmax uncertainty is 1 minus the probability of the most probable class,
which any network has. {joint.coverage.mean():.1%} of the difficulties lie in their 95% intervals, on average over
single networks.

{markdown.table(["predicted by", "Spearman", "error (logits)"], rows)}

![Difficulty by the crowd against predicted difficulty](predicted.png)

Predicted to be the easiest, and the hardest:

{markdown.table(header, shown)}"""


def _outside(outside: pd.DataFrame, said: pd.DataFrame, directory: Path) -> str:
    save_figure(difficulties_by_set(said), directory / "outside.png")
    rows = []
    for (method, score), group in outside.groupby(["method", "score"], sort=False):
        of_sets = group.groupby("outside", sort=False).auc
        values = [_mean(one, ".3f") for _, one in of_sets]
        rows.append([method, SCORES[str(score)], *values])
    return f"""## Out-of-distribution inputs

The area under the ROC curve (AUC) of a score as a detector of inputs that are of none of the classes, beside the test
split: 0.5 is chance.

{markdown.table(["learns", "score", *outside.outside.unique()], rows)}

![Distributions of predicted difficulty](outside.png)"""


def _mean(values: pd.Series, form: str) -> str:
    return markdown.with_interval(values.mean(), interval(values), form)
