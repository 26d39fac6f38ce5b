"""The report of a pipeline run: pictures and `report.md`, made from the files of its stages."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.common.settings import Settings
from experiments.reports import curriculum, document, filtering
from experiments.stages.difficulty import load_items
from irtjax.plots.difficulty import contact_sheet, densities, suspect_sheet
from irtjax.plots.style import save_figure
from irtjax.svi.choices import PRIORS
from irtjax.tasks import Task, describe
from irtjax.tasks.task import SPLITS

NUM_TEXTS = 10
NUM_IMAGES = 24


def write(settings: Settings, task: Task, directory: Path) -> None:
    """Writes the pictures and `report.md` of a pipeline into its run directory."""
    members = pd.read_csv(directory / "crowd" / "members.csv")
    items = load_items(directory / "difficulty", settings.priors, task.train.ids)
    values = {
        "task": task,
        "members": members,
        "sizes": {name: len(task.split(name).labels) for name in SPLITS},
        "quartiles": members.accuracy_test.quantile([0, 0.25, 0.5, 0.75, 1]).tolist(),
        **_difficulty(settings, task, directory),
        "suspects": _suspects(task, directory),
        "detection": _mislabelled(directory) if settings.mislabelled > 0 else None,
        **filtering.compared(directory, items.difficulty.to_numpy(), settings),
        **curriculum.compared(settings, *curriculum.read(directory), directory),
        **document.made(dataclasses.asdict(settings), directory),
    }
    document.save("pipeline", values, directory)


def _difficulty(settings: Settings, task: Task, directory: Path) -> dict[str, Any]:
    """Draws abilities and difficulties; returns how they were fitted, and the easiest and the hardest texts."""
    folder = directory / "difficulty"
    items = pd.read_csv(folder / settings.priors / "items.csv")
    subjects = pd.read_csv(folder / settings.priors / "subjects.csv")
    known = {"ability of the networks": subjects.ability, "difficulty of the items": items.difficulty}
    title = f"{task.name}: abilities and difficulties on one scale"
    save_figure(densities(known, title), directory / "densities.png")
    if task.train.texts is None:
        _draw_extremes(settings, task, directory)
    return {
        "priors": settings.priors,
        "fits": pd.DataFrame({priors: json.loads((folder / priors / "fit.json").read_text()) for priors in PRIORS}).T,
        "reliability": json.loads((folder / "reliability.json").read_text()),
        "texts": None if task.train.texts is None else _extreme_texts(settings, task, directory),
    }


def _draw_extremes(settings: Settings, task: Task, directory: Path) -> None:
    """A picture of the easiest and the hardest image of each class."""
    labels, ids = (np.concatenate([getattr(task.split(name), field) for name in SPLITS]) for field in ("labels", "ids"))
    images = np.concatenate([task.split(name).inputs for name in SPLITS])
    difficulty = load_items(directory / "difficulty", settings.priors, ids).difficulty.to_numpy()
    title = f"{task.name}: the easiest and the hardest item of each class (difficulty in logits)"
    save_figure(contact_sheet(images, labels, task.classes, difficulty, title), directory / "contact_sheet.png")


def _extreme_texts(settings: Settings, task: Task, directory: Path) -> dict[str, pd.DataFrame]:
    """The easiest and the hardest texts."""
    table = pd.concat(
        pd.DataFrame({"text": describe(task, split), "label": split.labels, "item_id": split.ids})
        for split in map(task.split, SPLITS)
    )
    items = load_items(directory / "difficulty", settings.priors, table.item_id.to_numpy())
    table = table.assign(
        label=[task.classes[label] for label in table.label],
        difficulty=items.difficulty.to_numpy(),
        right=items.proportion_correct.to_numpy(),
    ).sort_values("difficulty", kind="stable")
    return {"easiest": table.head(NUM_TEXTS), "hardest": table.tail(NUM_TEXTS)[::-1]}


def _suspects(task: Task, directory: Path) -> pd.DataFrame:
    """The examples whose labels look wrong most; draws them where they are images."""
    names = dict.fromkeys(("item_id", "label", "instead", "text"), str)
    table = pd.read_csv(directory / "suspects" / "suspects.csv", dtype=names, na_filter=False)
    if task.train.texts is None:
        ids = np.concatenate([task.split(name).ids for name in SPLITS])
        images = np.concatenate([task.split(name).inputs for name in SPLITS])
        first = table.head(NUM_IMAGES)
        title = f"{task.name}: the most doubtful labels, and what the crowd says instead"
        figure = suspect_sheet(images[pd.Index(ids).get_indexer(first.item_id)], first.label, first.instead, title)
        save_figure(figure, directory / "suspects.png")
    first = table.head(NUM_TEXTS)
    first.attrs["mean_probability"] = table.label_probability.mean()
    return first


def _mislabelled(directory: Path) -> dict[str, Any]:
    """Draws difficulties by whether the label was flipped; returns how well they tell."""
    folder = directory / "mislabelled"
    table = pd.read_csv(folder / "mislabelled.csv")
    by_label = {
        name: table.difficulty[table.flipped == flipped].to_numpy()
        for flipped, name in enumerate(("label as it was", "flipped label"))
    }
    title = "Difficulty of training items whose labels were flipped, and of the others"
    save_figure(densities(by_label, title, "difficulty (logits)"), directory / "mislabelled.png")
    return json.loads((folder / "detection.json").read_text())
