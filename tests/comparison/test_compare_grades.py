"""Models of grades, compared by what they predict."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import irtjax
from irtjax.comparison.grades import probabilities, scores
from irtjax.estimation.families import fit_families
from irtjax.responses.from_arrays import of_grades
from irtjax.responses.sparse import of_matrix

RNG = np.random.default_rng(0)
THRESHOLDS = np.linspace(-1, 1, 6)[:, None] + np.array([-1.2, 0.0, 1.2])


def graded(num_subjects):
    """Grades 1 to 4 on six items with slopes of 1.5."""
    above = expit(1.5 * (RNG.normal(size=(num_subjects, 1, 1)) - THRESHOLDS))
    return 1.0 + (RNG.random((num_subjects, 6, 1)) < above).sum(axis=2)


@pytest.fixture(scope="module")
def responses():
    table = graded(200)
    table[::9, 2] = np.nan
    return of_grades(table, [f"s{j}" for j in range(200)], [f"i{i}" for i in range(6)])


def test_scores_by_hand():
    found = scores(np.array([0, 2]), np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]))
    assert found["log_loss"] == pytest.approx(-(np.log(0.5) + np.log(0.7)) / 2)
    first, second = (0.5**2 + 0.2**2) / 2, (0.1**2 + 0.3**2) / 2
    assert found["rps"] == pytest.approx((first + second) / 2)


def test_predictions_are_integrals_over_the_posterior(responses):
    fit = fit_families(responses, "graded", standard_errors=False)
    nodes = np.linspace(-8, 8, 3201)
    b = np.stack([fit.item_columns[f"threshold_{k}"] for k in (1, 2, 3)], axis=1)
    above = expit(fit.item_columns["discrimination"][None, :, None] * (nodes[:, None, None] - b))
    of_grade = np.concatenate([np.ones((3201, 6, 1)), above], 2) - np.concatenate([above, np.zeros((3201, 6, 1))], 2)
    for j in (0, 5):
        seen = responses.values[j] >= 0
        posterior = np.exp(-0.5 * nodes**2)
        for i in np.flatnonzero(seen):
            posterior *= of_grade[:, i, int(responses.values[j, i])]
        expected = np.einsum("q,qic->ic", posterior / posterior.sum(), of_grade)
        np.testing.assert_allclose(probabilities(fit)[j], expected, atol=1e-8)


def test_a_subject_far_outside_of_the_population_is_predicted_there():
    table = 1.0 + RNG.binomial(3, expit(0.2 * RNG.normal(size=(150, 1)) - np.linspace(-1, 1, 40)))
    table[0] = 4
    fit = fit_families(of_grades(table, [f"s{j}" for j in range(150)], [f"i{i}" for i in range(40)]), "pcm")
    sd = fit.population.sd[0]
    assert fit.ability[0] + fit.ability_se[0] > 6 * sd  # where nodes that follow the population end
    steps = np.stack([fit.item_columns[f"threshold_{k}"] for k in (1, 2, 3)], axis=1)
    nodes = np.linspace(-5, 15, 8001) * sd
    logits = np.concatenate([np.zeros((8001, 40, 1)), np.cumsum(nodes[:, None, None] - steps, axis=2)], axis=2)
    p = np.exp(logits - np.logaddexp.reduce(logits, axis=2, keepdims=True))
    log_posterior = np.log(p[:, :, 3]).sum(axis=1) - 0.5 * (nodes / sd) ** 2
    posterior = np.exp(log_posterior - log_posterior.max())
    expected = np.einsum("q,qic->ic", posterior / posterior.sum(), p)
    np.testing.assert_allclose(probabilities(fit)[0], expected, atol=1e-6)


def test_the_true_model_beats_the_item_rates_and_shuffled_grades_do_not(responses):
    found = irtjax.compare(responses, ("graded", "pcm"), folds=2)
    table = found.table.set_index("model")
    assert table.log_loss["graded"] < table.log_loss["rates"] - 3 * table.log_loss_difference_se["rates"]
    assert table.rps["graded"] < table.rps["rates"]
    assert table.num_predicted.between(responses.observed.sum() - 10, responses.observed.sum()).all()
    fit = fit_families(responses, "graded", standard_errors=False)
    frame = pd.DataFrame(np.where(responses.observed, responses.values + 1.0, np.nan))
    pd.testing.assert_frame_equal(irtjax.compare(frame, ("graded", "pcm"), folds=2).folds, found.folds)
    assert table.log_likelihood["graded"] == pytest.approx(fit.log_likelihood)
    assert table.aic["graded"] == pytest.approx(48 - 2 * fit.log_likelihood)
    values = np.array(responses.values)
    for column in values.T:
        RNG.shuffle(column)
    shuffled = irtjax.compare(dataclasses.replace(responses, values=values), ("graded", "pcm"), folds=2)
    assert str(shuffled.recommended("cells")) == "item rates"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"models": "2pl"}, "unknown model '2pl', expected some of graded, gpcm"),
        ({"by": "items"}, "`by` 'items': models of grades are compared with 'cells' only"),
        ({"dims": 2}, "`dims` 2: models of grades"),
        ({"folds": 7}, "`folds`=7, expected 2 to 6"),
    ],
)
def test_bad_arguments(responses, arguments, message):
    with pytest.raises(irtjax.InputError, match=message):
        irtjax.compare(responses, **arguments)


def test_comparison_of_single_grades_is_that_of_the_matrix():
    table = graded(200)
    table[RNG.random(table.shape) < 0.4] = np.nan
    table[table[:, 0] == 4, 0] = 3  # a category of the scale that nobody has of this item
    table[0] = 1, 2, 3, 4, np.nan, 1
    matrix = of_grades(table, [f"s{j}" for j in range(200)], [f"i{i}" for i in range(6)])
    one, other = (irtjax.compare(each, ("graded",), folds=2, seed=1) for each in (of_matrix(matrix), matrix))
    for name in ("table", "folds"):
        found, expected = (getattr(each, name).drop(columns="seconds", errors="ignore") for each in (one, other))
        numbers = expected.select_dtypes("number").columns
        np.testing.assert_allclose(found[numbers], expected[numbers], atol=1e-5)
        assert found.drop(columns=numbers).equals(expected.drop(columns=numbers))


def test_single_grades_are_compared_without_a_matrix(monkeypatch):
    table = graded(60)
    table[RNG.random(table.shape) < 0.3] = np.nan
    single = of_matrix(of_grades(table, [f"s{j}" for j in range(60)], [f"i{i}" for i in range(6)]))
    monkeypatch.setattr(type(single), "read", lambda self: pytest.fail("made the matrix"))
    assert len(irtjax.compare(single, ("graded",), folds=2).table) == 2
