"""Designs in which each subject is asked some blocks of items."""

import itertools

import numpy as np
import pytest
from references import matrix, simulated

from irtjax import InputError
from irtjax.scale.elimination import Rules
from irtjax.scale.forms import forms, patterns, require_design
from irtjax.scale.procedure import ScaleOptions, build_scale


def blocks(values, number=3):
    """Each subject is asked all blocks but one."""
    values = np.array(values)
    values[np.arange(len(values))[:, None] % number == np.arange(values.shape[1]) % number] = -1
    return values


def test_complete_responses_are_one_form_however_few():
    (form,) = forms(np.ones((5, 3), np.int8))
    assert form.values.shape == (5, 3)
    assert form.items.tolist() == [0, 1, 2]


def test_forms_hold_every_answer_of_their_subjects():
    values = blocks(simulated(0, np.ones(6), np.zeros(6), 100))
    values[7, 0] = values[7, 3] = -1  # asked something else than all others
    found = forms(values)
    assert [len(form.values) for form in found] == [34, 33, 32]
    assert sum((form.values >= 0).sum() for form in found) == (np.delete(values, 7, axis=0) >= 0).sum()
    rows = np.concatenate([rows for rows, _ in patterns(values)])
    assert sorted(rows) == list(range(100))


def test_what_is_no_design():
    values = simulated(0, np.ones(6), np.zeros(6), 200)
    apart = values.copy()
    apart[:100, :3] = apart[100:, 3:] = -1
    with pytest.raises(
        InputError, match="0 subjects answered both item 'i000' and item 'i003' \\(1 of 9 such pairs\\)"
    ):
        require_design(matrix(apart))
    scattered = np.where(np.random.default_rng(0).random((200, 6)) < 0.5, -1, values)
    with pytest.raises(InputError, match="missing answers follow no design"):
        require_design(matrix(scattered))


@pytest.mark.slow
def test_a_scale_from_two_blocks_of_three_finds_the_bad_items():
    slope = np.full(15, 1.8)
    slope[4] = 0.0
    values = simulated(3, slope, np.linspace(-1, 1, 15), 1500)
    values[:, 9] = np.where(np.random.default_rng(0).random(1500) < 0.85, values[:, 8], 1 - values[:, 8])
    options = ScaleOptions(factors=False, by_design=True)
    result = build_scale(matrix(blocks(values)), options)
    removed = result.removals.set_index("item_id")
    assert removed.loc["i004", "reason"] == "flat"
    assert set(removed.index) - {"i004"} <= {"i008", "i009"}
    assert result.eigenvalues.num_factors == 1
    assert result.overall.rmsea < 0.02
    assert result.overall.degrees_of_freedom > 0
    with pytest.raises(InputError, match="missing"):
        build_scale(matrix(blocks(values)), ScaleOptions(factors=False))


def test_a_form_none_of_whose_items_are_left_has_no_part():
    values = np.array(simulated(0, np.full(12, 1.8), np.linspace(-1, 1, 12), 1200))
    values[:400, 8:] = values[400:800, :4] = values[800:, 4:8] = -1
    values = np.concatenate([values, np.full((50, 12), -1, np.int8)])
    values[1200:, :2] = 1  # asked two items only
    options = ScaleOptions(factors=False, by_design=True, expert=("i000", "i001"))
    result = build_scale(matrix(values), options)
    assert result.num_retained == 10
    assert result.responses.num_subjects == 1250
    assert result.scale.fit.responses.num_subjects == 1200


@pytest.mark.slow
def test_items_that_depend_as_three_are_removed_on_request():
    """An even number of right answers to three items is likelier than the ability makes it; to two it is not."""
    rng = np.random.default_rng(0)
    theta = rng.normal(size=9000)
    values = simulated(0, np.full(10, 1.5), np.linspace(-1, 1, 10), theta=theta)
    cells = np.array(list(itertools.product((0, 1), repeat=3)))
    p = 1 / (1 + np.exp(-1.5 * theta[:, None, None]))
    probability = np.where(cells == 1, p, 1 - p).prod(axis=2)
    probability += 0.9 * probability.min(axis=1, keepdims=True) * np.where(cells.sum(axis=1) % 2 == 0, 1, -1)
    drawn = (rng.random((9000, 1)) > probability.cumsum(axis=1)).sum(axis=1)
    values[:, 4:7] = cells[drawn]
    for triplets, reasons in ((False, set()), (True, {"dependent triplet"})):
        rules = Rules(level=1e-4, triplets=triplets)
        found = build_scale(matrix(values), ScaleOptions(rules, factors=False))
        assert set(found.removals["reason"]) == reasons
    (removal,) = found.removals.itertuples()
    assert {removal.item_id, *removal.partner.split(", ")} == {"i004", "i005", "i006"}
