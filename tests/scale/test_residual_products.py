"""p-values of sums of products of residuals: against all outcomes, and the family-wise error of all pairs of a test."""

import itertools

import numpy as np
import pytest
from scipy.special import expit

import irtjax
from irtjax import ResponseMatrix
from irtjax.kernels.models import probabilities
from irtjax.scale.residual_products import product_p_values


def test_against_all_outcomes():
    """Nine subjects, four products each: every sum that there can be, and how likely."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.9, (9, 2))
    sums, chances = np.zeros(1), np.ones(1)
    for one, other in p:
        products = [(y - one) * (z - other) for y, z in itertools.product((1, 0), repeat=2)]
        weights = [
            (one if y else 1 - one) * (other if z else 1 - other) for y, z in itertools.product((1, 0), repeat=2)
        ]
        sums, chances = np.add.outer(sums, products).ravel(), np.multiply.outer(chances, weights).ravel()
    order = np.argsort(sums)
    sums, chances = sums[order], chances[order]
    above = np.cumsum(chances[::-1])[::-1]
    for level in (0.2, 0.05, 0.01, 1e-3, 1e-4):
        at = int(np.searchsorted(-above, -level))
        found = product_p_values(p[:, :1], p[:, 1:], np.ones((9, 1)), sums[[at]])[0]
        assert found == pytest.approx(2 * above[at], rel=0.15)


def test_missing_answers_are_as_if_not_there():
    rng = np.random.default_rng(1)
    (one, other), seen, total = rng.uniform(0.1, 0.9, (2, 60, 1)), np.ones((60, 1)), np.array([2.0])
    seen[40:] = 0
    whole, part = product_p_values(one, other, seen, total), product_p_values(one[:40], other[:40], seen[:40], total)
    np.testing.assert_allclose(whole, part, rtol=1e-9)


def family_wise(p, seeds):
    """In how many data sets without local dependence a pair is found dependent at 5%."""
    found = []
    for seed in seeds:
        values = (np.random.default_rng(seed).random(p.shape) < p).astype(np.int8)
        ids = [np.array([f"{letter}{k}" for k in range(n)]) for letter, n in zip("si", values.shape, strict=True)]
        table = irtjax.local_dependence(irtjax.fit(ResponseMatrix(values, *ids), "2pl"))
        found.append((table["p_holm"] < 0.05).any())
    return np.mean(found)


@pytest.mark.slow
@pytest.mark.parametrize(("num_subjects", "num_items", "trials"), [(30, 40, 40), (100, 30, 40), (1000, 100, 6)])
def test_the_family_wise_error_is_at_most_the_level(num_subjects, num_items, trials):
    rng = np.random.default_rng(0)
    slope, difficulty = rng.lognormal(0, 0.4, num_items), 1.3 * rng.normal(size=num_items)
    p = expit(slope * (rng.normal(size=(num_subjects, 1)) - difficulty))
    assert family_wise(p, range(trials)) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / trials)


@pytest.mark.slow
def test_steep_items_of_a_leaderboard_are_not_dependent_by_chance(shared):
    """Slopes up to 10: residuals are nearly all 0, and Fisher's z of 22 of 4,950 pairs had been significant."""
    fit = irtjax.fit(shared / "llm_responses" / "metabench_arc.npz")
    p = np.asarray(probabilities(fit.parameters, np.asarray(fit.ability)[:, None])[0])
    assert family_wise(p, range(2)) == 0


@pytest.mark.slow
def test_planted_pairs_are_found():
    rng = np.random.default_rng(0)
    p = expit(1.3 * (rng.normal(size=(400, 1)) - rng.normal(size=20)))
    values = (rng.random(p.shape) < p).astype(np.int8)
    copied = rng.random(400) < 0.5
    values[copied, 1] = values[copied, 0]
    ids = [np.array([f"{letter}{k}" for k in range(n)]) for letter, n in zip("si", values.shape, strict=True)]
    table = irtjax.local_dependence(irtjax.fit(ResponseMatrix(values, *ids), "2pl"))
    assert set(table.iloc[0][["first", "second"]]) == {"i0", "i1"}
    assert table["p_holm"][0] < 1e-6 < 0.05 < table["p_holm"][1]
