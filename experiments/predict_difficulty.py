r"""How hard will a new item be? Predicts difficulties from texts, and fits them from texts and responses at once.

  python -m experiments.predict_difficulty --responses=transformers.csv --texts=snli_test.csv \
    --pretrained=all-MiniLM-L6-v2 --output_dir=runs/predicted

Fits the Rasch model with b_i = f(x_i) + residual, where x are vectors of a pre-trained encoder, the number of words and
further columns of the table. Of counts it is the same model of each trial; of grades b_i is the mean of the thresholds
of the graded model. Writes report.md, items.csv (one row per item), predictors.csv (how good each way of predicting is,
on items that were held out), curve.csv (the error against responses per item; not of grades), pictures, and `fit/`.
--new_items has the texts of items that nobody has answered; their difficulties are in new_items.csv.

On 2 CPU cores, some 10 minutes for 90 subjects and 10,000 items.
"""

from typing import Any

import numpy as np
import pandas as pd
from absl import flags

import irtjax
from experiments.common import app, formulas, response_files, shared_flags
from experiments.common.item_features import Features, features_of
from experiments.common.path_flags import define_output_dir, define_path
from experiments.common.progress import counting_bar, steps
from experiments.reports import predict_difficulty as report
from irtjax.comparison.rank_agreement import spearman_brown
from irtjax.comparison.reliability import split_half
from irtjax.errors import InputError
from irtjax.explanatory import few_responses, new_items, text_baselines
from irtjax.fits.reading import AUTO
from irtjax.fits.result import Z_95
from irtjax.pretrained.folder import read_pretrained
from irtjax.responses.matrix import MISSING, ResponseMatrix, require_estimable
from irtjax.storage.files import write_csv
from irtjax.tasks.item_texts import ItemTexts, read_item_texts

LEAST_ITEMS = 20
MODELS = ("rasch", "graded", "binomial")
NUMBERS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500)  # responses per new item

_RESPONSES = define_path("responses", "file or folder of scored responses", required=True)
_METRIC = shared_flags.define_metric()
_FILTER = shared_flags.define_filter()
_COLUMNS = shared_flags.define_columns()
_TRANSPOSE = shared_flags.define_transpose()
_TRIALS = shared_flags.define_trials()
_GRADES = shared_flags.define_grades()
_MODEL = flags.DEFINE_enum(
    "model", AUTO, [AUTO, *MODELS], "rasch, graded of grades, binomial of counts; auto goes by the responses"
)
_TEXTS = define_path("texts", "CSV of ids and texts; items that it does not have are left out", required=True)
_TEXT_COLUMNS = flags.DEFINE_list(
    "text_columns", [], "columns of text, one or two (default: text, or premise and hypothesis)"
)
_COVARIATES = flags.DEFINE_list(
    "covariates", [], "further columns of --texts to predict from; numbers, or words as categories"
)
_PRETRAINED = define_path("pretrained", "folder of a BERT-type encoder, whose vectors of the texts are features")
_GLOVE = define_path("glove", "file of word vectors, whose mean over a text is one of the baselines")
_NEW_ITEMS = define_path("new_items", "CSV like --texts, of items without responses, whose difficulties are predicted")
_FOLDS = flags.DEFINE_integer(
    "folds", 5, "parts of the items that are held out in turn", lower_bound=2, upper_bound=100
)
_SHOWN = flags.DEFINE_integer("shown", 8, "items in each table of the report", lower_bound=1, upper_bound=1000)
_SEED = flags.DEFINE_integer("seed", 0, "of folds and of responses kept", lower_bound=0, upper_bound=2**31 - 1)
_OUTPUT_DIR = define_output_dir()
shared_flags.define_guard()


def main() -> None:
    """Reads, computes features, holds out, fits and writes the report."""
    app.keep_inputs(["responses", "texts", "glove", "new_items"], _OUTPUT_DIR.value, (*report.FILES, *report.FORMER))
    texts = read_item_texts(_TEXTS.value, _TEXT_COLUMNS.value, _COVARIATES.value)
    response_files.require_effect([_RESPONSES.value])
    responses, items = joined(read(), texts)
    fresh = None
    if _NEW_ITEMS.value is not None:
        fresh = read_item_texts(_NEW_ITEMS.value, _TEXT_COLUMNS.value, _COVARIATES.value)
    encoder = None if _PRETRAINED.value is None else read_pretrained(_PRETRAINED.value)
    features = features_of(items, encoder, items.table, "items")
    of_new = None if fresh is None else features_of(fresh, encoder, items.table, "new items")
    for path, some in ((_TEXTS.value, features), (_NEW_ITEMS.value, of_new)):
        with app.naming(path):
            if some is not None:
                some.blocks()  # or an error
    compared = predictors(items, features)
    with app.naming(_RESPONSES.value):
        found = study(responses, items, features, compared)
    given = {name: flags.FLAGS[name].value for name in ("responses", "texts", "pretrained", "glove", "new_items")}
    given |= app.lists(("text_columns", "covariates"))
    given |= {name: flags.FLAGS[name].value for name in ("model", "folds", "shown", "seed")}
    given |= response_files.given()
    with formulas.guarded_results(_OUTPUT_DIR.value, report.FORMER) as directory:
        verdict = report.write(found, given, directory)
        found.joint.save(directory / "fit")
        if fresh is not None and of_new is not None:
            write_csv(predicted_table(found.joint, fresh, of_new), directory / "new_items.csv")
    print(f"{verdict}\nDone: {_OUTPUT_DIR.value}/report.html and report.md")


def read() -> new_items.Answers:
    """The responses: right and wrong, or grades or counts.

    Raises:
        InputError: they cannot be read, or are shares, or of several kinds.
    """
    path = _RESPONSES.value
    if _MODEL.value == MODELS[0]:
        app.without_effect(("grades", "trials"), f"--model={MODELS[0]}")
        return response_files.read(path)
    if _MODEL.value == AUTO and not (_GRADES.value or _TRIALS.value):
        found = response_files.read_or_grades(path, "grades need --model=graded, counts --model=binomial")
    else:
        found = response_files.read_scaled(path, _MODEL.value)
    with app.naming(path):
        new_items.model_of_difficulties(found)
    return found


def joined(responses: Any, texts: ItemTexts) -> tuple[Any, ItemTexts]:
    """The items that have responses and a text, in the order of the responses.

    Raises:
        InputError: there are too few.
    """
    at = pd.Index(texts.ids).get_indexer(pd.Index(responses.item_ids.astype(str)))
    chosen = (at >= 0) & (np.asarray(responses.values) != MISSING).any(0)
    if chosen.sum() < LEAST_ITEMS:
        raise InputError(
            f"{_TEXTS.value}: has {(at >= 0).sum():,} of the {responses.num_items:,} items of {_RESPONSES.value}, "
            f"expected {LEAST_ITEMS} or more with a response: items are joined by their ids"
        )
    some = responses.choose_items(chosen).with_responses()
    with app.naming(_RESPONSES.value):
        new_items.require_folds(some.num_items, _FOLDS.value)
        require_estimable(some)
        if some.num_subjects < 4:
            raise InputError(f"{some.num_subjects} subjects, expected at least 4: two in each half")
    return some, texts.choose(at[chosen])


def predictors(items: ItemTexts, features: Features) -> dict[str, new_items.Predictor]:
    """What is compared: the model first, the mean last."""
    everything, shown = features.blocks(), items.shown()
    found: dict[str, new_items.Predictor] = {"features": new_items.by_features(everything)}
    found["features, in two steps"] = text_baselines.ridge(everything.values)
    if features.vectors.size:
        found["nearest neighbours"] = text_baselines.neighbours(features.vectors)
    if _GLOVE.value is not None:
        found["mean word vector"] = text_baselines.ridge(text_baselines.mean_vectors(shown, _GLOVE.value))
    if text_baselines.repeats(shown):
        found["TF-IDF"] = text_baselines.tf_idf(shown)
    if features.columns.size:
        found["columns"] = text_baselines.ridge(features.columns)
    found["length"] = text_baselines.ridge(features.lengths)
    return found | {"mean": new_items.by_mean}


def study(
    responses: Any, items: ItemTexts, features: Features, predictors: dict[str, new_items.Predictor]
) -> report.Predicted:
    """All fits."""
    everything, seed = features.blocks(), _SEED.value
    with steps("fitting") as say:
        say("all responses, without features")
        reference = new_items.without_features(responses)
        say("halves of the subjects")
        reliability = reliability_of(responses)
        say("all responses, with features")
        joint = new_items.with_features(responses, everything)
    with counting_bar("predictions", _FOLDS.value * len(predictors)) as on_progress:
        held_out = new_items.hold_out(responses, predictors, _FOLDS.value, seed, on_progress)
    curve = None
    if new_items.model_of_difficulties(responses) != new_items.OF_GRADES:  # a few responses are of one grade
        answered = int((np.asarray(responses.values) != MISSING).sum(0).min())
        numbers = [number for number in NUMBERS if number <= max(answered // 2, 1)]
        with counting_bar("fits", 2 * len(numbers)) as on_progress:
            curve = few_responses.by_number(responses, everything, numbers, reference, seed, on_progress)
    places = features.vectors if features.vectors.size else everything.values
    places = places if places.shape[1] > 1 else np.zeros((len(places), 0))
    return report.Predicted(items, reference, reliability, joint, held_out, curve, places)


def reliability_of(responses: Any) -> float:
    """Split-half reliability of the difficulties; NaN where half of the subjects gave an item one grade alone."""
    if isinstance(responses, ResponseMatrix):
        return spearman_brown(split_half(responses, new_items.without_features).spearman)
    try:
        return spearman_brown(split_half(responses, new_items.without_features).spearman)
    except InputError:
        return float("nan")


def predicted_table(fit: irtjax.Fit, items: ItemTexts, features: Features) -> pd.DataFrame:
    """One row per new item: its difficulty, and where 95% of such items are."""
    with app.naming(_NEW_ITEMS.value):
        mean, sd = new_items.regression(fit).predict(features.blocks().values, items.ids)
    columns: dict[str, Any] = {"item_id": items.ids, "difficulty": mean, "difficulty_sd": sd}
    columns |= {"low": mean - Z_95 * sd, "high": mean + Z_95 * sd, "text": items.shown()}
    return pd.DataFrame(columns)


if __name__ == "__main__":
    app.run(main)
