"""DIF by strata and by regression: against difR, our own references and statsmodels; null and planted DIF."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, kstest
from statsmodels.miscmodels.ordinal_model import OrderedModel
from statsmodels.stats.contingency_tables import StratifiedTable

import irtjax.groups.score_regression as module
from irtjax import InputError
from irtjax.groups.dif import dif
from irtjax.groups.mantel_haenszel import mantel_haenszel
from irtjax.groups.matching import of_matrix, purified
from irtjax.groups.score_regression import score_regression

SETS = "sim_dif2pl", "verbal_gender"


@pytest.fixture(scope="module", params=SETS)
def reference(request, shared):
    table = pd.read_csv(shared / "oracle2" / "data" / f"{request.param}.csv")
    folder = shared / "oracle2" / "c" / request.param
    return table.drop(columns="group"), table.group.to_numpy(), lambda name: pd.read_csv(folder / f"{name}.csv")


def simulated(seed, sizes=(150, 150), num_items=15, means=(0.0, 0.0), top=1, shift=0.0):
    """Responses of two groups, in which one item is harder by `shift` for the second."""
    rng = np.random.default_rng(seed)
    member = np.repeat(range(len(sizes)), sizes)
    theta = rng.normal(size=len(member)) + means[-1] * (member > 0)
    b = np.tile(np.linspace(-1.5, 1.5, num_items), (len(member), 1))
    b[:, num_items // 2] += shift * (member == 1)
    steps = np.linspace(-0.7, 0.7, top) if top > 1 else np.zeros(1)
    uniform = rng.random(b.shape)
    y = sum((uniform < 1 / (1 + np.exp(-(theta[:, None] - b - step)))).astype(float) for step in steps)
    return of_matrix(y, member, len(sizes))


def matrix(data):
    y = np.full((len(data.member), data.num_items), np.nan)
    y[data.subjects, data.items] = data.y
    return y


def every(data):
    return np.ones(data.num_items, bool)


def test_items_that_compare_nothing_have_no_regression():
    """One that the first group alone answered, and one that all have right."""
    y = matrix(simulated(4, num_items=6))
    y[150:, 2], y[:, 3] = np.nan, 1.0
    found = dif(pd.DataFrame(y), np.repeat(["a", "b"], 150), "logistic", purify=False)
    columns = ["statistic", "p_value", "p_adjusted", "effect", "log_odds", "p_uniform"]
    assert found.loc[[2, 3], columns].isna().all(axis=None)
    assert found.loc[[0, 1, 4, 5], columns].notna().all(axis=None)
    assert found.loc[[2, 3], "class"].tolist() == ["", ""]


def test_strata_are_those_of_the_references(reference):
    responses, groups, read = reference
    own, plain, purified = read("own_MH_ETS"), read("difR_MH_corrected"), read("difR_MH_corrected_purified")
    found = dif(responses, groups, "mantel_haenszel", purify=False)
    np.testing.assert_allclose(found.statistic, plain.MH, rtol=1e-9)
    np.testing.assert_allclose(found.p_adjusted, plain.p_BH, rtol=1e-9)
    np.testing.assert_allclose(found.effect, own.delta_MH, rtol=1e-9)
    assert found["class"].tolist() == own.class_ETS_with_significance.tolist()
    uncorrected = dif(responses, groups, "mantel_haenszel", purify=False, continuity=False)
    np.testing.assert_allclose(uncorrected.statistic, own.chi2_uncorrected, rtol=1e-9)
    found = dif(responses, groups, "mantel_haenszel")
    np.testing.assert_allclose(found.effect, purified.deltaMH, rtol=1e-9)
    # difR takes 1/2 off a sum that is less than 1/2 from its mean, too, and squares what is left
    compared = found.statistic > 0
    assert compared.sum() >= len(found) - 2
    np.testing.assert_allclose(found.statistic[compared], purified.MH[compared], rtol=1e-9)


def test_differences_of_means_are_those_of_standardisation(reference):
    responses, groups, read = reference
    data = of_matrix(responses.to_numpy(float), (groups == "foc").astype(int), 2)
    found = mantel_haenszel(data, every(data))
    np.testing.assert_allclose(found.difference, read("own_MH_ETS").std_p_dif_foc_minus_ref, atol=1e-12)
    np.testing.assert_allclose(found.log_odds_se**2, read("own_MH_ETS").log_alpha_var_RBG, rtol=1e-9)


def test_regressions_are_those_of_the_references(reference):
    responses, groups, read = reference
    own = read("own_logistic_DIF")
    found = dif(responses, groups, "logistic", purify=False)
    np.testing.assert_allclose(found.statistic, own.chi2_both, atol=1e-8)
    np.testing.assert_allclose(found.p_uniform, own.p_uniform, atol=1e-8)
    np.testing.assert_allclose(found.p_nonuniform, own.p_nonuniform, atol=1e-8)
    np.testing.assert_allclose(found.effect, own.dR2_both_nagelkerke, atol=1e-10)
    np.testing.assert_allclose(found.log_odds, own.b_group_uniform, atol=1e-5)
    for test, name in (("both", "both"), ("uniform", "udif")):
        if name == "udif" and len(responses.columns) == 24:
            continue  # difR stops with an error there
        purified = read(f"difR_logistic_{name}_LRT_purified")
        found = dif(responses, groups, "logistic", test=test)
        np.testing.assert_allclose(found.statistic, purified.stat, atol=1e-8)
        assert (~found.anchor).tolist() == purified.flagged.tolist()


def test_graded_items_are_regressed_as_by_statsmodels():
    data = simulated(1, top=3)
    found, y = score_regression(data, every(data)), matrix(data)[:, 4]
    score, group = matrix(data).sum(axis=1), data.member.astype(float)
    designs = [[score], [score, group], [score, group, score * group]]
    heights = [
        OrderedModel(y, np.stack(x, axis=1) - np.mean(x, axis=1), distr="logit")
        .fit(disp=0, method="bfgs", gtol=1e-9)
        .llf
        for x in designs
    ]
    np.testing.assert_allclose(found.uniform[4], 2 * (heights[1] - heights[0]), atol=1e-6)
    np.testing.assert_allclose(found.both[4], 2 * (heights[2] - heights[0]), atol=1e-6)


def test_strata_are_those_of_statsmodels_and_answers_that_are_missing_count_nowhere():
    data = simulated(2)
    y = np.where(np.random.default_rng(0).random((300, 15)) < 0.1, np.nan, matrix(data))
    found = mantel_haenszel(of_matrix(y, data.member, 2), every(data), continuity=False)
    known = ~np.isnan(y[:, 3])
    number = (~np.isnan(y)).sum(axis=1)
    score = np.round(np.nansum(y, axis=1) / number * y.shape[1])
    tables = []
    for s in np.unique(score[known]):
        rows = known & (score == s)
        tables.append([[((data.member[rows] == g) & (y[rows, 3] == k)).sum() for k in (1, 0)] for g in (0, 1)])
    tables = [table for table in tables if np.sum(table) > 1]
    expected = StratifiedTable(np.array(tables, float).transpose(1, 2, 0))
    np.testing.assert_allclose(found.statistic[3], expected.test_null_odds().statistic, rtol=1e-9)
    np.testing.assert_allclose(found.log_odds[3], expected.logodds_pooled, rtol=1e-9)
    np.testing.assert_allclose(found.log_odds_se[3], expected.logodds_pooled_se, rtol=1e-9)


def test_the_order_of_groups_changes_signs_and_nothing_else():
    data = simulated(3, shift=0.8)
    turned = data._replace(member=1 - data.member)
    one, other = (mantel_haenszel(each, every(data)) for each in (data, turned))
    np.testing.assert_allclose(one.statistic, other.statistic)
    np.testing.assert_allclose(one.delta, -other.delta)
    one, other = (score_regression(each, every(data)) for each in (data, turned))
    np.testing.assert_allclose(one.both, other.both, atol=1e-8)


@pytest.mark.parametrize("sizes", [(150, 150), (100, 100, 100)])
@pytest.mark.parametrize("top", [1, 3])
def test_p_values_are_uniform_without_dif_and_planted_dif_is_found(sizes, top):
    p_values = {"strata": [], "regression": []}
    for seed in range(20):
        data = simulated(seed, sizes, top=top)
        df = len(sizes) - 1
        p_values["strata"].append(chi2.sf(mantel_haenszel(data, every(data), continuity=False).statistic, df))
        p_values["regression"].append(chi2.sf(score_regression(data, every(data)).both, 2 * df))
    for found in p_values.values():
        assert kstest(np.concatenate(found), "uniform").pvalue > 0.001
    planted = simulated(0, sizes, top=top, shift=1.2)
    assert mantel_haenszel(planted, every(planted)).statistic.argmax() == 7
    assert score_regression(planted, every(planted)).both.argmax() == 7


def test_a_table_has_what_the_issue_of_a_benchmark_needs():
    data = simulated(4, shift=2.0)
    names = [f"i{i}" for i in range(15)]
    table = pd.DataFrame(matrix(data), index=[f"s{j}" for j in range(300)], columns=names)
    groups = pd.Series(np.where(data.member, "new", "old"), table.index)
    found = dif(table, groups, "logistic")
    assert found.columns[:6].tolist() == ["item_id", "statistic", "df", "p_value", "p_adjusted", "effect"]
    assert found.item_id[found.p_adjusted.argmin()] == "i7"
    assert dif(table, groups, "mantel_haenszel")["class"][7] == "C"
    assert found.log_odds[7] < 0
    assert not found.anchor[7]
    np.testing.assert_allclose(dif(table[::-1], groups, "logistic").statistic, found.statistic, atol=1e-8)


def test_the_default_is_the_score_test_of_any_model():
    data = simulated(4, shift=2.0)
    table = pd.DataFrame(matrix(data), columns=[f"i{i}" for i in range(15)])
    groups = np.where(data.member, "new", "old")
    found, by_1pl = dif(table, groups), dif(table, groups, model="1pl")
    for one in (found, by_1pl):
        assert one.p_adjusted.argmin() == 7
        assert one["class"][7] == "C"
        assert (one["class"] == "A").sum() > 10
    assert not np.allclose(found.statistic, by_1pl.statistic)


def test_purification_of_many_items_ends_where_few_come_or_go():
    calls = []

    def flagged(anchors):  # the first twenty, and one of the others, never the same
        calls.append(anchors)
        return (np.arange(400) < 20) | (np.arange(400) == 100 + len(calls))

    anchors, rounds = purified(400, flagged, purify=True)
    assert rounds == len(calls) == 2
    assert anchors is calls[-1]  # that the last tests were by
    assert np.flatnonzero(~anchors).tolist() == [*range(20), 101]


def test_a_group_that_is_always_right_is_tested_all_the_same():
    data = simulated(5)
    y = matrix(data)
    y[data.member == 1, 2] = 1.0
    found = score_regression(of_matrix(y, data.member, 2), every(data))
    assert np.isfinite(found.both).all()
    assert found.both.argmax() == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "mh"}, "unknown method 'mh', expected one of mantel_haenszel, logistic"),
        ({"test": "all"}, "unknown test 'all'"),
        ({"level": 0}, "`level` 0: expected a share between 0 and 1"),
        ({"groups": ["a"] * 40}, "all subjects are in 'a', expected two groups or more"),
        ({"responses": pd.DataFrame(np.linspace(0.1, 0.9, 160).reshape(40, 4))}, "counts or shares"),
    ],
)
def test_what_cannot_be_tested_is_told_in_a_line(options, message):
    data = simulated(6, (20, 20), 4)
    arguments = {"responses": matrix(data), "groups": ["a", "b"] * 20} | options
    with pytest.raises(InputError, match=message):
        dif(arguments.pop("responses"), arguments.pop("groups"), **arguments)


def test_regressions_in_blocks_are_those_of_all_items_at_once(monkeypatch):
    """Also beside an item that a group has always right, which goes on when the others are at rest."""
    data = simulated(4, top=2)
    y = matrix(data)
    y[data.member == 1, 3] = 2.0
    data = of_matrix(y, data.member, 2)
    whole = score_regression(data, every(data))
    monkeypatch.setattr(module, "ENTRIES", 1)  # an item at a time
    for found, expected in zip(score_regression(data, every(data)), whole, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
    assert np.isfinite(whole.log_odds).all()
    assert whole.log_odds[3] > 5
