"""The whole procedure: when there is a scale, when there is none, and why."""

import numpy as np
from references import matrix, simulated

from irtjax.scale.procedure import ScaleOptions, build_scale

OPTIONS = ScaleOptions(factors=False)


def test_a_short_test_of_few_subjects_has_a_scale_and_no_test_of_guessing():
    result = build_scale(matrix(simulated(0, np.full(6, 1.2), np.linspace(-1, 1, 6), 250)), OPTIONS)
    assert result.guessing is None
    assert result.eigenvalues.ratio < 3  # of few items, though there is one dimension
    assert result.eigenvalues.num_factors == 1
    assert result.no_scale == ""
    assert result.num_retained == 6
    assert result.decisions()["retained"].tolist() == [1] * 6


def test_two_abilities_or_none_make_no_scale():
    theta = np.random.default_rng(0).normal(size=(800, 2))
    halves = [simulated(k, np.full(6, 1.8), np.linspace(-1, 1, 6), theta=theta[:, k]) for k in range(2)]
    two = build_scale(matrix(np.concatenate(halves, axis=1)), ScaleOptions(factors=False, expert=("i003",)))
    assert two.no_scale.startswith("several dimensions: 2 eigenvalues are above those of independent items")
    assert two.scale is None
    decisions = two.decisions().set_index("item_id")["reason"]
    assert decisions["i003"] == "by reading"
    assert (decisions.drop("i003") == "no scale").all()
    noise = np.random.default_rng(1).integers(0, 2, (400, 8)).astype(np.int8)
    assert build_scale(matrix(noise), ScaleOptions(factors=False)).no_scale.startswith("no dimension")


def test_all_items_bad_but_a_few():
    slope = np.array([2.0, 2.0, 2.0, 0.1, 0.1, 0.1, 0.1, 0.1])
    result = build_scale(matrix(simulated(2, slope, np.zeros(8))), ScaleOptions(factors=False))
    assert result.no_scale == "3 items are left after round 1, a scale needs 4"
    assert set(result.removals["reason"]) == {"flat"}
