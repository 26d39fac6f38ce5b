r"""Which few items predict how a model does on a whole benchmark? Small forms, and scores predicted from them.

  python -m experiments.small_benchmark --responses=arc.npz --scores=arc_scores.csv --output_dir=runs/arc

Calibrates the items on four fifths of the models, chooses forms of --num_items items in five ways, predicts the scores
of the other models in seven, and does so with five splits. Writes report.md, errors.csv (one row per method, size and
split), errors.png, predicted.png, and forms/ (one CSV per size, of the items to ask, chosen with all models).
--new_responses has the answers of further models to some of the items: predictions.csv has their scores with intervals.
Of grades, counts and shares (--model=graded and others) the score is the mean grade, or the mean share in points.

On 2 CPU cores, 10 minutes for 2,700 models and 317 items; half a minute with --forms=variance --predictors=calibrated
--seeds=1.
"""

from typing import Any

import numpy as np
import pandas as pd
from absl import flags

from experiments.common import app, formulas, response_files, shared_flags
from experiments.common.path_flags import define_output_dir, define_path, define_paths
from experiments.common.progress import counting_bar, steps
from experiments.reports import small_benchmark as report
from irtjax.errors import InputError
from irtjax.evaluation.bank import ONE_DIMENSION, Bank, calibrate, of_subjects, unit_of
from irtjax.evaluation.forms import WAYS, Form
from irtjax.evaluation.item_bank import column_of
from irtjax.evaluation.prediction import LEVEL, Crossed, cross, of_form, scorers
from irtjax.evaluation.predictors import PREDICTORS
from irtjax.evaluation.scaled_test import on_scales_of
from irtjax.evaluation.study import HELD_OUT, SIZES, best_method, hold_out
from irtjax.fits.reading import is_scaled
from irtjax.responses.joining import join
from irtjax.responses.matrix import ResponseMatrix, require_estimable
from irtjax.responses.scaled import ScaledResponses
from irtjax.storage.files import write_csv
from irtjax.storage.tables import read_table

_RESPONSES = define_paths(
    "responses", "scored responses of models: files or folders, joined by model and item", required=True
)
_SCORES = define_path(
    "scores", "CSV of subject_id and score on the whole benchmark, in points (default: the items are the whole)"
)
_METRIC = shared_flags.define_metric()
_FILTER = shared_flags.define_filter()
_COLUMNS = shared_flags.define_columns()
_TRANSPOSE = shared_flags.define_transpose()
_GRADES = shared_flags.define_grades()
_REPEATS = shared_flags.define_repeats()
_NUM_ITEMS = flags.DEFINE_list(
    "num_items", [], f"sizes of forms (default: those of {', '.join(map(str, SIZES))} that are less than all items)"
)
_CALIBRATION = flags.DEFINE_list("calibration", ["all"], "numbers of calibration models, to compare; `all` is all")
_MODEL = flags.DEFINE_enum("model", "2pl", ONE_DIMENSION, "of the item response functions")
_FORMS = flags.DEFINE_list("forms", list(WAYS), "ways to choose items")
_PREDICTORS = flags.DEFINE_list("predictors", list(PREDICTORS), "ways to predict")
_CATEGORIES = define_path("categories", "CSV of item_id and category; every form keeps the shares of the categories")
_HELD_OUT = flags.DEFINE_float(
    "held_out", HELD_OUT, "share of the models to predict", lower_bound=0.01, upper_bound=0.9
)
_SEEDS = flags.DEFINE_integer("seeds", 5, "number of splits", lower_bound=1, upper_bound=1000)
_NEW_RESPONSES = define_path("new_responses", "answers of new models to some of the items, whose scores are predicted")
_OUTPUT_DIR = define_output_dir()
shared_flags.define_guard()

COLUMNS = ("difficulty", "discrimination", "guessing", "upper", "proportion_correct", "mean_response")

Answers = ResponseMatrix | ScaledResponses


def main() -> None:
    """Reads, compares on held-out models, chooses forms with all models, predicts new ones, and writes the report."""
    app.keep_inputs(["responses", "scores", "categories", "new_responses"], _OUTPUT_DIR.value, report.FILES)
    forms = app.choose("forms", _FORMS.value, list(WAYS))
    predictors = app.choose("predictors", _PREDICTORS.value, list(PREDICTORS))
    calibration = numbers("calibration", _CALIBRATION.value, "all")
    response_files.require_effect([*_RESPONSES.value, *([_NEW_RESPONSES.value] if _NEW_RESPONSES.value else [])])
    responses = _read()
    usual = [str(size) for size in SIZES if size < responses.num_items] or [str(-(-responses.num_items // 2))]
    sizes = numbers("num_items", _NUM_ITEMS.value if flags.FLAGS["num_items"].present else usual)
    source = ",".join(_RESPONSES.value)
    with app.naming(source):
        require_estimable(responses)
        if max(sizes) > responses.num_items:
            raise InputError(f"`num_items`={max(sizes)}: there are {responses.num_items:,} items")
    scores = None if _SCORES.value is None else scores_of(_SCORES.value, responses)
    categories = None if _CATEGORIES.value is None else column_of(_CATEGORIES.value, "category", responses.item_ids)
    fresh = None if _NEW_RESPONSES.value is None else known_items(_read_new(), responses)
    first: dict[tuple[str, int], pd.DataFrame] = {}  # predictions of the first split

    def keep(row: dict[str, Any], table: pd.DataFrame) -> None:
        if row["seed"] == 0:  # the most calibration models come last
            first[row["method"], row["num_items"]] = table

    with app.naming(source), counting_bar("forms", 1) as on_progress:
        errors = hold_out(
            responses,
            scores,
            num_items=sizes,
            seeds=_SEEDS.value,
            held_out=_HELD_OUT.value,
            calibration=calibration,
            model=_MODEL.value,
            forms=forms,
            predictors=predictors,
            categories=categories,
            on_progress=on_progress,
            on_predicted=keep,
        )
    best = best_method(errors)
    with app.naming(source), steps("all models") as say:
        say("calibrating")
        bank = calibrate(responses, scores, model=_MODEL.value, categories=categories)
        crossed = cross(bank)
        say("choosing forms")
        chosen = {size: scorers(crossed, size, best.form, (best.predictor,))[best.predictor].form for size in sizes}
        predicted = None if fresh is None else predictions(crossed, fresh, best.predictor)
    given: dict[str, Any] = {"responses": source}
    given |= {name: flags.FLAGS[name].value for name in ("scores", "categories", "new_responses", "model", "held_out")}
    given |= app.lists(("calibration", "forms", "predictors"))
    given |= {"num_items": ",".join(map(str, sizes)), **response_files.given()}
    given["seeds"] = _SEEDS.value
    with formulas.guarded_results(_OUTPUT_DIR.value, report.FORMER) as directory:
        (directory / "forms").mkdir()
        for size, form in chosen.items():
            write_csv(form_table(bank, form), directory / "forms" / f"{best.form}_{size}.csv")
        if predicted is not None:
            write_csv(predicted, directory / "predictions.csv")
        by_best = {size: first[str(best), size] for size in sizes}
        verdict = report.write(report.Study(errors, bank, best, chosen, by_best), given, directory)
    print(f"{verdict}\nDone: {_OUTPUT_DIR.value}/report.html, report.md, errors.csv and forms/")


def _read() -> Answers:
    """The responses, as the model has them.

    Raises:
        InputError: they cannot be read; or several files of grades, or flags of grades where there are none.
    """
    if not is_scaled(_MODEL.value):
        app.without_effect(
            response_files.of_grades_alone(), f"--model={_MODEL.value}, which is of right and wrong answers"
        )
        return join({path: response_files.read(path) for path in _RESPONSES.value})
    app.without_effect(shared_flags.OF_HARNESS, f"--model={_MODEL.value}")
    if len(_RESPONSES.value) > 1:
        raise InputError(f"--responses={','.join(_RESPONSES.value)}: --model={_MODEL.value} reads one file")
    return response_files.read_scaled(_RESPONSES.value[0], _MODEL.value)


def _read_new() -> Answers:
    """The answers of new models."""
    path = _NEW_RESPONSES.value
    return response_files.read_scaled(path, _MODEL.value) if is_scaled(_MODEL.value) else response_files.read(path)


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
            f"{_NEW_RESPONSES.value}: item '{fresh.item_ids[unknown][0]}' (1 of {unknown.sum()} such) is not in "
            f"--responses: leave it out"
        )
    with app.naming(_NEW_RESPONSES.value):
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


if __name__ == "__main__":
    app.run(main)
