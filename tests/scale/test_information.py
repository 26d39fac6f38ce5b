"""Precision, short forms and score tables."""

import numpy as np
import pytest
from references import matrix, simulated
from scipy.stats import norm

import irtjax
from irtjax import InputError
from irtjax.kernels.models import ItemParameters
from irtjax.scale.confirmation import confirm
from irtjax.scale.curves import empirical_curves
from irtjax.scale.information import (
    dominant,
    information_table,
    marginal_reliability,
    range_above,
    score_table,
    short_form,
)

SLOPE, INTERCEPT = np.array([0.8, 1.5, 2.5, 1.2, 0.9, 2.0]), np.array([0.0, 4.5, -1.0, 0.5, -0.2, 1.0])
NONE = np.full(6, np.inf)
ITEMS = ItemParameters(SLOPE[:, None], INTERCEPT, -NONE, NONE)


def test_the_dominant_item_and_where_there_is_enough_information():
    ids = np.array(list("abcdef"))
    table = information_table(ITEMS, ids)
    best = table["test"].idxmax()
    assert ids[dominant(ITEMS)] == table.loc[best, ids].astype(float).idxmax()
    low, high = range_above(table, 1.0)
    inside = table["theta"].between(low, high)
    assert (table["test"][inside] > 1).all()
    assert (table["test"][~inside] <= 1).all()
    assert range_above(table, 100.0) is None


def test_information_by_its_formula():
    table = information_table(ITEMS, np.array(list("abcdef")), np.array([-1.0, 0.0, 2.0]))
    p = 1 / (1 + np.exp(-(np.outer([-1.0, 0.0, 2.0], SLOPE) + INTERCEPT)))
    np.testing.assert_allclose(table[list("abcdef")], SLOPE**2 * p * (1 - p))
    np.testing.assert_allclose(table["standard_error"], table[list("abcdef")].sum(axis=1) ** -0.5)


def test_reliability_is_what_simulated_abilities_have():
    theta = np.random.default_rng(0).normal(size=20_000)
    items = ItemParameters(np.full((30, 1), 1.5), np.linspace(-2, 2, 30), -np.full(30, np.inf), np.full(30, np.inf))
    values = simulated(1, np.full(30, 1.5), np.linspace(-2, 2, 30), theta=theta)
    nodes = np.linspace(-6, 6, 121)
    p = 1 / (1 + np.exp(-(np.outer(nodes, np.full(30, 1.5)) + np.linspace(-2, 2, 30))))
    joint = np.exp(values @ np.log(p).T + (1 - values) @ np.log(1 - p).T) * norm.pdf(nodes)
    eap = joint @ nodes / joint.sum(1)
    assert marginal_reliability(items) == pytest.approx(np.corrcoef(eap, theta)[0, 1] ** 2, abs=0.01)


def test_short_forms():
    by_information = short_form(ITEMS, 2)
    assert by_information.tolist() == [2, 5]  # the steep but far-off item 1 is worth little from -2 to 2
    assert short_form(ITEMS, 3, "slope").tolist() == [2, 5, 1]
    assert short_form(ITEMS, 1, ability_range=(-3.5, -2.5)).tolist() == [1]
    whole = marginal_reliability(ITEMS)
    assert marginal_reliability(ITEMS.take(by_information)) < whole
    for size in (0, 7):
        with pytest.raises(InputError, match=f"a short form of {size} items, expected 1 to 6"):
            short_form(ITEMS, size)
    with pytest.raises(InputError, match="unknown rule 'best'"):
        short_form(ITEMS, 2, "best")


def test_score_table_by_enumeration():
    table = score_table(ITEMS)
    nodes = np.linspace(-6, 6, 61)
    weights = norm.pdf(nodes) / norm.pdf(nodes).sum()
    p = 1 / (1 + np.exp(-(np.outer(nodes, SLOPE) + INTERCEPT)))
    patterns = np.array([[(k >> i) & 1 for i in range(6)] for k in range(64)])
    joint = np.prod(np.where(patterns[:, None] == 1, p[None], 1 - p[None]), axis=2) * weights
    for score in range(7):
        of_score = joint[patterns.sum(1) == score].sum(0)
        row = table.loc[score]
        assert row["share"] == pytest.approx(of_score.sum())
        assert row["ability"] == pytest.approx(of_score @ nodes / of_score.sum())
        variance = of_score @ nodes**2 / of_score.sum() - row["ability"] ** 2
        assert row["ability_se"] == pytest.approx(variance**0.5)
    assert table["ability"].is_monotonic_increasing


def test_a_scale_is_confirmed_on_fresh_subjects_and_another_is_not():
    slope, intercept = np.linspace(1, 2, 10), np.linspace(-1, 1, 10)
    built = irtjax.fit(matrix(simulated(0, slope, intercept, 2000)), "2pl").items()
    theta = np.random.default_rng(1).normal(0.5, 1.2, 1500)
    fresh = simulated(2, slope, intercept, theta=theta)
    found = confirm(matrix(fresh), built)
    assert found.fit.population.mean[0] == pytest.approx(0.5, abs=0.12)
    assert found.fit.population.sd[0] == pytest.approx(1.2, abs=0.12)
    assert found.overall.degrees_of_freedom == 55 - 2
    assert found.overall.rmsea < 0.03
    assert not (found.item_fit["p_holm"] < 0.01).any()
    fresh[:, 3] = np.random.default_rng(3).integers(0, 2, 1500)
    broken = confirm(matrix(fresh), built)
    assert broken.item_fit["p_holm"].idxmin() == 3
    assert broken.item_fit["p_holm"][3] < 1e-6
    assert broken.item_fit["rmsd"].idxmax() == 3
    assert broken.item_fit["rmsd"][3] > 0.1
    assert broken.overall.p_value < 1e-6
    fresh[:, 4] = 1
    some = confirm(matrix(fresh[:, :9]), built)
    assert some.left_out == ("i004", "i009")
    assert some.fit.responses.num_items == len(some.item_fit) == 8
    with pytest.raises(InputError, match="3 items of the scale have right and wrong answers, its confirmation needs 4"):
        confirm(matrix(fresh[:, :3]), built)


@pytest.mark.slow
def test_the_tests_of_a_confirmation_keep_their_level_where_the_scale_is_known():
    slope, intercept = np.linspace(1, 2, 8), np.linspace(-1, 1, 8)
    items = irtjax.fit(matrix(simulated(0, slope, intercept, 800)), "2pl").items()  # its estimates are replaced
    items["discrimination"], items["difficulty"] = slope, -intercept / slope
    found = [confirm(matrix(simulated(seed, slope, intercept, 800)), items) for seed in range(1, 16)]
    assert np.mean([one.overall.p_value < 0.05 for one in found]) <= 0.2
    for tables in ("item_fit", "dependence"):
        assert np.mean(np.concatenate([getattr(one, tables)["p_value"] for one in found]) < 0.05) < 0.09
    assert max(one.item_fit["rmsd"].max() for one in found) < 0.08


def test_empirical_curves_follow_the_truth():
    slope, intercept = np.full(25, 1.5), np.linspace(-2, 2, 25)
    theta = np.random.default_rng(0).normal(size=4000)
    values = simulated(1, slope, intercept, theta=theta)
    other = (np.random.default_rng(2).random(4000) < 0.3 + 0.4 * (theta > 0)).astype(np.int8)
    fit = irtjax.fit(matrix(values), "2pl", standard_errors=False)
    left_out = simulated(3, np.array([1.5, -1.0]), np.array([0.5, 0.0]), theta=theta)
    curves = empirical_curves(fit, matrix(np.concatenate([values, other[:, None], left_out], axis=1)))
    p = 1 / (1 + np.exp(-(1.5 * curves.theta + intercept[12])))
    middle = np.abs(curves.theta) < 1.5
    np.testing.assert_allclose(curves.share[middle, 12], p[middle], atol=0.05)
    assert (curves.low[middle] <= curves.share[middle]).all()
    assert (curves.high[middle] >= curves.share[middle]).all()
    step = curves.share[:, 25]
    assert step[np.argmin(np.abs(curves.theta + 1.2))] == pytest.approx(0.3, abs=0.06)
    assert step[np.argmin(np.abs(curves.theta - 1.2))] == pytest.approx(0.7, abs=0.06)
    assert np.isnan(curves.share[0]).all()  # nobody is there
    assert 0.4 < curves.model.slope[25, 0] < 1.2
    np.testing.assert_array_equal(curves.model.slope[:25], fit.parameters.slope)
    # of items that are not in the scale as well
    assert curves.model.slope[26:, 0] == pytest.approx([1.5, -1.0], abs=0.15)
    assert curves.model.intercept[26:] == pytest.approx([0.5, 0.0], abs=0.1)
