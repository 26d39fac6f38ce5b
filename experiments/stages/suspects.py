"""The suspects stage: whose labels are likely to be wrong, by what the networks of the crowd predict."""

from pathlib import Path

import numpy as np
import pandas as pd

import irtjax
from experiments.stages.crowd import load_responses
from irtjax.auditing.confusion import label_probability
from irtjax.responses.matrix import MISSING, proportion_correct
from irtjax.storage.archives import read_arrays
from irtjax.storage.files import write_csv
from irtjax.storage.sources import naming
from irtjax.tasks import Task
from irtjax.tasks.task import SPLITS


def run(task: Task, crowd: Path) -> pd.DataFrame:
    """One row per example of the task that any network answered, the most suspicious first.

    Args:
        task: with the labels that are looked at.
        crowd: the folder of its crowd.
    """
    splits = [task.split(name) for name in SPLITS]
    labels, ids = (np.concatenate([getattr(split, field) for split in splits]) for field in ("labels", "ids"))
    predictions = _predictions(crowd)
    known = (predictions >= 0).any(axis=0)
    predictions, labels, ids = predictions[:, known], labels[known], ids[known]
    right = np.where(predictions < 0, MISSING, predictions == labels).astype(np.int8)
    models = np.array([f"model_{number}" for number in range(len(right))])
    fit = irtjax.fit(irtjax.ResponseMatrix(right, models, ids), model="rasch")
    probability = label_probability(predictions, labels, task.num_classes)
    classes = np.array([*task.classes, ""], object)
    table = pd.DataFrame(
        {
            "item_id": ids,
            "split": np.repeat(SPLITS, [len(split.ids) for split in splits])[known],
            "label": classes[labels],
            "instead": classes[probability.instead],  # -1 is the last, none
            "label_probability": probability.label,
            "difficulty": fit.difficulty,
            "share_right": proportion_correct(right, axis=0),
            "num_models": (right != MISSING).sum(axis=0),
        }
    )
    if all(split.texts is not None for split in splits):
        table["text"] = np.concatenate([np.asarray(split.texts, object) for split in splits])[known]
    return table.sort_values(["label_probability", "difficulty"], ascending=[True, False], kind="stable")


def _predictions(crowd: Path) -> np.ndarray:
    """(J, N) classes that the networks predict for the examples of all splits; -1 where their answer does not count."""
    parts = []
    for split in SPLITS:
        path = crowd / f"predictions_{split}.npz"
        with naming(path):
            parts.append(read_arrays(path, ["predictions"])["predictions"].astype(np.int16))
    return np.where(load_responses(crowd).values == MISSING, -1, np.concatenate(parts, axis=1))


def write(table: pd.DataFrame, folder: Path) -> None:
    """Writes `suspects.csv`."""
    write_csv(table, folder / "suspects.csv")
