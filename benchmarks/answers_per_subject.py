r"""What few answers of each subject say: errors of abilities and difficulties, and held-out answers, by their number.

  python -m benchmarks.answers_per_subject --responses=mmlu_pro.npz --each=5,10,20,50,100,200

Each subject keeps so many of its answers, drawn at random, and the rest are hidden. Estimates of those that are left
are compared with those of all answers, in standard deviations of ability, and answers that are held out of the few are
predicted (`irtjax.compare`): by the model, and by the rates of the items alone. Intervals (95%) are over seeds.
Expected duration on 2 CPU cores: a minute for 5,041 subjects × 249 items.
"""

import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from absl import flags
from matplotlib.figure import Figure
from scipy.stats import spearmanr
from tqdm import tqdm

import irtjax
from experiments.common import app
from irtjax.arguments import whole_number
from irtjax.comparison.candidates import RATES
from irtjax.fits.reading import read
from irtjax.plots.style import COLOURS, plain, save_figure
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.sparse import SparseResponses, of_matrix
from irtjax.responses.stored import StoredResponses
from irtjax.storage.files import writable_directory, write_csv

_RESPONSES = flags.DEFINE_string("responses", None, "file of responses, right and wrong or grades", required=True)
_EACH = flags.DEFINE_list("each", ["5", "10", "20", "50", "100"], "answers that each subject keeps")
_MODEL = flags.DEFINE_string("model", "auto", "item response model of all items")
_SUBJECTS = flags.DEFINE_integer("subjects", None, "the first so many subjects; all by default", lower_bound=2)
_SEEDS = flags.DEFINE_integer("seeds", 3, "draws of the answers", lower_bound=1)
_OUTPUT = flags.DEFINE_string("output", None, "folder for `answers.csv` and `answers.png`")
Z_95 = 1.96


def kept(responses: SparseResponses, each: int, seed: int) -> SparseResponses:
    """So many answers of each subject, drawn at random; items that are left without any are left out."""
    order = np.lexsort((np.random.default_rng(seed).random(responses.num_answers), responses.subjects))
    place = np.empty(responses.num_answers, int)
    place[order] = np.arange(responses.num_answers)
    found = responses.choose_answers(place - responses.starts[responses.subjects] < each)
    return found.choose_items(found.counts(axis=0)[1] > 0)


def compared(few: SparseResponses, whole: irtjax.Fit, model: str, seed: int) -> dict[str, float]:
    """Estimates of few answers against those of all, and the log-loss of held-out ones, in nats."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", irtjax.FitWarning)
        began = time.perf_counter()
        fit = irtjax.fit(few, model, sparse=True)
        seconds = time.perf_counter() - began
        table = irtjax.compare(few, [model], folds=5, seed=seed).table.set_index("model")
    at = pd.Index(whole.responses.item_ids).get_indexer(few.item_ids)
    error = fit.ability - whole.ability
    row = {
        "answers": few.num_answers,
        "share of cells": few.num_answers / (few.num_subjects * whole.responses.num_items),
        "ability: RMSE": float(np.sqrt(np.mean(error**2))),
        "ability: standard error": float(np.sqrt(np.mean(fit.ability_se**2))),
        "ability: correlation": float(np.corrcoef(fit.ability, whole.ability)[0, 1]),
        "ability: covered": float(np.mean(np.abs(error) < Z_95 * np.hypot(fit.ability_se, whole.ability_se))),
        "log-loss": float(table.log_loss[model]),
        "log-loss of item rates": float(table.log_loss[RATES]),
        "seconds": seconds,
        "converged": float(fit.converged),
    }
    if "difficulty" in fit.item_columns:
        of_all, error_of_all = whole.difficulty[at], whole.difficulty_se[at]
        told = np.ones(len(at), bool) if whole.discriminates is None else whole.discriminates[at]
        covered = np.abs(fit.difficulty - of_all) < Z_95 * np.hypot(fit.difficulty_se, error_of_all)
        row["difficulty: correlation"] = float(spearmanr(fit.difficulty[told], of_all[told]).statistic)
        row["difficulty: covered"] = float(np.mean(covered[told]))
    return row


def picture(table: pd.DataFrame, title: str) -> Figure:
    """Errors of abilities, and log-losses, against the answers of each subject."""
    figure = Figure(figsize=(9.2, 3.8))
    left, right = figure.subplots(1, 2)
    means = table.groupby("each").mean(numeric_only=True)
    left.plot(means.index, means["ability: RMSE"], "o-", color=COLOURS[0], label="difference from all answers")
    left.plot(means.index, means["ability: standard error"], "o--", color=COLOURS[6], label="standard error")
    left.set(ylabel="ability (standard deviations)", ylim=(0, None))
    right.plot(means.index, means["log-loss of item rates"], "o-", color=COLOURS[6], label="item rates")
    right.plot(means.index, means["log-loss"], "o-", color=COLOURS[0], label="model")
    right.set(ylabel="held-out answers: log-loss (nats)")
    for axis in (left, right):
        axis.set_xscale("log")
        axis.set_xticks(means.index, [f"{number:,}" for number in means.index])
        axis.xaxis.set_minor_locator(axis.xaxis.get_major_locator())
        axis.set_xlabel("answers per subject")
        axis.legend(frameon=False)
    figure.suptitle(title)
    return plain(figure)


def main() -> None:
    """Measures, prints and draws."""
    numbers = [whole_number("each", int(number) if number.isdigit() else number, 2) for number in _EACH.value]
    output = None if _OUTPUT.value is None else writable_directory(_OUTPUT.value)
    responses, model = read(_RESPONSES.value, _MODEL.value, sparse=None)
    responses = responses.read() if isinstance(responses, StoredResponses) else responses
    if _SUBJECTS.value is not None:
        responses = responses.choose_subjects(np.arange(min(_SUBJECTS.value, responses.num_subjects)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", irtjax.FitWarning)
        whole = irtjax.fit(responses, model)
    print(f"{responses!r}\n{whole!r}" if not isinstance(responses, ScaledResponses) else repr(whole), flush=True)
    rows: list[dict[str, Any]] = []
    cases = [(each, seed) for each in numbers for seed in range(_SEEDS.value)]
    for each, seed in tqdm(cases, disable=not sys.stderr.isatty()):
        few = kept(responses if isinstance(responses, SparseResponses) else of_matrix(responses), each, seed)
        rows.append({"each": each, "seed": seed, **compared(few, whole, str(model), seed)})
    table = pd.DataFrame(rows)
    grouped = table.drop(columns="seed").groupby("each")
    half = Z_95 * grouped.std() / np.sqrt(_SEEDS.value)
    for name, of in (("means", grouped.mean()), ("± of means, 95%", half)):
        print(f"\n{name}\n{of.to_string(float_format='{:.4g}'.format)}")
    if output is not None:
        write_csv(table, Path(output) / "answers.csv")
        save_figure(picture(table, Path(_RESPONSES.value).stem), Path(output) / "answers.png")


if __name__ == "__main__":
    app.run(main, compiles_anew=True)
