"""The mislabelled stage: flip training labels before the crowd is built, and see whether difficulty finds them."""

import json
from pathlib import Path

import pandas as pd
from sklearn.metrics import roc_auc_score

from experiments.common.settings import Settings
from experiments.stages import crowd, difficulty
from irtjax.storage.files import write_csv
from irtjax.tasks import Task, flip_labels


def run(settings: Settings, task: Task, checkpoints: Path | None = None) -> pd.DataFrame:
    """One row per training item, hardest first.

    Everything after the flip takes the wrong labels for gold: members train on them, and their answers are scored
    against them. Checkpoints are those of `crowd.train`.
    """
    wrong, flipped = flip_labels(task, settings.mislabelled, settings.seed)
    responses = crowd.train(settings, wrong, checkpoints, description="mislabelled").responses["train"]
    fit = difficulty.fit(responses, settings.priors, settings.seed, "mislabelled")
    table = pd.DataFrame(
        {
            "item_id": task.train.ids,
            "flipped": flipped.astype(int),
            "gold_label": task.train.labels,
            "shown_label": wrong.train.labels,
            "difficulty": fit.difficulty,
        }
    )
    return table.sort_values("difficulty", ascending=False, kind="stable")


def write(table: pd.DataFrame, folder: Path) -> None:
    """Writes `mislabelled.csv`, and `detection.json`."""
    write_csv(table, folder / "mislabelled.csv")
    num_flipped = int(table.flipped.sum())
    detection = {
        "auc": float(roc_auc_score(table.flipped, table.difficulty)),
        "num_flipped": num_flipped,
        "num_items": len(table),
        "flipped_among_as_many_hardest": int(table.flipped.head(num_flipped).sum()),
    }
    (folder / "detection.json").write_text(json.dumps(detection, indent=2) + "\n")
