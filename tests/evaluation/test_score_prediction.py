"""Predicted scores: against formulas by hand, and intervals on subjects that were not there."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
from benchmarks_at_hand import calibrated_bank, crossed_bank, simulate
from scipy.stats import binom, t

from irtjax.errors import InputError
from irtjax.evaluation.bank import calibrate
from irtjax.evaluation.forms import Form, choose_form
from irtjax.evaluation.prediction import Scorer, cross, of_form, scorers
from irtjax.evaluation.predictors import PREDICTORS
from irtjax.evaluation.score_posterior import score_posterior
from irtjax.responses.matrix import MISSING, ResponseMatrix

ITEMS = np.array([2, 5, 11, 17, 20])


@pytest.fixture(scope="module")
def bank():
    return calibrated_bank()


@pytest.fixture(scope="module")
def crossed():
    return crossed_bank()


@pytest.fixture(scope="module")
def simulated():
    return simulate(150)


@pytest.fixture(scope="module")
def form():
    return Form(ITEMS, np.array([0.1, 0.2, 0.3, 0.2, 0.2]))


@pytest.fixture(scope="module")
def values(bank):
    return bank.responses.values[:30, ITEMS]


def predict(name, bank, form, values):
    return PREDICTORS[name](bank, form)(values)


def test_the_mean_is_the_weighted_mean_on_the_line_of_least_squares(bank, form, values):
    x = bank.answers[:, ITEMS] @ form.weights
    slope, intercept = np.polyfit(x, bank.scores, 1)
    np.testing.assert_allclose(predict("mean", bank, form, values)[0], intercept + slope * x[:30], rtol=1e-9)
    whole = calibrate_whole(bank)
    np.testing.assert_allclose(predict("mean", whole, form, values)[0], 100 * x[:30])


def calibrate_whole(bank):
    """The same fit, of a bank that is all of the benchmark."""
    scores = 100 * bank.answers.mean(axis=1)
    return dataclasses.replace(bank, scores=scores, link=np.array([0.0, 1.0]), whole=True)


def test_irt_predictions_are_those_of_the_moments(bank, form, values):
    whole = np.full((30, bank.num_items), MISSING, np.int8)
    whole[:, ITEMS] = values
    found = score_posterior(bank.fit, whole)
    line = bank.link[0] + bank.link[1] * 100 * np.stack([found.at_ability, found.mean])
    np.testing.assert_allclose(predict("p-irt", bank, form, values)[0], line[0])
    np.testing.assert_allclose(predict("posterior", bank, form, values)[0], line[1])
    np.testing.assert_allclose(predict("posterior", bank, form, values)[1], 100 * found.sd)


def test_gp_irt_lies_between_the_form_and_p_irt_where_lambda_says(bank, form, values):
    whole = bank.responses.values.copy()
    whole[:, 1::2] = MISSING
    theta = score_posterior(bank.fit, whole).ability
    a, b = bank.fit.item_columns["discrimination"], bank.fit.item_columns["difficulty"]
    expected = (1 / (1 + np.exp(-a * (theta[:, None] - b))))[:, 1::2].mean(axis=1)
    error = np.abs(expected - bank.answers[:, 1::2].mean(axis=1)).mean()
    share = error**2 / (bank.answers.var(axis=1).mean() / (4 * 5) + error**2)
    of_form = bank.link[0] + bank.link[1] * 100 * (values @ form.weights)
    p = predict("p-irt", bank, form, values)[0]
    np.testing.assert_allclose(predict("gp-irt", bank, form, values)[0], share * of_form + (1 - share) * p, rtol=1e-6)


@pytest.mark.parametrize("name", ["p-irt", "posterior"])
def test_to_irt_a_missing_answer_is_an_item_that_was_not_asked(bank, form, values, name):
    without = values.copy()
    without[:, 1] = MISSING
    rest = np.array([0, 2, 3, 4])
    shorter = Form(ITEMS[rest], form.weights[rest] / form.weights[rest].sum())
    for one, other in zip(
        predict(name, bank, form, without), predict(name, bank, shorter, values[:, rest]), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("name", PREDICTORS)
def test_the_order_of_items_changes_nothing(bank, form, values, name):
    order = np.array([3, 1, 4, 0, 2])
    one = predict(name, bank, form, values)[0]
    other = predict(name, bank, Form(ITEMS[order], form.weights[order]), values[:, order])[0]
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_every_prediction_is_better_than_none(bank, form):
    values = bank.responses.values[:, ITEMS]
    spread = np.abs(bank.scores - bank.scores.mean()).mean()
    for name in PREDICTORS:
        assert np.abs(predict(name, bank, form, values)[0] - bank.scores).mean() < 0.75 * spread, name


def test_with_all_items_the_score_of_the_bank_is_known(bank):
    whole = calibrate_whole(bank)
    everything = Form(np.arange(24), np.full(24, 1 / 24))
    for name in ("mean", "p-irt", "gp-irt", "posterior"):
        points = predict(name, whole, everything, bank.responses.values)[0]
        np.testing.assert_allclose(points, whole.scores, atol=1e-9)
    points = predict("calibrated", whole, everything, bank.responses.values)[0]
    np.testing.assert_allclose(points, whole.scores, atol=0.5)


def test_intervals_take_the_rank_of_conformal_prediction(bank, form):
    residuals = np.random.default_rng(0).normal(size=99)
    scorer = Scorer(bank, form, PREDICTORS["mean"](bank, form), residuals)
    assert scorer.multiplier(0.9) == np.sort(np.abs(residuals))[89]  # the 90th of 99
    few = Scorer(bank, form, scorer.predictor, residuals[:6])
    assert math.isclose(few.multiplier(0.9), t.ppf(0.95, 6) * np.sqrt((residuals[:6] ** 2).mean()))


@pytest.mark.parametrize("way", ["random", "variance"])
def test_intervals_hold_new_subjects(crossed, way):
    new = simulate(2000, seed=1)
    for name, scorer in scorers(crossed, 8, way, ("mean", "posterior", "calibrated")).items():
        found = scorer.predict(new.responses.values[:, scorer.form.items])
        inside = ((found.low <= new.scores) & (new.scores <= found.high)).mean()
        # the rank among 150 residuals has a spread of its own, on top of that of 2,000 new subjects
        spread = binom(150, 0.9).std() / 150 + binom(2000, 0.9).std() / 2000
        assert abs(inside - 0.9) < 3 * spread, name
        assert (found.low <= found.score).all()
        assert (found.score <= found.high).all()


def test_items_that_tell_most_predict_better_than_random_ones(crossed):
    new = simulate(2000, seed=1)
    errors = {}
    for way in ("random", "variance"):
        scorer = scorers(crossed, 6, way)["calibrated"]
        predicted = scorer.predict(new.responses.values[:, scorer.form.items])
        errors[way] = np.abs(predicted.score - new.scores).mean()
    assert errors["variance"] < 0.9 * errors["random"]


def test_residuals_are_of_subjects_that_had_no_part(crossed, form):
    """A subject's residual is that of the bank, the form and the predictor of the other folds."""
    found = scorers(crossed, 6, "variance", ("ridge",))["ridge"]
    part, held = crossed.parts[2]
    own = choose_form(part, 6, "variance")
    points, deviation = PREDICTORS["ridge"](part, own)(crossed.bank.responses.values[np.ix_(held, own.items)])
    np.testing.assert_allclose(found.residuals[held], (crossed.bank.scores[held] - points) / deviation)
    assert not set(part.responses.subject_ids) & set(crossed.bank.responses.subject_ids[held])
    given = of_form(crossed, form, "ridge")
    np.testing.assert_array_equal(given.form.items, ITEMS)


def test_scores_are_matched_by_subject(simulated):
    names = simulated.responses.subject_ids
    order = np.random.default_rng(0).permutation(names.size)
    series = pd.Series(simulated.scores[order], names[order])
    found = calibrate(simulated.responses, series)
    np.testing.assert_array_equal(found.scores, simulated.scores)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (pd.Series([50.0], ["m0"]), "none of subject 'm1' .1 of 149 such."),
        (np.linspace(0, 1, 150), "none is above 1, expected points from 0 to 100: multiply"),
        (np.linspace(0, 100.1, 150), "subject 'm149' has 100.1, expected points, 0 to 100"),
        (np.full(150, np.nan), "subject 'm0' has nan"),
        (np.zeros(3), "scores of shape .3,., expected one for each of 150"),
        (pd.Series(np.ones(2), ["m0", "m0"]), "subject 'm0' is there twice"),
    ],
)
def test_scores_that_are_none_are_refused(simulated, scores, message):
    with pytest.raises(InputError, match=message):
        calibrate(simulated.responses, scores)


def test_what_cannot_be_calibrated_or_predicted_is_refused(simulated, crossed):
    few = simulated.responses.choose_subjects(np.arange(9))
    with pytest.raises(InputError, match="9 subjects, expected 10 or more"):
        calibrate(few)
    with pytest.raises(InputError, match="`model` '5pl', expected one of rasch"):
        calibrate(simulated.responses, model="5pl")
    with pytest.raises(InputError, match="`categories` of 3 items, expected one for each of 24"):
        calibrate(simulated.responses, categories=np.array(["a", "b", "c"]))
    with pytest.raises(InputError, match="`predictors` 'best', expected names of mean"):
        scorers(crossed, 3, predictors=("best",))
    with pytest.raises(InputError, match="`folds` 1"):
        cross(crossed.bank, folds=1)


def test_an_item_that_a_fold_alone_has_answered_is_refused(simulated):
    values = simulated.responses.values[:40].copy()
    values[1:, 3] = MISSING
    sparse = ResponseMatrix(values, simulated.responses.subject_ids[:40], simulated.responses.item_ids)
    with pytest.raises(InputError, match=r"item 'i3' .1 of 1 such. has responses of too few subjects"):
        cross(calibrate(sparse, quiet=True))
