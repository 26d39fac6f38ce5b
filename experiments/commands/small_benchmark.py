"""A small benchmark, chosen from a large one, by the flags of `experiments.small_benchmark`."""

from typing import Any

import numpy as np
import pandas as pd
from absl import flags

from experiments.common import app, formulas, response_files, shared_flags
from experiments.common.progress import counting_bar, steps
from experiments.reports import small_benchmark as report
from irtjax.errors import InputError
from irtjax.evaluation.bank import Bank, calibrate, of_subjects, unit_of
from irtjax.evaluation.choices import PREDICTORS, SIZES, WAYS
from irtjax.evaluation.forms import Form
from irtjax.evaluation.item_bank import column_of
from irtjax.evaluation.prediction import LEVEL, Crossed, cross, of_form, scorers
from irtjax.evaluation.scaled_test import on_scales_of
from irtjax.evaluation.study import best_method, hold_out
from irtjax.fits.reading import is_scaled
from irtjax.responses.joining import join
from irtjax.responses.matrix import ResponseMatrix, require_estimable
from irtjax.responses.scaled import ScaledResponses
from irtjax.storage.files import write_csv
from irtjax.storage.tables import read_table

FLAGS = flags.FLAGS
COLUMNS = ("difficulty", "discrimination", "guessing", "upper", "proportion_correct", "mean_response")

Answers = ResponseMatrix | ScaledResponses


def run() -> None:
    """Reads, compares on held-out models, chooses forms with all models, predicts new ones, and writes the report."""
    app.keep_inputs(["responses", "scores", "categories", "new_responses"], FLAGS.output_dir, report.FILES)
    forms = app.choose("forms", FLAGS.forms, WAYS)
    predictors = app.choose("predictors", FLAGS.predictors, PREDICTORS)
    calibration = numbers("calibration", FLAGS.calibration, "all")
    response_files.require_effect([*FLAGS.responses, *([FLAGS.new_responses] if FLAGS.new_responses else [])])
    responses = _read()
    usual = [str(size) for size in SIZES if size < responses.num_items] or [str(-(-responses.num_items // 2))]
    sizes = numbers("num_items", FLAGS.num_items if FLAGS["num_items"].present else usual)
    source = ",".join(FLAGS.responses)
    with app.naming(source):
        require_estimable(responses)
        if max(sizes) > responses.num_items:
            raise InputError(f"`num_items`={max(sizes)}: there are {responses.num_items:,} items")
    scores = None if FLAGS.scores is None else scores_of(FLAGS.scores, responses)
    categories = None if FLAGS.categories is None else column_of(FLAGS.categories, "category", responses.item_ids)
    fresh = None if FLAGS.new_responses is None else known_items(_read_new(), responses)
    first: dict[tuple[str, int], pd.DataFrame] = {}  # predictions of the first split

    def keep(row: dict[str, Any], table: pd.DataFrame) -> None:
        if row["seed"] == 0:  # the most calibration models come last
            first[row["method"], row["num_items"]] = table

    with app.naming(source), counting_bar("forms", 1) as on_progress:
        errors = hold_out(
            responses,
            scores,
            num_items=sizes,
            seeds=FLAGS.seeds,
            held_out=FLAGS.held_out,
            calibration=calibration,
            model=FLAGS.model,
            forms=forms,
            predictors=predictors,
            categories=categories,
            on_progress=on_progress,
            on_predicted=keep,
        )
    best = best_method(errors)
    with app.naming(source), steps("all models") as say:
        say("calibrating")
        bank = calibrate(responses, scores, model=FLAGS.model, categories=categories)
        crossed = cross(bank)
        say("choosing forms")
        chosen = {size: scorers(crossed, size, best.form, (best.predictor,))[best.predictor].form for size in sizes}
        predicted = None if fresh is None else predictions(crossed, fresh, best.predictor)
    given: dict[str, Any] = {"responses": source}
    given |= {name: FLAGS[name].value for name in ("scores", "categories", "new_responses", "model", "held_out")}
    given |= app.lists(("calibration", "forms", "predictors"))
    given |= {"num_items": ",".join(map(str, sizes)), **response_files.given()}
    given["seeds"] = FLAGS.seeds
    with formulas.guarded_results(FLAGS.output_dir, report.FORMER) as directory:
        (directory / "forms").mkdir()
        for size, form in chosen.items():
            write_csv(form_table(bank, form), directory / "forms" / f"{best.form}_{size}.csv")
        if predicted is not None:
            write_csv(predicted, directory / "predictions.csv")
        by_best = {size: first[str(best), size] for size in sizes}
        verdict = report.write(report.Study(errors, bank, best, chosen, by_best), given, directory)
    print(f"{verdict}\nDone: {FLAGS.output_dir}/report.html, report.md, errors.csv and forms/")


def _read() -> Answers:
    """The responses, as the model has them.

    Raises:
        InputError: they cannot be read; or several files of grades, or flags of grades where there are none.
    """
    if not is_scaled(FLAGS.model):
        app.without_effect(
            response_files.of_grades_alone(), f"--model={FLAGS.model}, which is of right and wrong answers"
        )
        return join({path: response_files.read(path) for path in FLAGS.responses})
    app.without_effect(shared_flags.OF_HARNESS, f"--model={FLAGS.model}")
    if len(FLAGS.responses) > 1:
        raise InputError(f"--responses={','.join(FLAGS.responses)}: --model={FLAGS.model} reads one file")
    return response_files.read_scaled(FLAGS.responses[0], FLAGS.model)


def _read_new() -> Answers:
    """The answers of new models."""
    path = FLAGS.new_responses
    return response_files.read_scaled(path, FLAGS.model) if is_scaled(FLAGS.model) else response_files.read(path)


def numbers(flag: str, words: list[str], all_word: str = "") -> list[int]:
    """Whole numbers above 0, ascending, each once; 0 for a word that means all.

    Raises:
        InputError: one is something else, or there is none.
    """
    found = []
    for word in words or [""]:
        if word == all_word and word:
            found.append(0)
        elif word.strip().isdecimal() and int(word) > 0:
            found.append(int(word))
        else:
            raise InputError(f"--{flag}={','.join(words)}: expected whole numbers above 0")
    return sorted(dict.fromkeys(found), key=lambda number: number or np.inf)


def scores_of(path: str, responses: Answers) -> np.ndarray:
    """Scores in points, in the order of the subjects.

    Raises:
        InputError: a column or a subject is missing, or a score is out of range.
    """
    table = read_table(path, "subject_id")
    if "score" not in table:
        raise InputError(f"{path}: no column score, expected subject_id and score ({unit_of(responses).text})")
    with app.naming(path):
        return of_subjects(table.set_index("subject_id")["score"], responses)


def known_items(fresh: Answers, responses: Answers) -> Answers:
    """The answers of new models to items of the bank; items that none of them answered are left out.

    Raises:
        InputError: there are none, or an item is not in the bank.
    """
    answered = fresh.counts(axis=0)[1] > 0
    if answered.any() and not answered.all():
        fresh = fresh.choose_items(answered)
    unknown = ~np.isin(fresh.item_ids, responses.item_ids)
    if unknown.any():
        raise InputError(
            f"{FLAGS.new_responses}: item '{fresh.item_ids[unknown][0]}' (1 of {unknown.sum()} such) is not in "
            f"--responses: leave it out"
        )
    with app.naming(FLAGS.new_responses):
        require_estimable(fresh)
        if isinstance(fresh, ScaledResponses) and isinstance(responses, ScaledResponses):
            return on_scales_of(fresh, responses)
    return fresh


def predictions(crossed: Crossed, fresh: Answers, predictor: str) -> pd.DataFrame:
    """One row per new model: its score on the whole benchmark, with its interval."""
    place = {item: at for at, item in enumerate(crossed.bank.responses.item_ids)}
    items = np.array([place[item] for item in fresh.item_ids])
    scorer = of_form(crossed, Form(items, np.full(items.size, 1 / items.size)), predictor)
    table = scorer.predict(fresh if isinstance(fresh, ScaledResponses) else fresh.values, LEVEL)
    table.insert(0, "subject_id", fresh.subject_ids)
    return table.assign(num_responses=fresh.counts(axis=1)[1])


def form_table(bank: Bank, form: Form) -> pd.DataFrame:
    """One row per item of a form, in the order in which they were chosen."""
    items = bank.items().iloc[form.items]
    columns = [name for name in COLUMNS if name in items]
    table = items[["item_id"]].assign(weight=form.weights)
    if bank.categories is not None:
        table = table.assign(category=bank.categories[form.items])
    return pd.concat([table, items[columns]], axis=1)
