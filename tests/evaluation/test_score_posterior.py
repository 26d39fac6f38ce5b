"""Moments of the score on a bank, against sums over all that the unseen answers can be."""

import dataclasses
import itertools

import numpy as np
import pytest
from benchmarks_at_hand import calibrated_bank

from irtjax.evaluation.score_posterior import score_posterior
from irtjax.responses.matrix import MISSING


@pytest.fixture(scope="module")
def bank():
    return calibrated_bank()


def without_errors(fit):
    """The fit as if its parameters were known."""
    zero = {name: np.zeros_like(fit.item_columns[name]) for name in ("difficulty_se", "discrimination_se")}
    return dataclasses.replace(fit, item_columns=fit.item_columns | zero)


def test_mean_and_deviation_are_those_of_all_that_unseen_answers_can_be(bank):
    fit, unseen = without_errors(bank.fit), np.arange(4)
    values = bank.responses.values[:5].copy()
    values[:, unseen] = MISSING
    found = score_posterior(fit, values)
    nodes = np.linspace(-9, 9, 20001)
    a, b = fit.item_columns["discrimination"], fit.item_columns["difficulty"]
    p = 1 / (1 + np.exp(-a * (nodes[:, None] - b)))
    mean, sd = (float(x[0]) for x in fit.population)
    for j, row in enumerate(values):
        seen = row != MISSING
        density = np.exp(-0.5 * ((nodes - mean) / sd) ** 2) * np.where(row == 1, p, 1 - p)[:, seen].prod(axis=1)
        density /= density.sum()
        scores, chances = [], []
        for answers in itertools.product((0, 1), repeat=unseen.size):
            chances.append(density @ np.where(np.array(answers) == 1, p[:, unseen], 1 - p[:, unseen]).prod(axis=1))
            scores.append((row[seen].sum() + sum(answers)) / row.size)
        first = np.dot(chances, scores)
        np.testing.assert_allclose(sum(chances), 1, rtol=1e-9)
        np.testing.assert_allclose(found.mean[j], first, rtol=1e-6)
        np.testing.assert_allclose(found.sd[j], np.sqrt(np.dot(chances, (scores - first) ** 2)), rtol=1e-4)
        theta = density @ nodes
        np.testing.assert_allclose(found.ability[j], theta, atol=1e-5)
        at = 1 / (1 + np.exp(-a[unseen] * (theta - b[unseen])))
        np.testing.assert_allclose(found.at_ability[j], (row[seen].sum() + at.sum()) / row.size, rtol=1e-5)


def test_nothing_is_uncertain_where_all_answers_are_seen(bank):
    found = score_posterior(bank.fit, bank.responses.values)
    np.testing.assert_allclose(found.mean, bank.responses.values.mean(axis=1))
    np.testing.assert_allclose(found.sd, 0, atol=1e-9)


def test_each_subject_may_have_seen_other_items(bank):
    values = bank.responses.values[:6].copy()
    values[:3, ::2], values[3:, 1::2] = MISSING, MISSING
    together = score_posterior(bank.fit, values)
    for rows in (slice(0, 3), slice(3, 6)):  # in these all subjects have seen the same
        apart = score_posterior(bank.fit, values[rows])
        for one, other in zip(together, apart, strict=True):
            np.testing.assert_allclose(one[rows], other, rtol=1e-9)


def test_errors_of_items_widen_the_score(bank):
    values = bank.responses.values[:6].copy()
    values[:, 4:] = MISSING
    known, estimated = score_posterior(without_errors(bank.fit), values), score_posterior(bank.fit, values)
    np.testing.assert_array_equal(known.mean, estimated.mean)
    assert (estimated.sd > known.sd).all()


def test_narrow_posteriors_get_nodes_of_their_own(bank):
    steep = bank.fit.parameters._replace(
        slope=400 * bank.fit.parameters.slope, intercept=400 * bank.fit.parameters.intercept
    )
    columns = bank.fit.item_columns | {"discrimination": 400 * bank.fit.item_columns["discrimination"]}
    fit = without_errors(dataclasses.replace(bank.fit, parameters=steep, item_columns=columns))
    order = np.argsort(fit.item_columns["difficulty"])
    values = np.full((1, order.size), MISSING, np.int8)
    values[0, order[[0, 9, 14]]] = 1, 1, 0  # between the tenth and the fifteenth item
    found = score_posterior(fit, values)
    assert 10 / order.size <= found.mean[0] <= 14 / order.size
    middle = order[10:14]
    edges = np.sort(fit.item_columns["difficulty"][order[9:15]])
    nodes = np.linspace(edges[0], edges[-1], 200001)
    density = np.exp(-0.5 * nodes**2)
    right = (nodes[:, None] > fit.item_columns["difficulty"][middle]).sum(axis=1)
    expected = 10 + (density @ right) / density.sum()
    np.testing.assert_allclose(found.mean[0] * order.size, expected, atol=0.01)
