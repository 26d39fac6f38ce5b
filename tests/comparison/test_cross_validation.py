"""Marginal likelihoods and predictions against brute force, folds, scores, calibration of items, and the comparison."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logsumexp
from simulation import draw, probability
from sklearn.metrics import log_loss, roc_auc_score

import irtjax
from irtjax.comparison.calibration import calibrate
from irtjax.comparison.candidates import Candidate, candidates
from irtjax.comparison.prediction_scores import calibration_bins, scores
from irtjax.integration.posteriors import posteriors
from irtjax.integration.prediction import log_likelihood_of_subjects, posterior_moments, predict
from irtjax.kernels.models import ItemParameters
from irtjax.responses.folds import folds_of_cells

NO_ASYMPTOTES = (-np.inf, np.inf)


def items_of(rng, num_items, dims=1, steep=1.0, asymptotes=NO_ASYMPTOTES):
    slope = steep * rng.lognormal(0, 0.5, (num_items, dims))
    lower, upper = (np.full(num_items, float(value)) for value in asymptotes)
    return ItemParameters(slope, steep * rng.normal(0, 1, num_items), lower, upper)


def answers(rng, items, num_subjects, missing=0.0, mean=0.0, sd=1.0):
    theta = mean + sd * rng.normal(size=(num_subjects, items.slope.shape[1]))
    return draw(rng, probability(items, theta), missing)


def dense(items, row, mean, sd, around, num_nodes):
    """Marginal log-likelihood of one subject, and predictions (I,), on a dense grid around the posterior mode."""
    rough, _, _ = on_grid(items, row, mean, sd, [np.linspace(-6, 6, 25)] * len(mean))
    lines = [np.linspace(centre - around, centre + around, num_nodes) for centre in rough]
    return on_grid(items, row, mean, sd, lines)[1:]


def on_grid(items, row, mean, sd, lines):
    z = np.stack([axis.ravel() for axis in np.meshgrid(*lines, indexing="ij")], axis=1)
    p = probability(items, mean + sd * z)
    with np.errstate(divide="ignore"):
        logs = np.where(row == 1, np.log(p), np.where(row == 0, np.log1p(-p), 0.0)).sum(axis=1)
    log_volume = sum(np.log((line[1] - line[0]) / np.sqrt(2 * np.pi)) for line in lines)
    log_joint = logs - 0.5 * (z**2).sum(axis=1) + log_volume
    log_likelihood = logsumexp(log_joint)
    return z[log_joint.argmax()], log_likelihood, np.exp(log_joint - log_likelihood) @ p


CASES = {  # items, subjects, dimensions, steepness, asymptotes, the dense grid, what is asked
    "4pl": (20, 40, 1, 1.5, (-1.5, 3.0), (8, 4001), 1e-7),
    "steep": (60, 40, 1, 80.0, NO_ASYMPTOTES, (8, 60001), 1e-4),
    "long": (4000, 3, 1, 40.0, NO_ASYMPTOTES, (0.5, 2001), 1e-4),
    "two dimensions": (120, 3, 2, 1.0, NO_ASYMPTOTES, (2.5, 101), 1e-4),
    "three dimensions": (60, 3, 3, 1.0, NO_ASYMPTOTES, (3, 31), 1e-3),
}


@pytest.mark.parametrize("case", CASES)
def test_likelihoods_and_predictions_by_brute_force(case):
    num_items, num_subjects, dims, steep, asymptotes, grid, tolerance = CASES[case]
    rng = np.random.default_rng(0)
    items = items_of(rng, num_items, dims, steep, asymptotes)
    mean, sd = np.linspace(0.2, 0.4, dims), np.linspace(1.3, 0.8, dims)
    values = answers(rng, items, num_subjects, 0.1, mean, sd)
    values[-1] = -1  # a subject without responses
    found = log_likelihood_of_subjects(items, values, mean, sd)
    predicted = predict(items, values, mean, sd)
    assert found[-1] == pytest.approx(0, abs=1e-7)
    for subject in range(2):
        expected = dense(items, values[subject], mean, sd, *grid)
        assert found[subject] == pytest.approx(expected[0], abs=tolerance)
        np.testing.assert_allclose(predicted[subject], expected[1], atol=tolerance)


def test_narrow_posteriors_get_nodes_of_their_own():
    rng = np.random.default_rng(1)
    items = items_of(rng, 4000, steep=40.0)
    found = list(posteriors(items, answers(rng, items, 3), np.zeros(1), np.ones(1)))
    assert any(part.nodes.ndim == 3 for part in found)
    assert sorted(np.concatenate([part.rows for part in found])) == [0, 1, 2]
    for part in found:
        np.testing.assert_allclose(part.weights.sum(axis=1), 1)
        spread = np.sqrt(part.covariance[:, 0, 0])
        information = (items.slope[:, 0] ** 2 * (p := probability(items, part.mean)) * (1 - p)).sum(axis=1)
        np.testing.assert_allclose(spread, (1 + information) ** -0.5, rtol=0.01)


def test_every_response_is_held_out_once_and_nothing_is_emptied():
    values = np.full((40, 12), -1, np.int8)
    rng = np.random.default_rng(0)
    seen = rng.random(values.shape) < 0.15
    seen[np.arange(40), rng.integers(0, 12, 40)] = True
    values[seen] = rng.integers(0, 2, seen.sum())
    fold = folds_of_cells(values, 3, seed=1)
    assert (fold[~seen] == -1).all()
    assert (fold[seen] >= 0).mean() > 0.5
    for k in range(3):
        left = seen & (fold != k)
        assert left.any(axis=0).all()
        assert left.any(axis=1).all()
    full = folds_of_cells(np.ones((40, 12), np.int8), 5, seed=1)
    assert set(np.bincount(full.ravel())) == {96}


def test_scores_are_those_of_scikit_learn_and_of_hand():
    rng = np.random.default_rng(0)
    p = np.round(rng.random(500), 2)
    right = (rng.random(500) < p).astype(np.int8)
    found = scores(right, p)
    assert found["log_loss"] == pytest.approx(log_loss(right, np.clip(p, 1e-12, 1 - 1e-12)))
    assert found["auc"] == pytest.approx(roc_auc_score(right, p))
    assert found["brier"] == pytest.approx(np.mean((p - right) ** 2))
    by_hand = scores(np.array([1, 0, 1, 1]), np.array([0.5, 0.5, 1.0, 0.99]))
    assert by_hand["calibration_error"] == pytest.approx((0 + abs(2 - 1.99)) / 4)
    number, _, observed = calibration_bins(np.array([1, 0, 1, 1]), np.array([0.5, 0.5, 1.0, np.nan]))
    assert (number[[7, 14]] == [2, 1]).all()
    assert (observed[[7, 14]] == [1, 1]).all()
    assert np.isnan(scores(np.zeros(3, np.int8), np.full(3, 0.5))["auc"])
    assert np.isnan(scores(np.zeros(0, np.int8), np.zeros(0))["log_loss"])


def test_new_items_are_calibrated_to_their_posterior_mode():
    rng = np.random.default_rng(3)
    known, new = (items_of(rng, number, asymptotes=(-1.4, np.inf)) for number in (30, 4))
    known = known._replace(lower=rng.normal(-1.4, 0.5, 30))
    theta = rng.normal(size=(300, 1))
    values, of_new = (draw(rng, probability(items, theta)) for items in (known, new))
    of_new[rng.random(of_new.shape) < 0.2] = -1
    mean, covariance = posterior_moments(known, values, np.zeros(1), np.ones(1))
    found = calibrate(of_new, mean, covariance, known)
    assert np.isinf(found.upper).all()  # as those of all known items

    low, middle, high = (
        np.array([np.quantile(leaf, q, method="lower") for leaf in (known.slope[:, 0], known.intercept, known.lower)])
        for q in (0.16, 0.5, 0.84)
    )
    z = np.linspace(-6, 6, 241)
    weights = np.exp(-0.5 * z**2) / np.exp(-0.5 * z**2).sum()
    nodes = mean[:, :1] + np.sqrt(covariance[:, :, 0]) * z

    def objective(x, y):
        p = expit(x[2]) + (1 - expit(x[2])) * expit(x[0] * nodes + x[1])
        likelihood = np.where(y[:, None] == 1, p, np.where(y[:, None] == 0, 1 - p, 1.0)) @ weights
        return -np.log(likelihood).sum() + 0.5 * ((x - middle) ** 2 / ((high - low) / 2) ** 2).sum()

    for item in range(4):
        best = minimize(objective, middle, args=(of_new[:, item],), method="BFGS")
        x = np.array([found.slope[item, 0], found.intercept[item], found.lower[item]])
        np.testing.assert_allclose(x, best.x, atol=0.01)
    same = known._replace(slope=np.full((30, 1), 1.2), lower=np.full(30, -np.inf))
    held = calibrate(of_new, mean, covariance, same)
    np.testing.assert_array_equal(held.slope, 1.2)
    assert np.isinf(held.lower).all()


@pytest.fixture(scope="module")
def two_pl():
    """Responses of a 2PL whose slopes differ widely, some missing, one item that nearly everyone has right."""
    rng = np.random.default_rng(5)
    items = ItemParameters(
        rng.choice([0.4, 2.2], (24, 1)), rng.normal(0, 1, 24), np.full(24, -np.inf), np.full(24, np.inf)
    )
    values = answers(rng, items, 400, missing=0.1)
    values[:, 0] = 1
    values[:2, 0] = 0
    return irtjax.ResponseMatrix(values, [f"s{j}" for j in range(400)], [f"i{i}" for i in range(24)])


@pytest.fixture(scope="module")
def comparison(two_pl):
    said = []
    found = irtjax.compare(
        two_pl,
        ("1pl", "2pl"),
        by=("cells", "subjects", "items"),
        folds=3,
        on_progress=lambda *state: said.append(state),
    )
    return found, said


def test_the_true_model_predicts_best_in_every_way(two_pl, comparison):
    found, _ = comparison
    for by, rows in found.table.groupby("by"):
        assert found.recommended(by) == Candidate("2pl")
        one, two = (rows[rows.model == model].iloc[0] for model in ("1pl", "2pl"))
        assert one.log_loss_difference > 3 * one.log_loss_difference_se > 0
        assert two.log_loss_difference == 0
        assert one.brier > two.brier
        assert one.auc < two.auc
        assert two.calibration_error < 0.05
        assert one.log_loss < 0.7
        assert rows[rows.model == "rates"].iloc[0].log_loss_difference > one.log_loss_difference
    with pytest.raises(irtjax.InputError, match="no comparison by 'rows'"):
        found.recommended("rows")
    fits = {model: irtjax.fit(two_pl, model, extremes="keep") for model in ("1pl", "2pl")}
    for row in found.table[found.table.model != "rates"].itertuples():
        assert row.log_likelihood == pytest.approx(fits[row.model].log_likelihood, abs=0.05)
        assert row.bic == pytest.approx(fits[row.model].information_criteria()["bic"], abs=0.1)
        assert row.converged


def test_errors_are_those_of_the_folds(comparison):
    found, _ = comparison
    cells = found.folds[found.folds.by == "cells"].pivot(index="fold", columns="model", values="log_loss")
    row = found.table[(found.table.by == "cells") & (found.table.model == "1pl")].iloc[0]
    difference = cells["1pl"] - cells["2pl"]
    assert row.log_loss == pytest.approx(cells["1pl"].mean())
    assert row.log_loss_se == pytest.approx(cells["1pl"].std() / np.sqrt(3))
    assert row.log_loss_difference == pytest.approx(difference.mean())
    assert row.log_loss_difference_se == pytest.approx(difference.std() / np.sqrt(3))


def test_every_answer_is_predicted_once(two_pl, comparison):
    found, said = comparison
    observed = (two_pl.values >= 0).sum()
    predicted = found.table.drop_duplicates("by").set_index("by").num_predicted
    assert predicted["cells"] == predicted["subjects"] == observed
    assert abs(predicted["items"] - observed / 2) < 0.02 * observed
    counted = found.calibration.groupby(["by", "model"]).number.sum()
    assert (counted["cells"] == observed).all()
    assert said[0] == (0, 30, "1PL, all responses")
    assert said[-1] == (30, 30, "done")
    assert [done for done, _, _ in said] == list(range(31))


def test_shuffled_answers_are_predicted_best_by_item_rates():
    rng = np.random.default_rng(0)
    values = (rng.random((24, 23)) < rng.random(23)).astype(np.int8)  # no subject differs from another
    found = irtjax.compare(values, ("1pl", "2pl"))
    assert str(found.recommended("cells")) == "item rates"
    row = found.table.iloc[-1]
    counts = np.array([(values[:, i].sum(), 24) for i in range(23)])
    rate = (counts[:, 0] + 0.5) / 25
    expected = (values * np.log(rate) + (1 - values) * np.log(1 - rate)).sum()
    assert row.log_likelihood == pytest.approx(expected)


def test_candidates_and_bad_arguments(two_pl):
    assert [str(one) for one in candidates(("rasch", "2pl", "3pl"), (1, 2), ("svi",))] == ["2PL by SVI", "item rates"]
    found = [str(one) for one in candidates(("1pl", "2pl"), (1, 2), ("mml",))]
    assert found == ["1PL", "2PL", "2PL, 2 dimensions", "item rates"]
    assert str(Candidate("3pl", 2)) == "3PL, 2 dimensions"
    assert Candidate("3pl", 2).complexity == 4
    for arguments, message in (
        ({"models": ("5pl",)}, "unknown model '5pl'"),
        ({"estimators": ("em",)}, "unknown estimator 'em'"),
        ({"models": ("3pl",), "estimators": ("svi",)}, "no candidates"),
        ({"dims": (0,)}, "`dims` 0, expected a whole number, 1 to 6"),
        ({"by": ("rows",)}, "unknown way of holding out 'rows'"),
        ({"by": ()}, "nothing to hold out"),
        ({"folds": 25}, "`folds`=25, expected 2 to 24"),
    ):
        with pytest.raises(irtjax.InputError, match=message):
            irtjax.compare(two_pl, **arguments)
