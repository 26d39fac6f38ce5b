"""The difficulty stage: fit IRT to the crowd's answers, under both kinds of priors, and see how reliable it is."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

import irtjax
from experiments.common.progress import fit_bar
from experiments.common.settings import Settings
from irtjax import Fit, ResponseMatrix
from irtjax.estimation.reliability import split_half
from irtjax.estimation.svi.fit import PRIORS
from irtjax.storage.tables import read_table

MAX_STEPS = 4000


def fit(responses: ResponseMatrix, priors: str, seed: int, description: str) -> Fit:
    """A 1PL fit by variational inference under a progress bar."""
    with fit_bar(description, MAX_STEPS) as on_chunk:
        return irtjax.fit(
            responses,
            model="1pl",
            estimator="svi",
            priors=priors,
            seed=seed,
            max_steps=MAX_STEPS,
            on_chunk=on_chunk,
        )


def run(settings: Settings, responses: ResponseMatrix, folder: Path) -> None:
    """Writes one folder of result files per kind of priors, and `reliability.json`."""
    fits = {}
    for priors in PRIORS:
        fits[priors] = fit(responses, priors, settings.seed, priors)
        fits[priors].save(folder / priors)
    names = iter(("half 1", "half 2"))
    halves = split_half(responses, lambda half: fit(half, settings.priors, settings.seed, next(names)))
    reliability = {
        "split_half_spearman": halves.spearman,
        "subjects_per_half": halves.subjects_per_half,
        "priors": settings.priors,
        "vague_against_hierarchical_spearman": float(
            spearmanr(fits["vague"].difficulty, fits["hierarchical"].difficulty).statistic
        ),
    }
    (folder / "reliability.json").write_text(json.dumps(reliability, indent=2) + "\n")


def load_items(folder: Path, priors: str, item_ids: np.ndarray) -> pd.DataFrame:
    """The rows of `items.csv` for the given items, in that order."""
    return read_table(folder / priors / "items.csv", "item_id").set_index("item_id").loc[item_ids]


def load_subjects(folder: Path, priors: str) -> pd.DataFrame:
    """The rows of `subjects.csv`."""
    return read_table(folder / priors / "subjects.csv", "subject_id")
