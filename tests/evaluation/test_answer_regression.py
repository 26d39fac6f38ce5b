"""The regression on answers and the choice of items, against explicit matrices."""

import numpy as np
import pytest
from benchmarks_at_hand import calibrated_bank

from irtjax.evaluation.answer_regression import answer_moments, most_telling, regress
from irtjax.evaluation.bank import POINTS


@pytest.fixture(scope="module")
def bank():
    return calibrated_bank()


@pytest.fixture(scope="module")
def moments(bank):
    return answer_moments(bank, model_subjects=20.0)


@pytest.fixture(scope="module")
def covariance(moments):
    return moments.deviations.T @ moments.deviations + np.diag(moments.noise)


def test_moments_are_those_of_data_and_model_by_their_weights(bank, moments, covariance):
    n, p = len(bank.scores), bank.expected
    of_data = np.cov(bank.answers.T, bias=True)
    of_model = np.cov(p.T, bias=True) + np.diag((p * (1 - p)).mean(axis=0))
    np.testing.assert_allclose(covariance, (n * of_data + 20 * of_model) / (n + 20), atol=1e-5)
    data_scores = ((bank.scores - bank.scores.mean())[:, None] * (bank.answers - bank.answers.mean(axis=0))).mean(
        axis=0
    )
    model_score = bank.linked(POINTS * p.mean(axis=1))
    # each answer is a part of the score: its noise goes with it
    part = bank.link[1] * POINTS / bank.num_items * (p * (1 - p)).mean(axis=0)
    model_scores = ((model_score - model_score.mean())[:, None] * (p - p.mean(axis=0))).mean(axis=0) + part
    np.testing.assert_allclose(moments.with_score, (n * data_scores + 20 * model_scores) / (n + 20), rtol=1e-9)


def test_the_next_item_leaves_the_least_variance(moments, covariance):
    groups = np.zeros(len(covariance), int)
    chosen: list[int] = []
    for _ in range(6):
        told = []
        for item in range(len(covariance)):
            some = [*chosen, item]
            c = moments.with_score[some]
            told.append(-1.0 if item in chosen else c @ np.linalg.solve(covariance[np.ix_(some, some)], c))
        chosen.append(int(np.argmax(told)))
    np.testing.assert_array_equal(most_telling(moments, groups, np.array([6])), chosen)


def test_groups_get_their_numbers(moments):
    groups = np.arange(24) % 3
    chosen = most_telling(moments, groups, np.array([4, 1, 0]))
    np.testing.assert_array_equal(np.bincount(groups[chosen], minlength=3), [4, 1, 0])
    assert np.unique(chosen).size == 5


def test_the_regression_solves_the_normal_equations_and_leaves_out_one_at_a_time(bank, moments, covariance):
    items = np.array([3, 8, 15, 20])
    found = regress(moments, items)
    points = np.linalg.solve(covariance[np.ix_(items, items)], moments.with_score[items])
    np.testing.assert_allclose(found.points, points, rtol=1e-8)
    answers = bank.answers[:, items]
    np.testing.assert_allclose(found.predict(answers).mean(), bank.scores.mean(), rtol=1e-12)
    w, own = moments.deviations[:, items], moments.own[items]
    for j in (0, 70, 149):
        rest = np.arange(len(w)) != j
        gram = w[rest].T @ w[rest] + np.diag(moments.noise[items])
        without = np.linalg.solve(gram, w[rest].T @ moments.scores[rest] + own)
        expected = moments.mean_score + (answers[j] - moments.mean[items]) @ without
        np.testing.assert_allclose(found.left_out[j], expected, rtol=1e-8)


def test_with_few_subjects_the_model_decides(bank):
    """As ν grows, the moments become those of the model, which a dense sum gives."""
    found = answer_moments(bank, model_subjects=1e9)
    p = bank.expected
    np.testing.assert_allclose(
        found.deviations.T @ found.deviations + np.diag(found.noise),
        np.cov(p.T, bias=True) + np.diag((p * (1 - p)).mean(axis=0)),
        atol=1e-5,
    )
