"""Difficulties of items that nobody has answered: held-out predictions, by simulation and by quadrature."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm, spearmanr

from irtjax import InputError, ResponseMatrix
from irtjax.explanatory import few_responses, new_items
from irtjax.fits.item_features import item_features

SUBJECTS, ITEMS = 80, 90


@pytest.fixture(scope="module")
def simulated():
    """Responses, features that explain most of the difficulties, and these."""
    rng = np.random.default_rng(3)
    features = rng.normal(size=(ITEMS, 3))
    difficulty = features @ np.array([1.0, -0.6, 0]) + 0.4 * rng.normal(size=ITEMS)
    right = rng.random((SUBJECTS, ITEMS)) < expit(rng.normal(size=(SUBJECTS, 1)) - difficulty)
    values = np.where(rng.random(right.shape) < 0.1, -1, right).astype(np.int8)
    names = [f"s{at}" for at in range(SUBJECTS)], [f"i{at}" for at in range(ITEMS)]
    return ResponseMatrix(values, *names), item_features(features, np.array(names[1])), difficulty


@pytest.fixture(scope="module")
def reference(simulated):
    return new_items.without_features(simulated[0])


@pytest.fixture(scope="module")
def held_out(simulated):
    predictors = {"features": new_items.by_features(simulated[1]), "mean": new_items.by_mean}
    return new_items.hold_out(simulated[0], predictors, folds=2)


def test_held_out_items_are_predicted_as_well_as_features_allow(simulated, reference, held_out):
    scores = new_items.accuracy(held_out, reference).set_index("predictor")
    assert scores.spearman["features"] > 0.85
    assert np.isnan(scores.spearman["mean"])  # one prediction for all ranks nothing
    assert scores.rmse["features"] == pytest.approx(0.4, abs=0.15)  # the residual, and errors of both estimates
    assert scores.r_squared["features"] > 0.75
    assert scores.r_squared["mean"] <= 0  # the mean of the other items is never better than that of all
    assert scores.coverage["features"] > 0.88
    assert scores.log_loss["features"] < scores.log_loss["mean"] - 0.05
    by_hand = spearmanr(reference.difficulty, held_out.mean.features).statistic
    assert scores.spearman["features"] == pytest.approx(by_hand)


def test_a_prediction_knows_nothing_of_its_item(simulated, held_out):
    """Other responses to the items of one fold leave their own predictions as they were, to the last bit."""
    matrix, features, _ = simulated
    new = held_out.fold == 0
    values = np.where(new & (matrix.values >= 0), 1 - matrix.values, matrix.values).astype(np.int8)
    other = ResponseMatrix(values, matrix.subject_ids, matrix.item_ids)
    again = new_items.hold_out(other, {"features": new_items.by_features(features)}, folds=2)
    np.testing.assert_array_equal(again.mean.features[new], held_out.mean.features[new])
    assert not np.allclose(again.mean.features[~new], held_out.mean.features[~new])


@pytest.mark.slow
def test_a_subject_who_answered_one_fold_alone(simulated):
    """Their ability is that of the population where this fold is held out, and counts in the log-loss."""
    matrix = simulated[0]
    predictors = {"mean": new_items.by_mean}
    fold = new_items.hold_out(matrix, predictors, folds=2).fold
    values = matrix.values.copy()
    values[0, fold == 1] = -1
    sparse = ResponseMatrix(values, matrix.subject_ids, matrix.item_ids)
    found = new_items.hold_out(sparse, predictors, folds=2)
    assert np.isfinite(found.mean.to_numpy()).all()
    fit = new_items.without_features(sparse.choose_items(fold == 1))
    assert fit.responses.num_subjects == matrix.num_subjects - 1
    ability, ability_sd = new_items.abilities(fit, sparse)
    assert (ability[0], ability_sd[0]) == tuple(float(part[0]) for part in fit.population)
    with pytest.raises(InputError, match="`folds`=46 of 90 items, expected two items or more"):
        new_items.hold_out(matrix, predictors, folds=46)


def test_log_loss_by_quadrature():
    ability, ability_sd = np.array([0.3, -1.0]), np.array([0.2, 0.5])
    difficulty, difficulty_sd = np.array([-0.4, 0.8, 0.1]), np.array([0.6, 0.1, 1.2])
    values = np.array([[1, 0, -1], [0, 1, 1]], np.int8)
    expected = 0.0
    for j, i in zip(*np.nonzero(values >= 0), strict=True):
        spread = np.hypot(ability_sd[j], difficulty_sd[i])
        density = norm(ability[j] - difficulty[i], spread).pdf
        right = quad(lambda z, density=density: expit(z) * density(z), -12, 12, points=[0])[0]
        expected -= np.log(right if values[j, i] else 1 - right)
    given = values, ability, ability_sd, difficulty, difficulty_sd
    assert new_items.total_log_loss(*given) == pytest.approx(expected, rel=1e-5)


def test_log_loss_is_the_same_in_parts(monkeypatch):
    rng = np.random.default_rng(0)
    values = rng.integers(-1, 2, (5, 17)).astype(np.int8)
    given = values, rng.normal(size=5), np.ones(5), rng.normal(size=17), np.ones(17)
    whole = new_items.total_log_loss(*given)
    monkeypatch.setattr(new_items, "CELLS", 10)
    assert new_items.total_log_loss(*given) == pytest.approx(whole)


def test_a_text_is_worth_responses(simulated, reference):
    matrix, features, _ = simulated
    curve = few_responses.by_number(matrix, features, (0, 4), reference)
    error = curve.pivot(index="responses", columns="features", values="rmse")
    assert (error[True] < error[False]).all()
    assert error[False][4] < error[False][0]
    assert error[True][4] < error[True][0]
    same = few_responses.worth(curve)
    assert same[0] > 3  # no response and the features are better than three responses


def test_worth_of_a_text_by_hand():
    """Errors fall by half where 1 + number doubles, so that half the error is worth twice as many."""
    rows = [(number, given, (0.5 if given else 1) / (1 + number)) for number in (0, 1, 3, 7) for given in (False, True)]
    curve = pd.DataFrame(rows, columns=["responses", "features", "rmse"])
    assert few_responses.worth(curve).tolist() == pytest.approx([1, 3, 7, np.inf])
    worse = curve.assign(rmse=np.where(curve.features, 3.0, curve.rmse))
    assert few_responses.worth(worse).isna().all()
