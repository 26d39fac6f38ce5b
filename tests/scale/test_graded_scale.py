"""A scale of graded items: planted faults, score tables by brute force, items that are reversed."""

import itertools

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm
from simulation import simulate_grades

from irtjax import InputError
from irtjax.responses.from_arrays import of_counts, of_grades
from irtjax.responses.matrix import completed
from irtjax.responses.reversing import reversed_items
from irtjax.responses.scaled import Scale
from irtjax.scale.elimination import Rules, before_fitting, eliminate
from irtjax.scale.information import lowest_score, marginal_reliability, score_table, short_form
from irtjax.scale.procedure import ScaleOptions, build_scale
from irtjax.scoring.family_items import known_items


def grades_of(table):
    return of_grades(table.to_numpy(float), table.index.astype(str).tolist(), table.columns.tolist())


def test_scores_stand_for_abilities_as_by_all_patterns():
    _, _, items = simulate_grades(1, 3, seed=4, top=2)
    known = known_items(items.set_index("item_id"))
    theta = np.linspace(-6, 6, 1201)
    density = norm.pdf(theta) / norm.pdf(theta).sum()
    p = []
    for _, row in items.iterrows():
        above = [expit(row.discrimination * (theta - row[f"threshold_{k}"])) for k in (1, 2)]
        p.append(-np.diff([np.ones_like(theta), *above, np.zeros_like(theta)], axis=0))
    joint = np.zeros((7, len(theta)))
    for pattern in itertools.product(range(3), repeat=3):
        joint[sum(pattern)] += density * p[0][pattern[0]] * p[1][pattern[1]] * p[2][pattern[2]]
    found = score_table(known)
    assert found.score.tolist() == list(range(3, 10))  # sums of grades 1 to 3
    np.testing.assert_allclose(found.share, joint.sum(axis=1), atol=1e-6)
    mean = joint @ theta / joint.sum(axis=1)
    np.testing.assert_allclose(found.ability, mean, atol=1e-5)
    variance = joint @ theta**2 / joint.sum(axis=1) - mean**2
    assert marginal_reliability(known) == pytest.approx(1 - joint.sum(axis=1) @ variance, abs=1e-5)
    assert short_form(known, 1, "slope")[0] == items.discrimination.argmax()
    assert lowest_score([Scale((1, 2)), Scale((0, 1, 2))]) == 1
    assert lowest_score([Scale((1, 3)), Scale((0, 1, 2))]) == 0


def test_items_are_reversed_and_missing_grades_stay_missing():
    given = of_grades(np.array([[1.0, 3], [2, np.nan], [4, 1]]), ["a", "b", "c"], ["x", "y"], labels=[1, 2, 3, 4])
    turned = reversed_items(given, ["y"])
    assert turned.worths()[:, 1].tolist()[::2] == [2, 4]
    assert np.isnan(turned.worths()[1, 1])
    np.testing.assert_array_equal(turned.worths()[:, 0], given.worths()[:, 0])
    with pytest.raises(InputError, match=r"drop these subjects \(`missing=drop`\), or use what they answered"):
        completed(given)
    with pytest.raises(InputError, match="`missing=wrong` is of right and wrong answers"):
        completed(given, "wrong")
    assert completed(given, "drop").subject_ids.tolist() == ["a", "c"]
    with pytest.raises(InputError, match="item 'x' has counts or shares"):
        eliminate(of_counts(np.ones((3, 2)), 2, ["a", "b", "c"], ["x", "y"]))


def test_the_same_item_twice_goes_before_any_fit():
    table, _, _ = simulate_grades(200, 5, seed=1)
    table["again"], table["alike"] = table["i2"].where(np.arange(200) > 4, 1), 2
    removals = before_fitting(grades_of(table), ["i4"]).set_index("item_id")
    assert removals.reason.to_dict() == {"i4": "by reading", "alike": "answered alike by all", "again": "duplicate"}
    assert removals.statistic["again"] == pytest.approx(table["i2"].corr(table["again"]))


@pytest.fixture(scope="module")
def planted():
    """Grades of ten items and of three bad ones."""
    table, theta, _ = simulate_grades(700, 10, seed=6)
    rng = np.random.default_rng(0)
    table["flat"] = rng.integers(1, 5, 700)
    table["reversed"] = 5 - np.clip(np.round(2.5 + theta + rng.normal(size=700)), 1, 4).astype(int)
    table["echo"] = table["i3"].where(
        rng.random(700) < 0.6, np.clip(np.round(2.5 + theta + rng.normal(size=700)), 1, 4)
    )
    return grades_of(table.astype(int))


@pytest.mark.slow
def test_planted_faults_are_found(planted):
    result = build_scale(planted, ScaleOptions(Rules(communality=0.05), factors=False))
    removals = result.removals.set_index("item_id")
    assert removals.reason[["flat", "reversed"]].tolist() == ["flat", "reversed"]
    (dependent,) = removals.index[removals.reason == "dependent"]
    assert {dependent, removals.partner[dependent]} == {"echo", "i3"}
    assert removals.statistic[dependent] > 0.2
    assert len(removals.drop(["flat", "reversed", dependent])) <= 1
    assert result.overall.name == "C2"
    assert result.overall.rmsea < 0.04
    assert result.decisions().mean_response.between(1, 4).all()
    right_way = build_scale(reversed_items(planted, ["reversed"]), ScaleOptions(factors=False, model="gpcm"))
    assert "reversed" not in set(right_way.removals.item_id)
    assert right_way.scale.types == ("gpcm",) * right_way.num_retained


@pytest.mark.slow
def test_two_traits_are_no_scale():
    tables = [simulate_grades(500, 6, seed=seed)[0] for seed in (1, 2)]
    both = tables[0].join(tables[1].add_prefix("z"))
    result = build_scale(grades_of(both), ScaleOptions())
    assert result.no_scale.startswith("several dimensions: 2 eigenvalues are above those of independent items")
    assert result.factors.num_factors == 2
    loadings = result.loadings.set_index("item_id")[["oblimin_1", "oblimin_2"]].abs()
    assert set(loadings.iloc[:6].idxmax(axis=1)) != set(loadings.iloc[6:].idxmax(axis=1))
