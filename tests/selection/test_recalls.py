"""The geometric mean of recalls, by hand."""

import jax
import numpy as np
import pytest

from irtjax.selection.recalls import geometric_mean_of_recalls


@pytest.mark.parametrize(
    ("right", "expected"),
    [([1, 1, 1, 0, 1, 0], (0.75 * 0.5) ** 0.5), ([1, 1, 1, 1, 0, 0], 0), ([1, 1, 1, 1, 1, 1], 1)],
)
def test_by_hand(right, expected):
    labels = np.array([0, 0, 0, 0, 2, 2])  # no example of class 1
    found = jax.jit(geometric_mean_of_recalls, static_argnums=2)(np.array(right, bool), labels, 4)
    assert found == pytest.approx(expected)
