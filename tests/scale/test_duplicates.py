"""Items that are another one once more, and items that agree by chance."""

import numpy as np
import pytest
from references import simulated

from irtjax.scale.duplicates import duplicates

SLOPE, INTERCEPT = np.linspace(1.0, 2.0, 12), np.linspace(-1.5, 1.5, 12)


def with_copies(num_subjects=1000):
    values = simulated(5, SLOPE, INTERCEPT, num_subjects).astype(float)
    values[:, 3] = values[:, 2]
    values[:, 9] = 1 - values[:, 8]  # the reversed key
    values[:, 10] = values[:, 3]
    return values


def test_copies_are_found_once_each_with_the_first_of_them():
    found = duplicates(with_copies(), 0.9, 0.05)
    assert [(one.item, one.earlier, round(one.correlation)) for one in found] == [(3, 2, 1), (9, 8, -1), (10, 2, 1)]
    assert duplicates(with_copies(), 1.1, 0.05) == []


def test_grades_are_cut_in_halves():
    rng = np.random.default_rng(0)
    values = np.clip(np.round(rng.normal(3, 1, (300, 1)) + rng.normal(0, 1, (300, 6))), 1, 5)
    values[:, 4] = 6 - values[:, 1]
    values[:5, 4] = np.nan
    assert [one[:2] for one in duplicates(values, 0.9, 0.05)] == [(4, 1)]


def test_the_one_able_subject_makes_no_duplicates():
    """25 subjects: two tasks that the same one alone solved correlate perfectly."""
    values = np.zeros((25, 40))
    values[0], values[1, ::2], values[2, ::3] = 1, 1, 1
    assert np.corrcoef(values[:, 1], values[:, 5])[0, 1] == pytest.approx(1)
    assert duplicates(values, 0.9, 0.05) == []


@pytest.mark.parametrize("num_subjects", [30, 300])
def test_steep_items_of_one_ability_are_no_duplicates(num_subjects):
    for seed in range(20):
        values = simulated(seed, np.full(40, 4.0), np.repeat(np.linspace(-3, 3, 20), 2), num_subjects).astype(float)
        values = values[:, values.min(axis=0) != values.max(axis=0)]
        assert duplicates(values, 0.6, 0.05) == []
