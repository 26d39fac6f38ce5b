"""The report on curricula: accuracy and data used, beside the baseline and what was published, and what they cost."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.common.settings import Settings
from experiments.common.task_defaults import TASK_DEFAULTS
from experiments.common.task_items import CrowdCost
from experiments.reports import markdown
from irtjax.comparison.rank_agreement import rank_gaps
from irtjax.plots import curricula
from irtjax.plots.style import save_figure
from irtjax.selection.choices import BASELINE
from irtjax.selection.measures import never_half
from irtjax.selection.summary import net_saving, summarise
from irtjax.selection.tracking import tracking_errors
from irtjax.tasks import Task, describe
from irtjax.tasks.task import TextFormat
from irtjax.tasks.text import lengths

NUM_TEXTS = 10


def write(
    settings: Settings, task: Task, items: pd.DataFrame, cost: CrowdCost | None, monitor: int, directory: Path
) -> dict[str, Any]:
    """Draws the pictures of a run of `experiments.curriculum`; returns the values of the report."""
    table, summary = read(directory)
    return {
        "task": task,
        **compared(settings, table, summary, directory),
        **against_published(settings, summary, directory),
        "num_items": monitor,
        "monitored": monitored(directory, monitor) if monitor else None,
        **costs(summary, cost),
        "discrepancies": discrepancies(task, items) if isinstance(task.format, TextFormat) else None,
    }


def read(directory: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`curriculum.csv` of a run directory and its summary; `summary.csv` may lack columns that are new."""
    table = pd.read_csv(directory / "curriculum" / "curriculum.csv")
    return table, summarise(table)


def compared(settings: Settings, table: pd.DataFrame, summary: pd.DataFrame, directory: Path) -> dict[str, Any]:
    """Accuracy, data used and changes against the baseline, from the table of all epochs and its summary."""
    save_figure(curricula.curricula(table, table.strategy.unique()), directory / "curriculum.png")
    asked, of_main = table.items_asked[table.items_asked > 0], table[table.strategy == "DDaCLAE"]
    summary = summary.assign(
        accuracy_change_points=summary.accuracy_change_points.where(summary.strategy != BASELINE),
        **100 * summary.filter(like="test_"),  # one of which runs of earlier versions lack
    )
    return {
        "settings": settings,
        "strategies": markdown.intervals(summary, "_ci").assign(items_asked=summary.items_asked),
        "asked": None if settings.probe == "all" or asked.nunique() <= 1 else asked,
        "stalled": never_half(of_main),
        "num_seeds": of_main.seed.nunique(),
    }


def against_published(settings: Settings, summary: pd.DataFrame, directory: Path) -> dict[str, Any]:
    """Strategies by what the published study measured, and by measures that wander less, relative to the baseline."""
    table = summary[summary.strategy != BASELINE]
    if table.empty:
        return {"relative": table, "published": False}
    save_figure(curricula.forest(summary), directory / "forest.png")
    study = TASK_DEFAULTS[settings.task].published if settings.task in TASK_DEFAULTS else {}
    columns: dict[str, Any] = {}
    # of what happened to no network there is no number of examples
    reach = [name for name in table if name.startswith("reach_")]
    table = table.assign(**{name: table[name].where(table.reached > 0) for name in reach})
    for name in ("examples", "reach"):
        limits = (table[f"{name}_ratio{end}"] for end in ("", "_low", "_high"))
        columns[f"{name}_ratio"] = list(map(markdown.ratio, *limits))
        columns[f"{name}_detectable"] = table[f"{name}_detectable"].map("{:.0f}%".format, na_action="ignore")
    known = [study.get(name) for name in table.strategy]
    columns["published_ratio"] = [np.nan if found is None else 1 + found.examples_used / 100 for found in known]
    columns["published_change"] = [np.nan if found is None else found.test_accuracy for found in known]
    return {"relative": markdown.intervals(table, "_ci").assign(**columns), "published": bool(study)}


def monitored(directory: Path, number: int) -> pd.DataFrame:
    """How far the accuracies by a few adaptive items are from the true ones."""
    table = pd.read_csv(directory / "curriculum" / "monitor.csv")
    save_figure(curricula.monitored(table, table.strategy.unique(), number), directory / "monitor.png")
    return tracking_errors(table).map("{:.3f}".format)


def costs(summary: pd.DataFrame, crowd: CrowdCost | None, strategy: str = "DDaCLAE") -> dict[str, Any]:
    """What the difficulties cost, and what the strategy saved by using them; no saving where it was not used."""
    saving = net_saving(summary, strategy) if strategy in set(summary.strategy) else None
    return {"strategy": strategy, "saving": saving, "crowd": crowd}


def discrepancies(task: Task, items: pd.DataFrame) -> dict[str, Any]:
    """Texts whose difficulty and length differ most in rank."""
    labels = [task.classes[label] for label in task.train.labels]
    table = pd.DataFrame({"text": describe(task, task.train), "label": labels, "words": lengths(task.train)})
    table = table.assign(difficulty=items.difficulty.to_numpy())
    order = np.argsort(rank_gaps(table.difficulty.to_numpy(), table.words.to_numpy()), kind="stable")
    return {
        "texts": table,
        "correlation": table.difficulty.corr(table.words, method="spearman"),
        "short and hard": table.iloc[order[::-1][:NUM_TEXTS]],
        "long and easy": table.iloc[order[:NUM_TEXTS]],
    }
