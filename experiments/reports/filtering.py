"""The report on filtering: accuracy against data kept, and which classes are kept."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.common.settings import Settings
from experiments.reports import markdown
from irtjax.plots import filtering as plots
from irtjax.plots.difficulty import class_densities
from irtjax.plots.style import save_figure
from irtjax.selection.filter_summary import accuracies, against_control, largest_classes
from irtjax.selection.filtering import centre_of
from irtjax.tasks import Task
from irtjax.types import Float


def write(task: Task, items: pd.DataFrame, settings: Settings, directory: Path) -> dict[str, Any]:
    """Draws the pictures of a run of `experiments.filtering`; returns the values of the report."""
    b = items.difficulty.to_numpy()
    title = f"{task.name}: difficulty of the training examples, by class"
    save_figure(class_densities(b, task.train.labels, task.classes, title), directory / "densities.png")
    kept = pd.read_csv(directory / "filtering" / "kept.csv", dtype={"class": str})
    save_figure(plots.class_balance(kept), directory / "class_balance.png")
    most = largest_classes(kept)
    cells = [f"{100 * row.share_of_kept:.0f}% ({markdown.inline(row['class'])})" for _, row in most.iterrows()]
    values = {"task": task, "classes": _wide(cells, most.index), **compared(directory, b, settings)}
    table, measure = values["filtered"], "test_geometric_mean"  # absent from runs of earlier versions
    found = _means(accuracies(table, measure)).loc[table.strategy.unique()] if measure in table else None
    return values | {"geometric_means": found}


def compared(directory: Path, difficulty: Float[np.ndarray, " N"], settings: Settings) -> dict[str, Any]:
    """Draws the accuracies in `filtering/` of a run directory; returns the values of the section on them."""
    table = pd.read_csv(directory / "filtering" / "filtering.csv")
    strategies = table.strategy.unique()
    save_figure(plots.accuracy_against_share(table, strategies), directory / "filtering.png")
    differences = against_control(table)
    return {
        "centre": centre_of(difficulty, settings.centre),
        "by_class": settings.by_class,
        "sampled": settings.sampled,
        "filtered": table,
        "accuracies": _means(accuracies(table)).loc[strategies],
        "differences": _wide(map(markdown.Limits, *differences.to_numpy().T), differences.index),
    }


def _means(of_networks: pd.DataFrame) -> pd.DataFrame:
    """Means and their intervals in percent."""
    return _wide(map(markdown.Mean, *100 * of_networks[["mean", "half"]].to_numpy().T), of_networks.index)


def _wide(cells: Iterable[object], index: pd.MultiIndex) -> pd.DataFrame:
    """Strategies by shares in percent."""
    wide = pd.Series(list(cells), index, object).unstack("share", sort=False)
    return wide.rename(columns=lambda share: 100 * share).sort_index(axis=1)
