"""The suspects stage: whose labels are likely to be wrong, by what the networks of the crowd predict."""

from pathlib import Path

import numpy as np
import pandas as pd

import irtjax
from irtjax.storage.files import write_csv
from irtjax.tasks import Task
from irtjax.tasks.task import SPLITS

COLUMNS = ("label_probability", "difficulty", "share_right", "num_models")


def run(task: Task, crowd: Path) -> pd.DataFrame:
    """One row per example of the task, the most suspicious first.

    Args:
        task: with the labels that are looked at.
        crowd: the folder of its crowd.
    """
    splits = [task.split(name) for name in SPLITS]
    labels, ids = (np.concatenate([getattr(split, field) for split in splits]) for field in ("labels", "ids"))
    found = irtjax.difficulty(_predictions(crowd), labels, item_ids=ids).suspects()
    classes = np.array(task.classes, object)
    table = pd.DataFrame(
        {
            "item_id": found.item_id,
            "split": found.item_id.map(dict(zip(ids, np.repeat(SPLITS, [len(s.ids) for s in splits]), strict=True))),
            "label": classes[found.label],
            "instead": np.where(found.instead < 0, "", classes[found.instead]),
            **{name: found[name] for name in COLUMNS},
        }
    )
    if all(split.texts is not None for split in splits):
        texts = np.concatenate([np.asarray(split.texts, object) for split in splits])
        table["text"] = table.item_id.map(dict(zip(ids, texts, strict=True)))
    return table


def _predictions(crowd: Path) -> np.ndarray:
    """(J, N) classes that the networks predict for the examples of all splits."""
    parts = []
    for split in SPLITS:
        with np.load(crowd / f"predictions_{split}.npz") as stored:
            parts.append(stored["predictions"])
    return np.concatenate(parts, axis=1)


def write(table: pd.DataFrame, folder: Path) -> None:
    """Writes `suspects.csv`."""
    write_csv(table, folder / "suspects.csv")
