"""Difficulties from several sources side by side, by the flags of `experiments.compare_difficulty`."""

import warnings
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from absl import flags

import irtjax
from experiments.common import app, formulas, response_files
from experiments.common.progress import fit_bar
from experiments.common.sources import difficulties_of, names_of
from experiments.reports import compare_difficulty as report
from irtjax.comparison.rank_agreement import join, spearman_brown
from irtjax.comparison.reliability import split_half
from irtjax.errors import InputError
from irtjax.responses.matrix import ResponseMatrix, require_estimable
from irtjax.storage.tables import read_table
from irtjax.tasks.choices import ID_COLUMNS, LABEL_COLUMNS, TEXT_COLUMNS

FLAGS = flags.FLAGS
MAX_ITERATIONS = 4000


class Rasch(NamedTuple):
    """The Rasch model: difficulties by item id, how reliable they are, and the abilities of the subjects."""

    difficulty: pd.Series
    reliability: float
    abilities: np.ndarray


def responses_of(path: str) -> ResponseMatrix:
    """Responses that can be fitted in two halves.

    Raises:
        InputError: they cannot be read, or are too few.
    """
    responses = response_files.read(path)
    with app.naming(path):
        require_estimable(responses)
        if responses.num_subjects < 4:
            raise InputError(f"{responses.num_subjects} subjects, expected at least 4: two in each half")
    return responses


def fit(responses: ResponseMatrix, path: str, name: str) -> Rasch:
    """Fits all subjects and two halves of them."""
    parts = iter((name, f"{name}, one half", f"{name}, other half"))

    def rasch(some: ResponseMatrix) -> irtjax.Fit:
        with fit_bar(next(parts)) as on_iteration:
            return irtjax.fit(some, model="rasch", on_iteration=on_iteration, max_iterations=MAX_ITERATIONS)

    with app.naming(path):
        whole = rasch(responses)
        with warnings.catch_warnings(category=irtjax.FitWarning, action="ignore"):  # the same again
            halves = split_half(responses, rasch)
    difficulty = pd.Series(whole.difficulty, responses.item_ids.astype(str))
    return Rasch(difficulty, spearman_brown(halves.spearman), whole.ability)


def reliabilities_of(words: list[str], number: int) -> list[float]:
    """The numbers of --reliabilities; NaN for all if there are none.

    Raises:
        InputError: they are no numbers above 0 and up to 1, or not one per file of --items.
    """
    try:
        numbers = [float(word) for word in words] or [float("nan")] * number
    except ValueError:
        numbers = []
    if len(numbers) != number or any(not 0 < value <= 1 for value in numbers if words):
        raise InputError(
            f"--reliabilities={','.join(words)}: expected a number above 0 and up to 1 for each of the {number} --items"
        )
    return numbers


def texts_of(path: str, item_ids: pd.Index) -> pd.DataFrame:
    """The columns `label` and `text` of the items, those of them that the file has; missing where it has no such item.

    Raises:
        InputError: it has no ids, neither of the columns, or none of the items.
    """
    header = read_table(path, text=True).columns
    name = next((column for column in ID_COLUMNS if column in header), None)
    label = next((column for column in LABEL_COLUMNS if column in header), None)
    texts = next((columns for columns in TEXT_COLUMNS.values() if set(columns) <= set(header)), ())
    if name is None or (label is None and not texts):
        raise InputError(f"{path}: expected label, text, or premise and hypothesis, and one of {', '.join(ID_COLUMNS)}")
    table = read_table(path, name, text=True).set_index(name)
    if not table.index.isin(item_ids).any():
        raise InputError(f"{path}: none of its {len(table):,} items is in all sources")
    columns = {} if label is None else {"label": table[label]}
    if texts:
        columns["text"] = table[list(texts)].fillna("").agg(" / ".join, axis=1)
    return pd.DataFrame(columns).reindex(item_ids)


def run() -> None:
    """Reads, fits, joins and writes the report."""
    paths = [*FLAGS.items, *FLAGS.responses]
    if len(paths) < 2:
        raise InputError("--items and --responses: expected two files or more, separated by commas")
    names = names_of(paths, FLAGS.names)
    reliabilities = reliabilities_of(FLAGS.reliabilities, len(FLAGS.items))
    app.keep_inputs(["items", "responses", "texts"], FLAGS.output_dir, report.FILES)
    response_files.require_effect(FLAGS.responses)
    difficulty = dict(zip(names, map(difficulties_of, FLAGS.items), strict=False))
    responses = dict(zip(names[len(difficulty) :], map(responses_of, FLAGS.responses), strict=True))
    # all that can be wrong is found before the first fit
    ids = {name: column.index for name, column in difficulty.items()}
    ids |= {name: pd.Index(matrix.item_ids.astype(str)) for name, matrix in responses.items()}
    common = join({name: pd.Series(0.0, index) for name, index in ids.items()}).index
    texts = pd.DataFrame(index=common) if FLAGS.texts is None else texts_of(FLAGS.texts, common)
    known, abilities = dict(zip(names, reliabilities, strict=False)), {}
    for (name, matrix), path in zip(responses.items(), FLAGS.responses, strict=True):
        difficulty[name], known[name], abilities[name] = fit(matrix, path, name)
    given: dict[str, Any] = app.lists(("items", "responses", "names", "reliabilities"))
    given |= response_files.given()
    given |= {"texts": FLAGS.texts, "shown": FLAGS.shown, "seed": FLAGS.seed}
    with formulas.guarded_results(FLAGS.output_dir) as directory:
        sizes = {name: index.size for name, index in ids.items()}
        compared = report.Compared(join(difficulty), texts, known, sizes, abilities)
        verdict = report.write(compared, given, directory)
    print(f"{verdict}\nDone: {FLAGS.output_dir}/report.html, report.md, agreement.csv and difficulty.csv")
