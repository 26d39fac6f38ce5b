"""Comparisons of groups, against SciPy's own on arrays and numbers worked out by hand."""

import numpy as np
import pandas as pd
import pytest
from references import matrix, simulated
from scipy.stats import linregress

import irtjax
from irtjax import InputError
from irtjax.scale.groups import compare_groups, group_tests, level_means, levels, regression

RNG = np.random.default_rng(0)


def test_welch_by_hand():
    values = pd.Series([1.0, 2.0, 3.0, 4.0, 7.0, 9.0])
    table = group_tests(values, pd.Series(["a", "a", "a", "b", "b", "b"]))
    (row,) = table.itertuples()
    variance = 1 / 3 + (np.var([4, 7, 9], ddof=1)) / 3
    assert row.groups == "a - b"
    assert row.difference == pytest.approx(2 - 20 / 3)
    assert row.statistic == pytest.approx((2 - 20 / 3) / variance**0.5)
    assert row.low < row.difference < row.high


def test_three_groups_get_an_anova_and_adjusted_pairs():
    values = pd.Series(np.concatenate([RNG.normal(m, 1, 50) for m in (0, 0, 2)]))
    group = pd.Series(np.repeat(["x", "y", "z"], 50)).where(lambda s: s.index != 0)
    table = group_tests(values, group)
    assert table["test"].tolist() == ["ANOVA", "Welch", "Welch", "Welch"]
    assert table["degrees_of_freedom"][0] == "2, 146"
    assert table["p_value"][0] < 1e-10
    assert (table["p_holm"][1:] >= table["p_value"][1:]).all()
    assert table.set_index("groups").loc["x - y", "p_holm"] > 0.05


def test_treatments_against_a_baseline():
    values = pd.Series(RNG.normal(size=90) + np.repeat([0, 0, 1], 30))
    group = pd.Series(np.repeat(["base", "a", "b"], 30))
    table = group_tests(values, group, "base").set_index("groups")
    assert list(table.index) == ["a, b, base", "a - base", "b - base"]
    assert table.loc["b - base", "difference"] == pytest.approx(values[60:].mean() - values[:30].mean())
    subjects = pd.DataFrame({"group": group, "age": RNG.normal(size=90)}).set_axis([f"s{j}" for j in range(90)])
    found = compare_groups({"ability": values.to_numpy()}, subjects.index, subjects, "base")
    assert found["regression_ability"]["term"].tolist() == ["intercept", "age", "group_a", "group_b"]
    for wrong, message in ((subjects, "no subject of the baseline 'c'"), (subjects[["age"]], "no column group")):
        with pytest.raises(InputError, match=message):
            compare_groups({"ability": values.to_numpy()}, subjects.index, wrong, "c")


def test_means_of_every_level():
    who = pd.Index([f"s{j}" for j in range(40)])
    subjects = pd.DataFrame({"age": np.arange(40.0), "native": np.tile([1.0, 0.0, np.nan, 1.0], 10)}, index=who)
    words = levels(who, subjects)
    assert list(words["age"].cat.categories) == ["0 to 9", "10 to 19", "20 to 29", "30 to 39"]
    table = level_means({"ability": np.arange(40.0)}, words).set_index(["covariate", "level"])
    assert table.loc[("age", "10 to 19"), "mean_ability"] == 14.5
    assert table.loc[("native", "1"), "n"] == 20
    assert table.loc[("native", "0"), "n"] == 10
    assert table["sd_ability"].notna().all()


def test_regression_is_that_of_one_predictor_and_codes_categories():
    x = RNG.normal(size=80)
    y = pd.Series(1 + 2 * x + RNG.normal(size=80))
    table = regression(y, pd.DataFrame({"x": x})).set_index("term")
    expected = linregress(x, y)
    assert table.loc["x", "coefficient"] == pytest.approx(expected.slope)
    assert table.loc["x", "standard_error"] == pytest.approx(expected.stderr)
    assert table.loc["x", "p_value"] == pytest.approx(expected.pvalue)
    both = regression(y, pd.DataFrame({"x": x, "who": np.repeat(["a", "b"], 40)}))
    assert both["term"].tolist() == ["intercept", "x", "who_b"]


def test_scores_and_abilities_are_compared_by_subject_id():
    theta = np.repeat([-1.0, 1.0], 100)
    fit = irtjax.fit(matrix(simulated(0, np.full(6, 1.5), np.linspace(-1, 1, 6), theta=theta)), "2pl")
    who = pd.Index([f"s{j}" for j in range(200)])
    subjects = pd.DataFrame({"group": np.repeat(["low", "high"], 100), "age": RNG.normal(40, 9, 200)}, index=who)
    values = {"raw_score": fit.responses.values.sum(axis=1), "ability": fit.ability}
    tables = compare_groups(values, fit.responses.subject_ids, subjects.sample(frac=1, random_state=0))
    assert list(tables) == ["groups_raw_score", "regression_raw_score", "groups_ability", "regression_ability"]
    difference = values["raw_score"][100:].mean() - values["raw_score"][:100].mean()
    assert tables["groups_raw_score"]["difference"][0] == pytest.approx(difference)
    assert tables["groups_ability"]["difference"][0] > 1
    assert tables["regression_ability"]["p_value"][1] > 0.01
    assert list(compare_groups(values, who, subjects[["group"]])) == ["groups_raw_score", "groups_ability"]
    with pytest.raises(InputError, match="no row for any of the 200 subjects, such as 's0': compare the ids"):
        compare_groups(values, who, subjects.set_axis(who + "x"))


def test_what_cannot_be_compared():
    with pytest.raises(InputError, match="groups of subjects to compare: 1, at least two"):
        group_tests(pd.Series([1.0, 2.0]), pd.Series(["a", "a"]))
    with pytest.raises(InputError, match="group 'b' has 1 subject"):
        group_tests(pd.Series([1.0, 2.0, 3.0]), pd.Series(["a", "a", "b"]))
    four = pd.Series([1.0, 2.0, 3.0, 5.0])
    for covariates, message in (
        ({"x": [1.0, 2.0, 3.0, np.inf]}, "covariate 'x' is infinite"),
        ({"x": [1.0, 1.0, 1.0, 1.0]}, "covariate 'x' is constant or follows from the others"),
        ({"x": [1.0, 2.0, 1.0, 4.0], "y": [2.0, 4.0, 2.0, 8.0]}, "covariate 'y' is constant or follows"),
    ):
        with pytest.raises(InputError, match=message):
            regression(four, pd.DataFrame(covariates))
    with pytest.raises(InputError, match="too few for 2 terms"):
        regression(pd.Series([1.0, 2.0]), pd.DataFrame({"x": [1.0, 2.0]}))
