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
from irtjax.estimation.svi.fit import PRIORS
from irtjax.responses.matrix import MISSING

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


def halves(responses: ResponseMatrix) -> tuple[ResponseMatrix, ResponseMatrix]:
    """Subjects at even and at odd positions: two disjoint crowds, each a random sample as members are drawn alike."""
    even, odd = (
        ResponseMatrix(responses.values[at::2], responses.subject_ids[at::2], responses.item_ids) for at in (0, 1)
    )
    return even, odd


def common_items(halves: tuple[ResponseMatrix, ResponseMatrix]) -> list[ResponseMatrix]:
    """The items that subjects of both halves have answered: out of bag, some may have none in one of them."""
    both = np.logical_and(*((half.values != MISSING).any(axis=0) for half in halves))
    return [ResponseMatrix(half.values[:, both], half.subject_ids, half.item_ids[both]) for half in halves]


def run(settings: Settings, responses: ResponseMatrix, folder: Path) -> None:
    """Writes a folder of result files a kind of priors, and `reliability.json`."""
    fits = {}
    for priors in PRIORS:
        fits[priors] = fit(responses, priors, settings.seed, priors)
        irtjax.write_fit(fits[priors], folder / priors)
    by_half = [
        fit(half, settings.priors, settings.seed, f"half {number}").difficulty
        for number, half in enumerate(common_items(halves(responses)), start=1)
    ]
    reliability = {
        "split_half_spearman": float(spearmanr(*by_half).statistic),
        "subjects_per_half": responses.num_subjects // 2,
        "priors": settings.priors,
        "vague_against_hierarchical_spearman": float(
            spearmanr(fits["vague"].difficulty, fits["hierarchical"].difficulty).statistic
        ),
    }
    (folder / "reliability.json").write_text(json.dumps(reliability, indent=2) + "\n")


def load_items(folder: Path, priors: str, item_ids: np.ndarray) -> pd.DataFrame:
    """The rows of `items.csv` for the given items, in that order."""
    return pd.read_csv(folder / priors / "items.csv", dtype={"item_id": str}).set_index("item_id").loc[item_ids]


def load_subjects(folder: Path, priors: str) -> pd.DataFrame:
    """The rows of `subjects.csv`."""
    return pd.read_csv(folder / priors / "subjects.csv", dtype={"subject_id": str})
