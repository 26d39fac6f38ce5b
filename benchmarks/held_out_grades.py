r"""Do models of grades predict held-out grades better than means, and than those of the mirt of PyPI?

  python -m benchmarks.held_out_grades --grades=mt_bench_gpt4.npz
  python -m benchmarks.held_out_grades --grades=mt_bench_gpt4.npz --rivals=GRM,GPCM

Reads an array of grades, subjects × items (axes after the second are joined to it), NaN where missing; half grades are
rounded down. A tenth of the cells is held out in turn. Prints the root mean squared error of the expected grade, the
log-loss (nats) and the ranked probability score of each way to predict them, and the difference from the first model
with its standard error over the folds:

* item rates: the frequencies of the grades of each item, for every subject alike;
* means: subject mean + item mean, and a normal distribution of the residuals, cut to grades and mixed with 2% of all;
* the models of grades by default, with the ability integrated out;
* rivals: models of the mirt of PyPI, fitted by its defaults in an environment of its own, with the ability integrated
  out by the same rule. A grade that no model of an item has seen has the probability 1e-6.

Expected duration on 2 CPU cores for 26 subjects and 160 items: two minutes, and as long for the rivals.
"""

import dataclasses
import sys

import numpy as np
import pandas as pd
from absl import flags
from tqdm import tqdm

from benchmarks import contestants, held_out
from experiments.common import app
from irtjax.comparison.grades import METRICS, probabilities, scores
from irtjax.estimation.families import fit_families
from irtjax.responses.folds import folds_of_cells
from irtjax.responses.from_arrays import of_grades
from irtjax.responses.scaled import ScaledResponses

_GRADES = flags.DEFINE_string("grades", None, "NPZ file", required=True)
_NAME = flags.DEFINE_string("name", "score", "array in it")
_FOLDS = flags.DEFINE_integer("folds", 10, "parts that are held out in turn", lower_bound=2)
_MODELS = flags.DEFINE_list("models", ["graded", "gpcm"], "models of grades")
_RIVALS = flags.DEFINE_list("rivals", [], "models of the mirt of PyPI: GRM, GPCM, PCM")
_ENVIRONMENT = flags.DEFINE_string("environment", ".versus_grades", "folder of the rival's virtual environment")
_PYTHON = flags.DEFINE_string("python", sys.executable, "interpreter to make it with")
REQUIREMENT = "mirt==1.2.0"
LEAST = 1e-6  # probability of a grade


def main() -> None:
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
    print(held_out.summary(pd.DataFrame(rows), ("rmse", *METRICS), _MODELS.value[0]).to_string(), flush=True)


def predicted(train: ScaledResponses, labels: np.ndarray) -> dict[str, np.ndarray]:
    """Probabilities (J, I, C) of grades, by each way."""
    found = {"item rates": held_out.item_rates(train, len(labels)), "means": held_out.of_means(train, labels)}
    for model in _MODELS.value:
        found[model] = probabilities(fit_families(train, model, priors="auto", standard_errors=False))
    for model in _RIVALS.value:
        python = contestants.interpreter("mirt", REQUIREMENT, _ENVIRONMENT.value, _PYTHON.value)
        values = np.where(train.observed, train.values, np.nan)
        settings = {"model": model, "categories": len(labels)}
        other = held_out.by_rival("mirt-grades", python, values, settings)["probability"] + LEAST
        found[f"mirt of PyPI, {model}"] = other / other.sum(axis=2, keepdims=True)
    return found


if __name__ == "__main__":
    app.run(main)
