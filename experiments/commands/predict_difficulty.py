"""Difficulties predicted from texts, by the flags of `experiments.predict_difficulty`."""

from typing import Any

import numpy as np
import pandas as pd
from absl import flags

import irtjax
from experiments.common import app, formulas, response_files
from experiments.common.item_features import Features, features_of
from experiments.common.progress import counting_bar, steps
from experiments.reports import predict_difficulty as report
from irtjax.choices import AUTO
from irtjax.comparison.rank_agreement import spearman_brown
from irtjax.comparison.reliability import split_half
from irtjax.errors import InputError
from irtjax.explanatory import few_responses, new_items, text_baselines
from irtjax.fits.result import Z_95
from irtjax.pretrained.folder import read_pretrained
from irtjax.responses.matrix import MISSING, ResponseMatrix, require_estimable
from irtjax.storage.files import write_csv
from irtjax.tasks.item_texts import ItemTexts, read_item_texts

FLAGS = flags.FLAGS
LEAST_ITEMS = 20
NUMBERS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500)  # responses per new item


def run() -> None:
    """Reads, computes features, holds out, fits and writes the report."""
    app.keep_inputs(["responses", "texts", "glove", "new_items"], FLAGS.output_dir, (*report.FILES, *report.FORMER))
    texts = read_item_texts(FLAGS.texts, FLAGS.text_columns, FLAGS.covariates)
    response_files.require_effect([FLAGS.responses])
    responses, items = joined(read(), texts)
    fresh = None
    if FLAGS.new_items is not None:
        fresh = read_item_texts(FLAGS.new_items, FLAGS.text_columns, FLAGS.covariates)
    encoder = None if FLAGS.pretrained is None else read_pretrained(FLAGS.pretrained)
    features = features_of(items, encoder, items.table, "items")
    of_new = None if fresh is None else features_of(fresh, encoder, items.table, "new items")
    for path, some in ((FLAGS.texts, features), (FLAGS.new_items, of_new)):
        with app.naming(path):
            if some is not None:
                some.blocks()  # or an error
    compared = predictors(items, features)
    with app.naming(FLAGS.responses):
        found = study(responses, items, features, compared)
    given = {name: FLAGS[name].value for name in ("responses", "texts", "pretrained", "glove", "new_items")}
    given |= app.lists(("text_columns", "covariates"))
    given |= {name: FLAGS[name].value for name in ("model", "folds", "shown", "seed")}
    given |= response_files.given()
    with formulas.guarded_results(FLAGS.output_dir, report.FORMER) as directory:
        verdict = report.write(found, given, directory)
        found.joint.save(directory / "fit")
        if fresh is not None and of_new is not None:
            write_csv(predicted_table(found.joint, fresh, of_new), directory / "new_items.csv")
    print(f"{verdict}\nDone: {FLAGS.output_dir}/report.html and report.md")


def read() -> new_items.Answers:
    """The responses: right and wrong, or grades or counts.

    Raises:
        InputError: they cannot be read, or are shares, or of several kinds.
    """
    path = FLAGS.responses
    if FLAGS.model == "rasch":
        app.without_effect(("grades", "trials"), "--model=rasch")
        return response_files.read(path)
    if FLAGS.model == AUTO and not (FLAGS.grades or FLAGS.trials):
        found = response_files.read_or_grades(path, "grades need --model=graded, counts --model=binomial")
    else:
        found = response_files.read_scaled(path, FLAGS.model)
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
            f"{FLAGS.texts}: has {(at >= 0).sum():,} of the {responses.num_items:,} items of {FLAGS.responses}, "
            f"expected {LEAST_ITEMS} or more with a response: items are joined by their ids"
        )
    some = responses.choose_items(chosen).with_responses()
    with app.naming(FLAGS.responses):
        new_items.require_folds(some.num_items, FLAGS.folds)
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
    if FLAGS.glove is not None:
        found["mean word vector"] = text_baselines.ridge(text_baselines.mean_vectors(shown, FLAGS.glove))
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
    everything, seed = features.blocks(), FLAGS.seed
    with steps("fitting") as say:
        say("all responses, without features")
        reference = new_items.without_features(responses)
        say("halves of the subjects")
        reliability = reliability_of(responses)
        say("all responses, with features")
        joint = new_items.with_features(responses, everything)
    with counting_bar("predictions", FLAGS.folds * len(predictors)) as on_progress:
        held_out = new_items.hold_out(responses, predictors, FLAGS.folds, seed, on_progress)
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
    with app.naming(FLAGS.new_items):
        mean, sd = new_items.regression(fit).predict(features.blocks().values, items.ids)
    columns: dict[str, Any] = {"item_id": items.ids, "difficulty": mean, "difficulty_sd": sd}
    columns |= {"low": mean - Z_95 * sd, "high": mean + Z_95 * sd, "text": items.shown()}
    return pd.DataFrame(columns)
