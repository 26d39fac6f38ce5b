"""Small forms: what each way to choose promises."""

import dataclasses

import numpy as np
import pytest
from benchmarks_at_hand import calibrated_bank

from irtjax.errors import InputError
from irtjax.evaluation.forms import WAYS, choose_form, quotas
from irtjax.kernels.models import information


@pytest.fixture(scope="module")
def bank():
    return calibrated_bank()


@pytest.mark.parametrize("way", WAYS)
def test_a_form_has_so_many_items_once_and_weights_that_sum_to_one(bank, way):
    categories = np.repeat(["b", "a", "c"], [12, 8, 4])
    for of_bank, number in ((bank, 7), (bank, 24), (dataclasses.replace(bank, categories=categories), 6)):
        form = choose_form(of_bank, number, way)
        assert np.unique(form.items).size == form.items.size == number
        np.testing.assert_allclose(form.weights.sum(), 1)
        assert (form.weights > 0).all()
    np.testing.assert_array_equal(np.unique(categories[form.items], return_counts=True)[1], [2, 3, 1])


def test_quotas_are_shares_by_largest_remainders():
    groups = np.repeat([0, 1, 2], [50, 30, 20])
    np.testing.assert_array_equal(quotas(groups, 10), [5, 3, 2])
    np.testing.assert_array_equal(quotas(groups, 3), [1, 1, 1])  # 1.5, 0.9, 0.6
    assert quotas(groups, 7).sum() == 7


def test_a_stratified_form_has_one_item_of_each_stratum_of_difficulty(bank):
    share = bank.answers.mean(axis=0)
    form = choose_form(bank, 6, "stratified", seed=3)
    rank = np.argsort(np.argsort(-share, kind="stable"))
    np.testing.assert_array_equal(np.sort(rank[form.items] // 4), np.arange(6))
    np.testing.assert_allclose(form.weights, 1 / 6)


def test_anchors_stand_for_clusters(bank):
    form = choose_form(bank, 24, "anchors")
    np.testing.assert_allclose(form.weights, 1 / 24)  # every item is a cluster of its own
    form = choose_form(bank, 1, "anchors")
    points = np.column_stack([bank.fit.parameters.slope[:, 0], bank.fit.parameters.intercept])
    away = ((points - points.mean(axis=0)) ** 2).sum(axis=1)
    assert form.items[0] == away.argmin()


def test_informative_items_are_those_of_most_information_over_the_subjects(bank):
    known = np.asarray(information(bank.fit.parameters, bank.fit.ability[:, None])).mean(axis=0)
    np.testing.assert_array_equal(choose_form(bank, 5, "information").items, np.argsort(-known)[:5])


def test_seeds_decide_random_forms_and_nothing_else(bank):
    for way in WAYS:
        one, again, other = (choose_form(bank, 6, way, seed).items for seed in (0, 0, 1))
        np.testing.assert_array_equal(one, again)
        if way in ("variance", "information"):
            np.testing.assert_array_equal(one, other)
    assert set(choose_form(bank, 6, "random", 0).items) != set(choose_form(bank, 6, "random", 1).items)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((25, "random"), "`num_items` 25, expected a whole number, 1 to 24"),
        ((0, "random"), "`num_items` 0"),
        ((5, "best"), "`way` 'best', expected one of random, stratified"),
    ],
)
def test_what_cannot_be_chosen_is_refused(bank, arguments, message):
    with pytest.raises(InputError, match=message):
        choose_form(bank, *arguments)
