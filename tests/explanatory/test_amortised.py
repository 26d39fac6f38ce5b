"""Difficulties from responses and features at once: the regression by brute force, the fit by simulation."""

import dataclasses
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime
from scipy.special import expit
from scipy.stats import multivariate_normal

import irtjax
from irtjax import InputError, ResponseMatrix
from irtjax.estimation.mml import fit_mml
from irtjax.estimation.priors import ItemPriors
from irtjax.explanatory.item_likelihoods import item_likelihoods
from irtjax.fits.item_features import item_features
from irtjax.fits.regression import _design, _minus_evidence, _minus_evidence_by_items, _products, regress
from irtjax.svi.directions import coefficients, regression, rotated
from irtjax.svi.fit import fit_svi
from irtjax.svi.guide import Normal

FEW, MANY = 6, 60  # responses of an item, in the mean


@pytest.fixture
def rng():
    """The same draws for a test, whichever others run."""
    return np.random.default_rng(1)


@pytest.fixture(scope="module")
def simulated():
    """300 subjects, 160 items of which half have few responses: the matrix, features, difficulties, which have few."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(160, 6))
    difficulty = 0.3 + features @ np.array([0.8, -0.5, 0.3, 0, 0, 0]) + 0.5 * rng.normal(size=160)
    few = np.arange(160) % 2 == 0
    right = rng.random((300, 160)) < expit(rng.normal(size=(300, 1)) - difficulty)
    values = np.where(rng.random((300, 160)) < np.where(few, FEW, MANY) / 300, right, -1).astype(np.int8)
    values[np.arange(160) % 300, np.arange(160)] = right[np.arange(160) % 300, np.arange(160)]
    seen = (values >= 0).any(1)
    matrix = ResponseMatrix(values[seen], [f"s{at}" for at in range(seen.sum())], [f"i{at}" for at in range(160)])
    return matrix, features, difficulty, few


@pytest.fixture(scope="module")
def fit(simulated):
    return irtjax.fit(simulated[0], "rasch", features=simulated[1])


@pytest.fixture(scope="module")
def two_parameters(simulated):
    """Slopes that follow a feature: responses, slopes, difficulties; few items with few responses."""
    matrix, features, difficulty, few = simulated
    rng = np.random.default_rng(1)
    slope = np.exp(0.4 * features[:, 3] + 0.15 * rng.normal(size=160))
    right = rng.random((300, 160)) < expit(slope * (rng.normal(size=(300, 1)) - difficulty))
    values = np.where(few & (rng.random((300, 160)) < 0.9), -1, right).astype(np.int8)
    return ResponseMatrix(values, [f"s{at}" for at in range(300)], matrix.item_ids), slope, difficulty


@pytest.fixture(scope="module")
def fit_2pl(simulated, two_parameters):
    return irtjax.fit(two_parameters[0], features=simulated[1])


def test_evidence_by_brute_force(rng):
    """The density of y with the weights integrated out; a flat mean is a normal one of a large variance."""
    design, y, noise = _design(rng.normal(size=(9, 3))), rng.normal(size=9), rng.uniform(0.1, 1, 9)
    blocks = np.array([0, 1, 0])

    def brute(logs):
        tau, *omega = np.exp(logs)
        spread = design @ np.diag([1e6, *np.square(omega)[blocks]]) @ design.T + np.diag(tau**2 + noise)
        return -2 * multivariate_normal.logpdf(y, np.zeros(9), spread)

    at, to = np.log([0.5, 0.7, 0.3]), np.log([0.9, 0.2, 1.1])
    value = [_minus_evidence(logs, y, noise, design, blocks)[0] for logs in (at, to)]
    assert value[1] - value[0] == pytest.approx(brute(to) - brute(at), abs=1e-3)
    gradient = _minus_evidence(at, y, noise, design, blocks)[1]
    expected = approx_fprime(at, lambda logs: _minus_evidence(logs, y, noise, design, blocks)[0], 1e-6)
    np.testing.assert_allclose(gradient, expected, rtol=1e-3)


def test_evidence_by_items_is_that_by_coefficients(rng):
    """With fewer items than features, and with items of which nothing is known."""
    design, block = _design(rng.normal(size=(12, 20))), rng.permutation(np.repeat([0, 1, 2], [11, 6, 3]))
    y, noise = rng.normal(size=12), rng.uniform(0.1, 1, 12)
    y[3], noise[3] = 0.0, 1e8
    logs = np.log([0.6, 0.3, 1.2, 0.05])
    value, gradient = _minus_evidence(logs, y, noise, design, block)
    by_items, same_gradient = _minus_evidence_by_items(logs, y, noise, _products(design, block))
    assert by_items == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(same_gradient, gradient, rtol=1e-6, atol=1e-8)


def dense(found):
    """The covariance (F + 1, F + 1) of the mean and all weights."""
    turn = np.zeros((found.directions.shape[0] + 1, found.directions.shape[1] + 1))
    turn[0, 0], turn[1:, 1:] = 1, found.directions
    rest = np.eye(len(found.directions)) - found.directions @ found.directions.T
    whole = turn @ found.covariance @ turn.T
    whole[1:, 1:] += float(found.weight_sd) ** 2 * rest
    return whole


@pytest.mark.parametrize("blocks", [np.zeros(30, int), np.repeat([0, 1], [25, 5])])
def test_with_fewer_items_than_features_the_posterior_is_the_same(rng, blocks):
    """By the normal equations of all weights, at the deviations that were found; and items nobody knows."""
    features, noise = rng.normal(1, 2, (12, 30)), rng.uniform(0.05, 0.2, 12)
    features[:, 7] = 0.3  # the same for all
    y = features[:, 0] - features[:, 26] + rng.normal(0, 0.1, 12)
    noise[4] = np.inf
    found = regress(y, noise, features, None, blocks)
    assert found.directions.shape == (30, 12)
    design = _design((features - found.centre) / found.scale)
    weight = 1 / (found.residual_sd**2 + np.minimum(noise, 1e8))
    prior = np.diag([0.0, *np.full(30, found.weight_sd**-2.0)])
    covariance = np.linalg.inv((design * weight[:, None]).T @ design + prior)
    known = np.where(np.isfinite(noise), y, 0.0)
    np.testing.assert_allclose(dense(found), covariance, rtol=1e-7, atol=1e-9)
    expected = covariance @ design.T @ (weight * known)
    np.testing.assert_allclose([found.mean, *found.weights], expected, rtol=1e-7, atol=1e-9)
    new = rng.normal(1, 2, (5, 30))
    mean, sd = found.predict(new)
    z = _design((new - found.centre) / found.scale)
    np.testing.assert_allclose(mean, z @ expected, rtol=1e-7)
    np.testing.assert_allclose(sd, np.sqrt((z @ covariance * z).sum(1) + found.residual_sd**2), rtol=1e-7)


def test_thousands_of_features_take_no_matrix_of_them(rng):
    """One of 20,000 by 20,000 would take 3 GiB."""
    features = rng.normal(size=(30, 20_000))
    found = regress(features[:, :100].sum(1) / 10, np.full(30, 0.1), features)
    assert max(np.size(leaf) for leaf in found) == 30 * 20_000
    assert np.isfinite(found.predict(features)).all()


def test_the_unit_of_features_does_not_matter(rng):
    """Powers of two change no digit; squares of 1e-300 are 0, and those of 1e300 infinite."""
    features, noise = rng.normal(size=(20, 4)), np.full(20, 0.1)
    y = features[:, 0] + rng.normal(0, 0.3, 20)
    expected = regress(y, noise, features).predict(features)
    for unit in (2.0**-1000, 2.0**300):
        np.testing.assert_array_equal(regress(y, noise, unit * features).predict(unit * features), expected)


def test_a_block_of_many_idle_features_does_not_shrink_the_others(rng):
    """One column tells all; 100 beside it tell nothing."""
    features, noise = rng.normal(size=(300, 101)), np.full(300, 0.05)
    y = 1.5 * features[:, 0] + rng.normal(0, np.sqrt(0.3**2 + noise))
    blocks = np.minimum(np.arange(101), 1)
    shared, found = (regress(y, noise, features, None, given) for given in (None, blocks))
    weights = found.weights / found.scale
    assert weights[0] == pytest.approx(1.5, abs=0.06)
    assert np.abs(weights[1:]).max() < 0.02 < np.abs(shared.weights[1:] / shared.scale[1:]).max()
    new = rng.normal(size=(1_000, 101))
    (mean, sd), (by_shared, _) = found.predict(new), shared.predict(new)
    assert (mean - 1.5 * new[:, 0]).std() < 0.5 * (by_shared - 1.5 * new[:, 0]).std()
    assert sd.mean() == pytest.approx(0.3, abs=0.06)
    again = regress(y, noise, features, found, blocks)  # from where it ended
    np.testing.assert_allclose(again.predict(new)[0], mean, atol=0.01)


def test_regression_recovers_a_simulation_and_covers_new_items(rng):
    features = rng.normal(2, 3, (500, 8))
    truth = rng.normal(0, 0.2, 8)
    noise = rng.uniform(0.01, 0.1, 500)
    noise[:20] = np.inf  # nothing is known of these, whatever they say
    y = 1 + features @ truth + rng.normal(0, 0.4, 500) + rng.normal(size=500) * np.sqrt(np.minimum(noise, 1))
    y[:20] = 1e6
    found = regress(y, noise, features)
    assert found.residual_sd == pytest.approx(0.4, abs=0.05)
    new = rng.normal(2, 3, (4_000, 8))
    difficulty = 1 + new @ truth + rng.normal(0, 0.4, 4_000)
    mean, sd = found.predict(new)
    assert (np.abs(difficulty - mean) < 1.96 * sd).mean() == pytest.approx(0.95, abs=0.03)
    doubled = found.rescaled(2.0).predict(new)
    np.testing.assert_allclose(doubled, [2 * mean, 2 * sd])
    constant = regress(y, noise, np.column_stack([features, np.full(500, 0.1)]))  # says nothing
    with_constant = constant.predict(np.column_stack([new, np.full(4_000, 0.2)]))
    np.testing.assert_allclose(with_constant[0], mean, atol=1e-3)
    assert (with_constant[1] < 3 * sd).all()


def test_the_search_does_not_end_at_a_bound():
    """There the evidence is flat, and a first step as long as its gradient would lead there."""
    rng = np.random.default_rng(5)
    for _ in range(30):
        features, noise = rng.normal(size=(300, 50)), np.full(300, 0.3)
        y = features @ rng.normal(0, 0.2, 50) + rng.normal(0, np.sqrt(0.5**2 + noise))
        found = regress(y, noise, features)
        assert 0.3 < found.residual_sd < 0.7
        low = found._replace(residual_sd=np.asarray(1e-3), weight_sd=np.asarray(1e-3))
        again = regress(y, noise, features, low)
        assert again.weight_sd == pytest.approx(float(found.weight_sd), rel=0.01)


def test_a_block_that_is_the_same_for_all_items_has_no_say(rng):
    features = np.column_stack([rng.normal(size=(100, 3)), np.ones(100)])
    y, noise = features @ np.array([0.1, 0.1, 0, 0]) + 0.2 * rng.normal(size=100), np.full(100, 0.01)
    alone, beside = regress(y, noise, features[:, :3]), regress(y, noise, features, None, np.array([0, 0, 0, 1]))
    assert beside.weight_sd == pytest.approx(float(alone.weight_sd), rel=0.01)


def test_a_regression_on_nothing_known_is_finite(rng):
    found = regress(np.zeros(20), np.full(20, np.inf), rng.normal(size=(20, 2)))
    assert np.isfinite([*found.weights, found.mean, found.residual_sd, found.weight_sd]).all()


def test_few_responses_borrow_and_many_keep_their_own(simulated, fit):
    matrix, _, truth, few = simulated
    plain = irtjax.fit(matrix, "rasch")
    assert fit.converged
    error, without = (np.abs(one.difficulty - truth) for one in (fit, plain))
    # six answers inform by 1.2: posteriors have sd 0.44 about the features (sd 0.5), and 0.70 about all items (sd 1.1)
    assert error[few].mean() < 0.75 * without[few].mean()
    assert error[~few].mean() < 1.05 * without[~few].mean()
    own = np.abs(fit.difficulty - plain.difficulty)[~fit.extreme & ~plain.extreme]
    assert own[~few[~fit.extreme]].mean() < 0.3 * own[few[~fit.extreme]].mean()
    assert (np.abs(fit.difficulty - truth) < 1.96 * fit.difficulty_se).mean() > 0.85


def test_the_same_model_in_other_units(simulated, fit):
    other = irtjax.fit(simulated[0], "1pl", features=simulated[1])
    slope = other.parameters.slope[0, 0]
    np.testing.assert_allclose(slope * other.difficulty, fit.difficulty, atol=0.02)
    assert slope * other.regression.residual_sd == pytest.approx(float(fit.regression.residual_sd), abs=0.02)
    assert other.log_likelihood == pytest.approx(fit.log_likelihood, abs=0.2)


@pytest.mark.slow
def test_svi_agrees_with_mml(simulated, fit, rng):
    matrix, features, _, _ = simulated
    svi = irtjax.fit(matrix, "1pl", "svi", features=features)
    assert svi.converged
    np.testing.assert_allclose(svi.difficulty, fit.difficulty, atol=0.2)
    assert np.corrcoef(svi.difficulty, fit.difficulty)[0, 1] > 0.998
    new = rng.normal(size=(500, 6))
    (mean, sd), (expected, expected_sd) = (one.regression.predict(new) for one in (svi, fit))
    assert (mean - expected).std() < 0.08  # of 1.0, that of the predictions: a guide of independent normals
    np.testing.assert_allclose(mean, expected, atol=0.25)
    np.testing.assert_allclose(sd, expected_sd, rtol=0.2)


@pytest.mark.slow
def test_both_estimators_regress_discriminations_too(simulated, two_parameters, fit_2pl):
    _, features, _, few = simulated
    matrix, slope, difficulty = two_parameters
    by_svi, plain = irtjax.fit(matrix, "2pl", "svi", features=features), irtjax.fit(matrix, "2pl")
    # the derivative of asinh a at the median slope of 1 is 0.7 of that of log a
    for found, of_slopes in ((fit_2pl, 0.7), (by_svi, 1.0)):
        assert found.converged
        weights = found.slope_regression.weights / found.slope_regression.scale / of_slopes
        np.testing.assert_allclose(weights, [0, 0, 0, 0.4, 0, 0], atol=0.1)
        np.testing.assert_allclose(
            found.regression.weights / found.regression.scale, [0.8, -0.5, 0.3, 0, 0, 0], atol=0.2
        )
        assert found.slope_regression.residual_sd / of_slopes == pytest.approx(0.15, abs=0.1)
        assert found.regression.residual_sd == pytest.approx(0.5, abs=0.1)

    def error(found, truth, name, chosen):
        return np.sqrt(np.square(found.item_columns[name] - truth)[chosen].mean())

    for name, truth in (("difficulty", difficulty), ("discrimination", slope)):
        assert error(fit_2pl, truth, name, few) < 0.8 * error(plain, truth, name, few)
        assert error(fit_2pl, truth, name, ~few) < 1.02 * error(plain, truth, name, ~few)
        assert error(fit_2pl, truth, name, slice(None)) < 1.25 * error(by_svi, truth, name, slice(None))
    np.testing.assert_allclose([fit_2pl.ability.mean(), by_svi.ability.mean()], 0, atol=0.03)  # in the middle
    predicted, by_other = (found.predict_items(features) for found in (fit_2pl, by_svi))
    steep = predicted["discrimination"] > 0.25  # asinh a, which MML regresses, may cross 0, log a may not
    assert steep.mean() > 0.95
    for name in ("difficulty", "discrimination", "difficulty_sd"):
        np.testing.assert_allclose(predicted[name][steep], by_other[name][steep], rtol=0.2, atol=0.15)
    inside = np.abs(slope - predicted["discrimination"]) < 1.96 * predicted["discrimination_sd"]
    assert inside.mean() > 0.85


def test_features_of_another_order_are_refused(simulated):
    matrix, features, _, _ = simulated
    table = pd.DataFrame(features[:, :3], matrix.item_ids, ["short", "long", "old"])
    named = irtjax.fit(matrix, "rasch", features=table)
    np.testing.assert_allclose(named.predict_items(table).difficulty, named.predict_items(features[:, :3]).difficulty)
    with pytest.raises(InputError, match="features 'old' where the fit had 'short': give the same ones in the same"):
        named.predict_items(table[["old", "long", "short"]])
    blocks = {"words": table, "vectors": features[:, 3:]}
    named = irtjax.fit(matrix, "rasch", features=blocks)
    assert named.details["feature_names"] == ["words: short", "words: long", "words: old", "vectors"]
    with pytest.raises(InputError, match="features 'vectors' where the fit had 'words: short'"):
        named.predict_items(dict(reversed(blocks.items())))


@pytest.mark.filterwarnings("ignore:of 160 items")
def test_items_that_are_foretold_to_fall(simulated):
    """A feature marks those where the able are more often wrong."""
    _, features, difficulty, _ = simulated
    rng, marked = np.random.default_rng(4), np.arange(160) % 5 == 0
    slope = np.where(marked, -1.0, 1.0) * np.exp(0.2 * rng.normal(size=160))
    right = rng.random((300, 160)) < expit(slope * (rng.normal(size=(300, 1)) - difficulty))
    fit = irtjax.fit(right.astype(np.int8), features=np.column_stack([features, marked]))
    predicted = fit.predict_items(np.column_stack([features, marked]))
    np.testing.assert_allclose(predicted.discrimination[marked], -1, atol=0.3)
    assert fit.regression.residual_sd == pytest.approx(0.5, abs=0.12)
    intercept = -predicted.discrimination * predicted.difficulty
    for chosen in (marked, ~marked):
        assert np.corrcoef(intercept[chosen], fit.parameters.intercept[chosen])[0, 1] > 0.8


def test_the_prior_does_not_pull_at_the_scale(fit_2pl, two_parameters, rng):
    """Origin and unit are those of the abilities, for more subjects than items and for fewer."""
    few = ResponseMatrix(two_parameters[0].values[:60], [f"s{at}" for at in range(60)], two_parameters[0].item_ids)
    features = rng.normal(size=(160, 2))
    for fit in (fit_2pl, irtjax.fit(few.with_responses(), features=features)):
        found = item_likelihoods(fit)
        assert found.origin == pytest.approx(0, abs=0.01)
        assert found.unit == pytest.approx(1, abs=0.01)


def test_what_responses_say_by_brute_force(fit_2pl):
    """The gradient and curvature of an item's likelihood given the posteriors of abilities without it."""
    found, item = item_likelihoods(fit_2pl), 3
    answers = fit_2pl.responses.values[:, item]
    seen = answers >= 0
    mean = ((fit_2pl.ability - found.origin) / found.unit)[seen, None]
    sd = (fit_2pl.ability_se / found.unit)[seen, None]
    z = np.linspace(-6, 6, 401)
    theta, weight = mean + sd * z, np.exp(-0.5 * z**2)
    sign = np.where(answers[seen] == 1, 1, -1)[:, None]
    at = np.array([found.slope[item], found.intercept[item]])
    others = weight / expit(sign * (at[0] * theta + at[1]))

    def value(parameters):
        return np.log((others * expit(sign * (parameters[0] * theta + parameters[1]))).sum(1)).sum()

    np.testing.assert_allclose(found.gradient[item], approx_fprime(at, value, 1e-6), atol=1e-4)
    step = 1e-3 * np.eye(2)
    curvature = [
        [
            (value(at + one + two) - value(at + one - two) - value(at - one + two) + value(at - one - two)) / 4e-6
            for two in step
        ]
        for one in step
    ]
    np.testing.assert_allclose(found.information[item], -np.array(curvature), rtol=1e-3)


@pytest.mark.slow
def test_the_error_of_the_scale_is_not_taken_for_that_of_items(rng):
    """30 subjects know the origin to 0.2, and 1,000 items what their features tell far better."""
    features = rng.normal(size=(1_000, 3))
    difficulty = features @ np.array([0.8, 0.5, 0]) + 0.15 * rng.normal(size=1_000)
    right = rng.random((30, 1_000)) < expit(rng.normal(size=(30, 1)) - difficulty)
    fit = irtjax.fit(right.astype(np.int8), "rasch", features=features)
    np.testing.assert_allclose(fit.regression.weights / fit.regression.scale, [0.8, 0.5, 0], atol=0.06)
    assert fit.regression.residual_sd < 0.3
    assert np.corrcoef(fit.difficulty, difficulty)[0, 1] > 0.97


@pytest.mark.slow
def test_a_fit_that_does_not_settle_says_so():
    """Ten subjects, ten items, six features."""
    rng = np.random.default_rng(0)
    features, rounds = rng.normal(size=(10, 6)), []
    difficulty = 0.3 + features[:, :2] @ [0.8, -0.5] + 0.5 * rng.normal(size=10)
    slope = np.exp(0.3 * rng.normal(size=10))
    right = rng.random((10, 10)) < expit(slope * (rng.normal(size=(10, 1)) - difficulty))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit = irtjax.fit(
            right.astype(np.int8), features=features, on_round=lambda number, change: rounds.append(number)
        )
    line = "not converged: regressions on the features still moved after 15 rounds; give fewer features, or more items"
    assert str(caught[0].message).startswith(line)
    assert (fit.status, fit.converged, rounds) == ("not settled", False, list(range(1, 16)))


def test_items_that_nobody_has_answered(simulated, fit, fit_2pl):
    _, features, _, _ = simulated
    table = pd.DataFrame(features[:4], list("abcd"))
    mean, sd = fit.regression.predict(features[:4])
    found = fit.predict_items(table)
    assert found.columns.tolist() == [
        "item_id", "difficulty", "difficulty_sd", "discrimination", "discrimination_sd",
    ]  # fmt: skip
    assert found.item_id.tolist() == list("abcd")
    np.testing.assert_allclose(found[["difficulty", "difficulty_sd"]], np.stack([mean, sd], 1))
    assert (found.discrimination == 1).all()
    blocks = fit.predict_items({"one": table[[0, 1]], "two": table[[2, 3, 4, 5]]})
    pd.testing.assert_frame_equal(blocks, found)
    assert fit_2pl.predict_items(features[:2]).item_id.tolist() == ["item_1", "item_2"]
    scores = irtjax.score(found, pd.DataFrame([[1, 0, 1, 0]], ["new"], list("abcd")))
    assert np.isfinite(scores.ability).all()
    with pytest.raises(InputError, match=r"features of shape \(4, 5\), expected 6 columns"):
        fit.predict_items(features[:4, :5])
    with pytest.raises(InputError, match="expected one row for each of 1 items"):
        fit.predict_items(3.0)


def test_directions_are_the_features_turned(rng):
    """X w = Z c, and there and back again; more features than items leave directions that these do not show."""
    features = rng.normal(3, 2, (30, 5))
    features[:, 4] = features[:, 3] + 1e-3 * features[:, 4]
    turned = rotated(features)
    z, spread = turned.directions
    np.testing.assert_allclose(z.T @ z / 30, np.eye(5), atol=1e-4)
    w = rng.normal(size=5)
    c = spread * (turned.vectors.T @ w)
    np.testing.assert_allclose(z @ c, (features - turned.centre) / turned.scale @ w, atol=1e-3)
    found = regress(features[:, 0] + rng.normal(size=30), np.full(30, 0.1), features)
    posterior = {"b_mean": Normal(found.mean, 0.1), "b_precision": Normal(-2 * np.log(found.residual_sd), 0.1)}
    posterior |= {"b_weights": coefficients(found, turned), "b_weight_sd": Normal(np.log(found.weight_sd), 0.1)}
    again = regression(posterior, "b", turned)
    np.testing.assert_allclose(again.weights, found.weights, atol=1e-3)
    assert again.residual_sd == pytest.approx(float(found.residual_sd))
    wide = rotated(rng.normal(size=(4, 9)))
    assert wide.vectors.shape == (9, 3)  # the mean takes one of four
    posterior["b_weights"] = Normal(np.zeros(3), np.full(3, 1e-6))
    hidden = np.linalg.svd(wide.vectors.T)[2][-1]  # at a right angle to all items
    again = regression(posterior, "b", wide)
    assert hidden @ dense(again)[1:, 1:] @ hidden == pytest.approx(float(found.weight_sd) ** 2)
    assert again.variance(hidden[None], 0.0)[0] == pytest.approx(float(found.weight_sd) ** 2)
    posterior["b_weights"], to_c = Normal(np.zeros(3), np.full(3, 0.5)), wide.vectors * wide.directions.spread
    again = regression(posterior, "b", wide)
    np.testing.assert_allclose(again.variance(to_c.T, 0.0), np.diag(to_c.T @ dense(again)[1:, 1:] @ to_c), rtol=1e-6)


def test_a_fit_is_kept_with_its_regressions(fit_2pl, tmp_path, rng):
    fit_2pl.save(tmp_path)
    again = irtjax.load_fit(tmp_path)
    assert again == fit_2pl
    new = rng.normal(size=(5, 6))
    pd.testing.assert_frame_equal(again.predict_items(new), fit_2pl.predict_items(new))


def test_a_prior_for_each_item(simulated):
    """Narrow ones hold intercepts and slopes, extreme items among them."""
    matrix, _, truth, _ = simulated
    slopes = np.linspace(-0.5, 2, 160)
    narrow = {
        "slope_prior": ItemPriors(np.arcsinh(slopes), np.full(160, 1e-3)),
        "intercept_prior": ItemPriors(-slopes * truth, np.full(160, 1e-3)),
    }
    both = fit_mml(matrix, "2pl", **narrow)
    np.testing.assert_allclose(both.parameters.slope[:, 0], slopes, atol=5e-3)
    np.testing.assert_allclose(both.parameters.intercept, -slopes * truth, atol=1e-3)
    for model, more in (("1pl", {}), ("rasch", {}), ("2pl", {"dims": 2})):
        with pytest.raises(InputError, match="`slope_prior` of each item: expected `dims` 1, and items with slopes"):
            fit_mml(matrix, model, slope_prior=narrow["slope_prior"], **more)
    with pytest.raises(InputError, match=r"`slope_prior`: means \(3,\) and standard deviations \(3,\) of 160 items"):
        fit_mml(matrix, "2pl", slope_prior=ItemPriors(np.zeros(3), np.ones(3)))
    held = fit_mml(matrix, "rasch", intercept_prior=ItemPriors(-truth, np.full(160, 1e-3)))
    np.testing.assert_allclose(held.difficulty, truth, atol=1e-3)
    with pytest.raises(
        InputError, match=r"`intercept_prior`: means \(3,\) and standard deviations \(3,\) of 160 items"
    ):
        fit_mml(matrix, "rasch", intercept_prior=ItemPriors(np.zeros(3), np.ones(3)))
    with pytest.raises(InputError, match=r"`intercept_prior`: N\(0, 0²\) of item number 1"):
        fit_mml(matrix, "rasch", intercept_prior=ItemPriors(np.zeros(160), np.zeros(160)))


def test_bad_features(simulated, fit):
    matrix, features, _, _ = simulated
    table = pd.DataFrame(features, matrix.item_ids)
    np.testing.assert_array_equal(item_features(table[::-1], matrix.item_ids).values, features)
    parts = item_features({"some": table[[0, 1]], "others": features[:, 2:]}, matrix.item_ids)
    np.testing.assert_array_equal(parts.values, features)
    assert parts.blocks.tolist() == [0, 0, 1, 1, 1, 1]
    np.testing.assert_array_equal(
        item_features({"one": table[0], "same": features[:, 0]}, matrix.item_ids).values[:, 1], table[0]
    )
    cases = [
        (table[:-2], r"no features of item 'i158' \(2 such\)"),
        (pd.concat([table, table[:1]]), "features of item 'i0' are there twice"),
        (features[:3], r"features of shape \(3, 6\), expected one row for each of 160 items"),
        (np.where(np.arange(160)[:, None] == 4, np.nan, features), "features of item 'i4': column 1 is not finite"),
        (table.astype(object).replace(table.iloc[0, 0], "long"), "features are not all numbers"),
        ({"own": features, "few": table[:-2]}, r"no features 'few' of item 'i158' \(2 such\)"),
        ({}, "`features` has no blocks"),
        (
            np.where(np.arange(160)[:, None] == 4, 1e300, features),
            r"item 'i4': column 1 is 1e\+300, of 1e\+100 at most",
        ),
        (
            table.set_axis(pd.MultiIndex.from_product([["a"], matrix.item_ids], names=["set", None])),
            r"features have an index of 2 levels \('set', None\): expected one, of item ids",
        ),
    ]
    for given, line in cases:
        with pytest.raises(InputError, match=line):
            irtjax.fit(matrix, "rasch", features=given)
    for model in ("3pl", ["2pl"] * 160):
        with pytest.raises(
            InputError, match="`features` go with the models rasch, 1pl, 2pl, graded, binomial, binomial_1pl, not with"
        ):
            irtjax.fit(matrix, model, features=features)
    for name, value in (
        ("slope_prior", None),
        ("guessing", 0.25),
        ("extremes", "refuse"),
        ("dims", 2),
        ("anchors", pd.DataFrame({"item_id": ["i0"], "difficulty": [0.0]})),
        ("intercept_prior", ItemPriors(np.zeros(160), np.ones(160))),
        ("standard_errors", False),
    ):
        with pytest.raises(InputError, match=f"`{name}` does not go with `features`"):
            irtjax.fit(matrix, "1pl", features=features, **{name: value})
    with pytest.raises(InputError, match="every item was answered right by everyone or by no one"):
        irtjax.fit(np.ones((5, 160), np.int8), features=features)
    with pytest.raises(InputError, match="estimator svi has one variance for the weights of all `features`"):
        irtjax.fit(matrix, "1pl", "svi", features={"some": features, "others": features})
    with pytest.raises(InputError, match="`features` are the same for all items"):
        irtjax.fit(matrix, "1pl", "svi", features=np.full((160, 2), 0.1))
    with pytest.raises(InputError, match="`features` go with the hierarchical priors"):
        irtjax.fit(matrix, "1pl", "svi", features=features, priors="vague")
    with pytest.raises(InputError, match=r"features of shape \(3, 6\)"):
        irtjax.fit(matrix, "1pl", "svi", features=features[:3])
    with pytest.raises(InputError, match=r"features of shape \(2, 3\), expected 6 columns"):
        fit.regression.predict(np.zeros((2, 3)))
    narrow = dataclasses.replace(fit, regression=fit.regression._replace(scale=fit.regression.scale * 1e-200))
    far = np.where(np.arange(3)[:, None] == 1, 1e90, fit.regression.centre)
    with pytest.raises(InputError, match="features in row 2 are so far from those of the fit that nothing can be"):
        narrow.regression.predict(far)
    with pytest.raises(InputError, match="features of item 'b' are so far from those of the fit that nothing can be"):
        narrow.predict_items(pd.DataFrame(far, list("abc")))


@pytest.mark.slow
def test_svi_from_proportions(simulated):
    """All slopes begin at 1, of which nothing can be learned."""
    matrix, features, _, _ = simulated
    fit = fit_svi(matrix, "2pl", features=features, start="proportions", max_steps=200)
    assert np.isfinite(fit.difficulty).all()
