"""Split-half reliability by hand, with an estimator that needs no fit."""

from types import SimpleNamespace

import numpy as np
import pytest
from conftest import matrix
from simulation import simulate

from irtjax.comparison.reliability import alternate_subjects, common_items, split_half
from irtjax.responses.matrix import proportion_correct


def by_proportion_correct(responses):
    return SimpleNamespace(difficulty=-proportion_correct(responses.values, axis=0))


def test_halves_are_disjoint_and_together_all_subjects():
    responses, _, _ = simulate(7, 5)
    even, odd = alternate_subjects(responses)
    assert list(even.subject_ids) == ["s0", "s2", "s4", "s6"]
    assert list(odd.subject_ids) == ["s1", "s3", "s5"]
    np.testing.assert_array_equal(odd.values, responses.values[1::2])


def test_items_that_one_half_has_not_answered_are_left_out():
    responses = matrix(np.array([[1, 0, 1, -1], [1, -1, 0, 1], [0, 1, 1, -1], [0, -1, 0, 0]], np.int8))
    halves = common_items(*alternate_subjects(responses))
    for half in halves:
        assert list(half.item_ids) == ["i0", "i2"]
    assert list(split_half(responses, by_proportion_correct).item_ids) == ["i0", "i2"]


def test_the_correlation_is_that_of_ranks():
    # right answers of six items by two subjects in each half: ranks 1 2 3.5 3.5 5 6 and 2 1 3.5 3.5 6 5, by hand
    by_item = [(0, 1), (1, 0), (2, 2), (2, 2), (3, 4), (4, 3)]
    values = np.zeros((8, 6), np.int8)
    for item, counts in enumerate(by_item):
        for half, count in enumerate(counts):
            values[half : half + 2 * count : 2, item] = 1
    found = split_half(matrix(values), by_proportion_correct)
    # Pearson's r of the ranks: 1 - Σd²/(2Σ(r - 3.5)²) with Σd² = 4 and Σ(r - 3.5)² = 17
    assert found.spearman == pytest.approx(1 - 4 / (2 * 17))
    assert found.subjects_per_half == 4
    np.testing.assert_allclose(found.difficulty, -np.array(by_item).T / 4)
    assert split_half(matrix(values[[0, 0, 2, 2]]), by_proportion_correct).spearman == pytest.approx(1)
