"""Scores of single answers: those of the whole matrix, and of posteriors by a fine sum."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_expit
from simulation import by_difficulty, draw

import irtjax
from irtjax import InputError, ResponseMatrix
from irtjax.responses.scaled import Scale, ScaledResponses
from irtjax.responses.sparse import of_matrix

NUM_SUBJECTS, NUM_ITEMS = 200, 30
RNG = np.random.default_rng(0)
ABILITY, DIFFICULTY = RNG.normal(size=NUM_SUBJECTS), RNG.normal(size=NUM_ITEMS)
SLOPE, GUESSING = RNG.lognormal(0, 0.3, NUM_ITEMS), np.where(np.arange(NUM_ITEMS) % 2, 0.2, 0.0)
IDS = np.array([f"s{j}" for j in range(NUM_SUBJECTS)]), np.array([f"i{i}" for i in range(NUM_ITEMS)])
COLUMNS = ["ability", "ability_se", "percentile", "num_responses", "proportion_correct"]


@pytest.fixture(scope="module")
def matrix():
    """Eight answers of each subject, for which one program is enough; some answered nothing, one item, or all right."""
    values = draw(np.random.default_rng(1), by_difficulty(ABILITY, SLOPE, DIFFICULTY, GUESSING))
    order = np.random.default_rng(2).random(values.shape).argsort(axis=1)
    np.put_along_axis(values, order[:, 8:], -1, axis=1)
    values[0], values[1, 1:], values[1, 0] = -1, -1, 1
    values[2] = np.where(values[2] >= 0, 1, -1)
    return ResponseMatrix(values, *IDS)


@pytest.fixture(scope="module")
def items():
    columns = {"item_id": IDS[1], "difficulty": DIFFICULTY, "discrimination": SLOPE, "guessing": GUESSING}
    return pd.DataFrame(columns)


def assert_same(one, other, columns=COLUMNS, atol=1e-7):
    assert one["subject_id"].tolist() == other["subject_id"].tolist()
    np.testing.assert_allclose(one[columns], other[columns], rtol=1e-6, atol=atol)  # equal where infinite, or missing


def slow(method):
    return pytest.param(method, marks=pytest.mark.slow)


@pytest.mark.parametrize("method", ["eap", "map", slow("ml"), slow("wle")])
def test_scores_of_single_answers_are_those_of_the_matrix(matrix, items, method):
    whole = irtjax.score(items, matrix, method)
    atol = 1e-5 if method == "eap" else 1e-7  # means of the whole matrix are by coarser nodes
    assert_same(irtjax.score(items, of_matrix(matrix), method), whole, atol=10 * atol)


@pytest.mark.slow
def test_subjects_with_many_answers_beside_some_with_few(matrix, items):
    """Rows of three lengths."""
    values = np.array(matrix.values)
    values[3:20] = draw(np.random.default_rng(3), by_difficulty(ABILITY[3:20], SLOPE, DIFFICULTY))
    values[20:40, ::3] = 1
    other = ResponseMatrix(values, *IDS)
    assert_same(irtjax.score(items, of_matrix(other), "ml"), irtjax.score(items, other, "ml"))


@pytest.mark.parametrize(("middle", "spread"), [(0.0, 1.0), (0.3, 3.0)])
def test_means_are_those_of_a_fine_sum(matrix, items, middle, spread):
    found = irtjax.score(items, of_matrix(matrix), population=(middle, spread))
    theta = np.linspace(-40, 40, 16001)
    p, logit = by_difficulty(theta, SLOPE, DIFFICULTY, GUESSING), SLOPE * (theta[:, None] - DIFFICULTY)
    right, wrong = ((matrix.values == y).astype(float) for y in (1, 0))
    height = right @ np.log(p).T + wrong @ (np.log1p(-GUESSING) + log_expit(-logit)).T
    height -= ((theta - middle) / spread) ** 2 / 2
    weights = np.exp(height - height.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    mean = weights @ theta
    np.testing.assert_allclose(found["ability"], mean, atol=1e-9)
    sd = np.sqrt((weights * (theta - mean[:, None]) ** 2).sum(axis=1))
    np.testing.assert_allclose(found["ability_se"], sd, atol=1e-9)


def test_steep_items_and_a_wide_population(matrix, items):
    """Items like walls, for which means have other nodes, and posteriors far beyond the nodes of the population."""
    steep = items.assign(discrimination=40 * SLOPE, guessing=0.0)
    for table, population in ((steep, (0.0, 100.0)), (items.assign(difficulty=DIFFICULTY + 40), (0.0, 1.0))):
        whole = irtjax.score(table, matrix, population=population)
        assert_same(irtjax.score(table, of_matrix(matrix), population=population), whole, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["eap", "ml"])
def test_several_dimensions(matrix, method):
    slopes = {f"discrimination_{k + 1}": np.where(np.arange(NUM_ITEMS) % 2 == k, SLOPE, 0.3) for k in range(2)}
    table = pd.DataFrame({"item_id": IDS[1], **slopes, "intercept": -SLOPE * DIFFICULTY})
    columns = [f"{name}_{k}{end}" for k in (1, 2) for name, end in (("ability", ""), ("ability", "_se"))]
    whole = irtjax.score(table, matrix, method)
    assert_same(irtjax.score(table, of_matrix(matrix), method), whole, columns, atol=1e-5)
    with pytest.raises(InputError, match="'wle' has one dimension, and the items have 2"):
        irtjax.score(table, of_matrix(matrix), "wle")


def test_unknown_items_are_named(matrix, items):
    with pytest.raises(InputError, match=r"item 'i7' \(1 of 2 such\) has responses and no parameters"):
        irtjax.score(items[~items["item_id"].isin(["i7", "i9"])], of_matrix(matrix))


def test_draws_of_single_answers_are_those_of_the_matrix(matrix, items):
    whole = irtjax.plausible_values(items, matrix, 3, seed=5)
    np.testing.assert_allclose(irtjax.plausible_values(items, of_matrix(matrix), 3, seed=5), whole, atol=1e-7)


@pytest.fixture(scope="module")
def grades(matrix):
    """Grades of four categories, and a table of graded items."""
    cuts = np.sort(np.random.default_rng(4).normal(size=(NUM_ITEMS, 3)), axis=1)
    noise = np.random.default_rng(5).logistic(size=matrix.values.shape)
    given = (ABILITY[:, None, None] + noise[:, :, None] > cuts[None]).sum(axis=2)
    values = np.where(matrix.values >= 0, given, -1).astype(np.int8)
    table = pd.DataFrame({"item_id": IDS[1], "model": "graded", "grades": "1|2|3|4", "discrimination": 1.0})
    for k in range(3):
        table[f"threshold_{k + 1}"] = cuts[:, k]
    return ScaledResponses(values, *IDS, (Scale((1, 2, 3, 4)),) * NUM_ITEMS), table


@pytest.mark.parametrize("method", ["eap", "map"])
def test_scores_of_single_grades_are_those_of_the_matrix(grades, method):
    responses, table = grades
    columns = ["ability", "ability_se", "num_responses", "mean_response"]
    whole = irtjax.score(table, responses, method)
    assert_same(irtjax.score(table, of_matrix(responses), method), whole, columns, atol=1e-10)


def test_a_grade_that_an_item_has_not(grades):
    responses, table = grades
    other = ScaledResponses(np.asarray(responses.values), *IDS, (Scale((1, 2, 3, 7)),) * NUM_ITEMS)
    with pytest.raises(InputError, match=r"subject 's\d+', item 'i\d+': '7', expected one of 1, 2, 3, 4"):
        irtjax.score(table, of_matrix(other))
