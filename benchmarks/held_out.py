"""Grades that are held out: ways to predict them that are no model, rivals, and what the folds come to."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from benchmarks import contestants
from irtjax.responses.scaled import ScaledResponses

ROUNDS = 200  # of alternating means
OF_ALL = 0.02  # weight of all grades alike
FLAT = 2.0  # responses that all items together are worth


def item_rates(train: ScaledResponses, num_labels: int) -> np.ndarray:
    """Frequencies (J, I, C) of the grades of each item, for every subject alike."""
    counts = train.frequencies()
    of_all = counts.sum(axis=0) / counts.sum()
    rates = (counts + FLAT * of_all) / (counts.sum(axis=1, keepdims=True) + FLAT)
    return np.broadcast_to(rates, (*train.values.shape, num_labels))


def of_means(train: ScaledResponses, labels: np.ndarray) -> np.ndarray:
    """Subject mean + item mean, by alternating means, and a normal distribution around it (J, I, C)."""
    mean = additive_means(train.worths(), labels[0], labels[-1])
    sd = np.sqrt(np.nanmean((train.worths() - mean) ** 2))
    edges = np.concatenate([[-np.inf], (labels[1:] + labels[:-1]) / 2, [np.inf]])
    cut = np.diff(norm.cdf((edges - mean[:, :, None]) / sd), axis=2)
    return (1 - OF_ALL) * cut + OF_ALL / len(labels)


def additive_means(worths: np.ndarray, lowest: float, highest: float) -> np.ndarray:
    """Subject mean + item mean (J, I), NaN of `worths` being missing."""
    ability, easiness = np.zeros(len(worths)), np.nanmean(worths, axis=0)
    for _ in range(ROUNDS):
        ability = np.nanmean(worths - easiness, axis=1)
        ability -= ability.mean()
        easiness = np.nanmean(worths - ability[:, None], axis=0)
    return np.clip(ability[:, None] + easiness, lowest, highest)


def by_rival(name: str, python: Path, train: np.ndarray, settings: dict[str, Any]) -> dict[str, np.ndarray]:
    """What a rival predicts of all cells: the arrays that its script writes.

    Args:
        name: of the contestant (`contestants.script_of`).
        python: its interpreter.
        train: (J, I) responses, NaN where they are missing or held out.
        settings: for its script.

    Raises:
        RuntimeError: it has no result.
    """
    with tempfile.TemporaryDirectory() as folder:
        paths = {key: str(Path(folder, f"{key}.npz")) for key in ("responses", "predictions")}
        np.savez(paths["responses"], responses=train)
        result = contestants.run(name, python, settings | paths)
        if "error" in result:
            raise RuntimeError(f"{name}: {result['error']}")
        with np.load(paths["predictions"], allow_pickle=False) as file:
            return dict(file)


def summary(rows: pd.DataFrame, metrics: tuple[str, ...], base: str) -> pd.DataFrame:
    """Means over the folds, and differences from the way `base`, with standard errors."""
    reference = rows[rows.way == base].set_index("fold")
    table = {}
    for name, group in rows.groupby("way", sort=False):
        entries = {}
        for metric in metrics:
            apart = group.set_index("fold")[metric] - reference[metric]
            error = apart.std() / np.sqrt(len(apart))
            entries[metric] = f"{group[metric].mean():.4f} ({apart.mean():+.4f} ± {error:.4f})"
        table[name] = entries
    return pd.DataFrame(table).T
