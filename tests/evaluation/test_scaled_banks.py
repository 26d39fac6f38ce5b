"""Banks of grades and counts: against sums over all that unseen grades can be, and subjects that were not there."""

import itertools

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm
from simulation import simulate_grades

from irtjax.errors import InputError
from irtjax.evaluation.bank import asked, calibrate, unit_of
from irtjax.evaluation.forms import choose_form
from irtjax.evaluation.predictors import PREDICTORS
from irtjax.evaluation.scaled_test import on_scales_of, shares_of
from irtjax.responses.from_arrays import of_counts, of_grades
from irtjax.responses.joining import beside
from irtjax.responses.matrix import MISSING
from irtjax.responses.scaled import Scale, ScaledResponses

ITEMS = np.array([1, 2, 3, 4])


@pytest.fixture(scope="module")
def bank():
    """Six graded items of 200 subjects, and a seventh that everybody was given a 2 for."""
    grades = simulate_grades(200, 6)[0].assign(same=2)
    return calibrate(of_grades(grades.to_numpy(float), grades.index.tolist(), grades.columns.tolist()), model="graded")


def test_scores_are_mean_grades(bank):
    grades = simulate_grades(200, 6)[0].assign(same=2)
    assert bank.unit.text == "grades, 1 to 4"
    np.testing.assert_allclose(bank.scores, grades.mean(axis=1))
    assert bank.items().item_id.tolist() == grades.columns.tolist()
    np.testing.assert_allclose(bank.expected[:, 6], 1 / 3)
    assert not bank.noise[:, 6].any()


def test_the_score_is_that_of_all_that_unseen_grades_can_be(bank):
    responses = bank.responses.choose_subjects(np.arange(4))
    found = bank.scaled.score_posterior(asked(responses, ITEMS), ITEMS)
    theta, table = np.linspace(-7, 7, 6001), bank.items().iloc[:6]
    above = np.stack([expit(table.discrimination.to_numpy() * (theta[:, None] - table[f"threshold_{k}"].to_numpy()))
                      for k in (1, 2, 3)])  # fmt: skip
    p = -np.diff(np.concatenate([np.ones_like(above[:1]), above, np.zeros_like(above[:1])]), axis=0)
    for j, row in enumerate(np.asarray(responses.values)):
        density = norm.pdf(theta) * np.prod([p[row[i], :, i] for i in ITEMS], axis=0)
        density /= density.sum()
        outcomes = [(density @ (p[k, :, 0] * p[m, :, 5]), (row[ITEMS].sum() + k + m + 1) / 3 / 7)
                    for k, m in itertools.product(range(4), repeat=2)]  # fmt: skip
        chance, score = np.array(outcomes).T
        assert found.mean[j] == pytest.approx(chance @ score, rel=1e-6)
        assert found.sd[j] == pytest.approx(np.sqrt(chance @ (score - chance @ score) ** 2), rel=1e-5)
        assert found.ability[j] == pytest.approx(density @ theta, abs=1e-6)


def test_what_was_not_asked_is_filled_with_the_expectation(bank):
    responses = bank.responses.choose_subjects(np.arange(4))
    values = np.array(responses.values)
    values[0, 2] = MISSING
    some = ScaledResponses(values, responses.subject_ids, responses.item_ids, responses.scales)
    found = bank.scaled.filled(asked(some, ITEMS), ITEMS)
    theta, weights = bank.scaled.posteriors(asked(some, ITEMS), ITEMS)
    assert found[0, 1] == pytest.approx(weights[0] @ bank.at(theta).mean[:, 2])
    np.testing.assert_array_equal(np.delete(found, 1, axis=1), shares_of(asked(responses, ITEMS))[:, [0, 2, 3]])


@pytest.mark.slow
def test_forms_and_predictions_of_new_subjects(bank):
    fresh = simulate_grades(260, 6)[0].iloc[200:].assign(same=2)  # other subjects, of the same items
    new = of_grades(fresh.to_numpy(float), fresh.index.tolist(), fresh.columns.tolist())
    truth = fresh.mean(axis=1)
    form = choose_form(bank, 3, "information")
    told = bank.information(bank.fit.ability).mean(axis=0)
    assert form.items.tolist() == np.argsort(-told)[:3].tolist()
    assert 6 not in choose_form(bank, 6, "variance").items  # which says nothing
    for name, predictor in PREDICTORS.items():
        points, _ = predictor(bank, form)(asked(new, form.items))
        assert np.abs(points - truth).mean() < 0.75 * np.abs(truth - truth.mean()).mean(), name


def test_grades_that_calibration_has_not_seen_are_the_nearest(bank):
    responses = bank.responses.choose_subjects(np.arange(2))
    few = of_grades(np.array([[4.0], [1.0]]), ["a", "b"], ["i1"], labels=[1, 4])
    known = on_scales_of(few, bank.responses)
    assert known.values.ravel().tolist() == [3, 0]
    with pytest.raises(InputError, match="subject 'a', item 'i1': 7, expected one of 1, 2, 3, 4"):
        on_scales_of(of_grades(np.array([[7.0], [1.0]]), ["a", "b"], ["i1"]), bank.responses)
    # nobody was given another grade than 2 of the last item
    other = np.array(responses.values)[:, [6]] + 1
    odd = ScaledResponses(other, responses.subject_ids, responses.item_ids[[6]], responses.scales[6:])
    assert np.isfinite(bank.scaled.score_posterior(odd, np.array([6])).mean).all()


@pytest.mark.slow
def test_counts_are_shares_in_points_and_tell_more_with_more_trials():
    theta, rng = np.linspace(-2, 2, 40), np.random.default_rng(1)
    p = expit(theta[:, None] - np.linspace(-1, 1, 4))
    ids = [f"s{j}" for j in range(40)], [f"t{i}" for i in range(4)]
    bank = calibrate(of_counts(rng.binomial([5, 5, 50, 50], p).astype(float), np.array([5, 5, 50, 50]), *ids))
    assert bank.unit.text == "points, 0 to 100"
    assert set(choose_form(bank, 2, "information").items) == {2, 3}
    np.testing.assert_allclose(bank.noise[:, 2], bank.expected[:, 2] * (1 - bank.expected[:, 2]) / 50)
    found = bank.scaled.score_posterior(asked(bank.responses, ITEMS - 1), ITEMS - 1)
    np.testing.assert_allclose(100 * found.mean, bank.scores)


def test_items_of_several_scales_have_points():
    first, second = (
        of_grades(np.ones((1, 1)), ["a"], [name], labels) for name, labels in (("x", (1, 2)), ("y", (1, 5)))
    )
    assert unit_of(beside(first, second)).text == "points, 0 to 100"
    words = ScaledResponses(np.zeros((1, 1), int), np.array(["a"]), np.array(["x"]), (Scale(("low", "high")),))
    assert unit_of(words).text == "points, 0 to 100"
