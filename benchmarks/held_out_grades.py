r"""Do models of grades predict held-out grades better than means do?

  python -m benchmarks.held_out_grades --grades=mt_bench_gpt4.npz

Reads an array of grades, subjects × items (axes after the second are joined to it), NaN where missing; half grades are
rounded down. A tenth of the cells is held out in turn. Prints the root mean squared error of the expected grade, the
log-loss (nats) and the ranked probability score of each way to predict them, and the difference from the graded model
with its standard error over the folds:

* item rates: the frequencies of the grades of each item, for every subject alike;
* means: subject mean + item mean, and a normal distribution of the residuals, cut to grades and mixed with 2% of all;
* the models of grades by default, with the ability integrated out.

Expected duration on 2 CPU cores for 26 subjects and 160 items: two minutes.
"""

import dataclasses
import sys

import numpy as np
import pandas as pd
from absl import app, flags
from scipy.stats import norm
from tqdm import tqdm

from irtjax.comparison.grades import probabilities, scores
from irtjax.estimation.families import fit_families
from irtjax.responses.folds import folds_of_cells
from irtjax.responses.scaled import ScaledResponses, of_grades

_GRADES = flags.DEFINE_string("grades", None, "NPZ file", required=True)
_NAME = flags.DEFINE_string("name", "score", "array in it")
_FOLDS = flags.DEFINE_integer("folds", 10, "parts that are held out in turn", lower_bound=2)
_MODELS = flags.DEFINE_list("models", ["graded", "gpcm"], "models of grades")

ROUNDS = 200  # of alternating means
OF_ALL = 0.02  # weight of all grades alike
FLAT = 2.0  # responses that all items together are worth


def main(_: list[str]) -> None:
    """Reads grades, holds them out, predicts and prints."""
    with np.load(_GRADES.value, allow_pickle=False) as file:
        table = np.floor(np.asarray(file[_NAME.value], float))
    table = table.reshape(len(table), -1)
    labels = np.unique(table[np.isfinite(table)])
    subjects, items = ([f"{letter}{k}" for k in range(n)] for letter, n in zip("si", table.shape, strict=True))
    responses = of_grades(table, subjects, items, labels=labels.tolist())
    fold_of, rows = folds_of_cells(np.asarray(responses.values), _FOLDS.value, seed=0), []
    for fold in tqdm(range(_FOLDS.value), "folds", disable=not sys.stderr.isatty()):
        held = fold_of == fold
        train = dataclasses.replace(responses, values=np.where(held, -1, responses.values))
        for name, found in predicted(train, labels).items():
            grade, probability = np.asarray(responses.values)[held].astype(int), found[held]
            error = np.sqrt(((probability @ labels - labels[grade]) ** 2).mean())
            rows.append({"way": name, "fold": fold, "rmse": error, **scores(grade, probability)})
    print(f"{table.shape[0]:,} subjects × {table.shape[1]:,} items, {len(labels)} grades", flush=True)
    print(summary(pd.DataFrame(rows)).to_string(), flush=True)


def predicted(train: ScaledResponses, labels: np.ndarray) -> dict[str, np.ndarray]:
    """Probabilities (J, I, C) of grades, by each way."""
    counts = train.frequencies()
    of_all = counts.sum(axis=0) / counts.sum()
    rates = (counts + FLAT * of_all) / (counts.sum(axis=1, keepdims=True) + FLAT)
    found = {"item rates": np.broadcast_to(rates, (*train.values.shape, len(labels))), "means": of_means(train, labels)}
    for model in _MODELS.value:
        found[model] = probabilities(fit_families(train, model, priors="auto", standard_errors=False))
    return found


def of_means(train: ScaledResponses, labels: np.ndarray) -> np.ndarray:
    """Subject mean + item mean, by alternating means, and a normal distribution around it."""
    worths = train.worths()
    ability, easiness = np.zeros(len(worths)), np.nanmean(worths, axis=0)
    for _ in range(ROUNDS):
        ability = np.nanmean(worths - easiness, axis=1)
        ability -= ability.mean()
        easiness = np.nanmean(worths - ability[:, None], axis=0)
    mean = np.clip(ability[:, None] + easiness, labels[0], labels[-1])
    sd = np.sqrt(np.nanmean((worths - mean) ** 2))
    edges = np.concatenate([[-np.inf], (labels[1:] + labels[:-1]) / 2, [np.inf]])
    cut = np.diff(norm.cdf((edges - mean[:, :, None]) / sd), axis=2)
    return (1 - OF_ALL) * cut + OF_ALL / len(labels)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Means over the folds, and differences from the first model of grades."""
    metrics, base = ("rmse", "log_loss", "rps"), _MODELS.value[0]
    table = {}
    for name, group in rows.groupby("way", sort=False):
        reference = rows[rows.way == base].set_index("fold")
        entries = {}
        for metric in metrics:
            apart = group.set_index("fold")[metric] - reference[metric]
            error = apart.std() / np.sqrt(len(apart))
            entries[metric] = f"{group[metric].mean():.4f} ({apart.mean():+.4f} ± {error:.4f})"
        table[name] = entries
    return pd.DataFrame(table).T


if __name__ == "__main__":
    app.run(main)
