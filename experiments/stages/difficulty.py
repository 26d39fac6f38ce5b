"""The difficulty stage: fit IRT to the crowd's answers, under both kinds of priors, and see how reliable it is."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
from scipy.stats import spearmanr

import irtjax
from experiments.common import peers
from experiments.common.progress import fit_bar
from experiments.common.settings import Settings
from irtjax import Fit, ResponseMatrix
from irtjax.comparison.reliability import split_half
from irtjax.estimation.diagnostics import one_warning_of_each_kind
from irtjax.storage.tables import read_table
from irtjax.svi.choices import PRIORS

MAX_STEPS = 4000


def fit(responses: ResponseMatrix, priors: str, seed: int, description: str) -> Fit:
    """A 1PL fit by variational inference under a progress bar."""
    with fit_bar(description, "elbo") as on_chunk:
        return irtjax.fit(
            responses,
            model="1pl",
            estimator="svi",
            priors=priors,
            seed=seed,
            max_steps=MAX_STEPS,
            on_chunk=on_chunk,
            mesh=peers.mesh() if jax.process_count() > 1 else None,  # devices of one processor share its cores anyway
        )


class Fitted(NamedTuple):
    """The results of the stage: a fit per kind of priors, and how reliable difficulties are."""

    fits: dict[str, Fit]
    reliability: dict[str, Any]


def run(settings: Settings, responses: ResponseMatrix) -> Fitted:
    """Fits under both kinds of priors, and to two halves of the crowd."""
    names = iter(("half 1", "half 2"))
    with one_warning_of_each_kind():
        fits = {priors: fit(responses, priors, settings.seed, priors) for priors in PRIORS}
        halves = split_half(responses, lambda half: fit(half, settings.priors, settings.seed, next(names)))
    reliability = {
        "split_half_spearman": halves.spearman,
        "subjects_per_half": halves.subjects_per_half,
        "priors": settings.priors,
        "vague_against_hierarchical_spearman": float(
            spearmanr(fits["vague"].difficulty, fits["hierarchical"].difficulty).statistic
        ),
    }
    return Fitted(fits, reliability)


def write(fitted: Fitted, folder: Path) -> None:
    """Writes one folder of result files per kind of priors, and `reliability.json`."""
    for priors, fit in fitted.fits.items():
        fit.save(folder / priors)
    (folder / "reliability.json").write_text(json.dumps(fitted.reliability, indent=2) + "\n")


def load_items(folder: Path, priors: str, item_ids: np.ndarray) -> pd.DataFrame:
    """The rows of `items.csv` for the given items, in that order."""
    return read_table(folder / priors / "items.csv", "item_id").set_index("item_id").loc[item_ids]


def load_subjects(folder: Path, priors: str) -> pd.DataFrame:
    """The rows of `subjects.csv`."""
    return read_table(folder / priors / "subjects.csv", "subject_id")
