"""DIF by likelihood ratios and Wald tests against R's mirt: two simulated groups with four items that differ."""

import types

import numpy as np
import pandas as pd
import pytest

import irtjax
from irtjax import ResponseMatrix
from irtjax.errors import InputError
from irtjax.estimation.grouping import Membership
from irtjax.groups import model_tests
from irtjax.groups.choices import BY_MODEL

WITH_DIF = ["i04", "i09", "i14", "i18"]


@pytest.fixture(scope="module")
def folder(shared):
    path = shared / "oracle2" / "c" / "sim_dif2pl"
    if not path.is_dir():
        pytest.skip("needs ../shared/oracle2")
    return path


@pytest.fixture(scope="module")
def data(folder):
    table = pd.read_csv(folder.parents[1] / "data" / "sim_dif2pl.csv")
    return table.iloc[:, 1:], table.iloc[:, 0].to_numpy()


@pytest.mark.slow
@pytest.mark.parametrize(("test", "file"), [("both", "DIF_lrt_drop_all"), ("uniform", "DIF_lrt_drop_intercepts")])
def test_each_item_free_against_all_the_same(data, folder, test, file):
    known = pd.read_csv(folder / f"{file}.csv")
    found = irtjax.dif(*data, "likelihood_ratio", test=test, purify=False)
    np.testing.assert_allclose(found["statistic"], known["X2"], atol=1e-4)
    assert (found["df"] == known["df"]).all()


def test_the_three_tests_agree():
    """On two groups of 400, with a shift of the last of five items; three are anchors."""
    rng = np.random.default_rng(0)
    second = np.repeat([0, 1], 400)
    shift = np.outer(0.8 * second, [0, 0, 0, 0, 1])
    p = 1 / (1 + np.exp(-1.5 * (rng.normal(size=(800, 1)) - shift - np.array([-1.0, 0, 1, 0.3, -0.3]))))
    answers = pd.DataFrame((rng.random(p.shape) < p).astype(int), columns=list("abcde"))
    found = {method: irtjax.dif(answers, second, method, anchors=list("abc")) for method in BY_MODEL}
    for table in found.values():
        assert table["anchor"].tolist() == [True, True, True, False, False]
        assert table["p_value"][4] < 1e-3 < 0.01 < table["p_value"][3]
        assert table["effect"][4] == pytest.approx(-0.17, abs=0.06)
        known = found["likelihood_ratio"]["statistic"]
        np.testing.assert_allclose(table["statistic"][3:], known[3:], rtol=0.25, atol=0.5)


def test_items_of_one_slope_differ_in_difficulty_alone():
    """The slope is that of all items: no test is of it, and the three agree."""
    rng = np.random.default_rng(1)
    second = np.repeat([0, 1], 300)
    p = 1 / (1 + np.exp(-rng.normal(size=(600, 1)) + 0.7 * np.outer(second, [0, 0, 0, 0, 1]) + np.linspace(-1, 1, 5)))
    answers = pd.DataFrame((rng.random(p.shape) < p).astype(int), columns=list("abcde"))
    found = {method: irtjax.dif(answers, second, method, model="1pl", purify=False) for method in BY_MODEL}
    for table in found.values():
        assert (table["df"] == 1).all()
        np.testing.assert_allclose(table["statistic"], found["wald"]["statistic"], rtol=0.15, atol=0.1)


@pytest.mark.slow
def test_score_tests_beside_anchors(data, folder):
    known = pd.read_csv(folder / "DIF_lrt_add_anchored.csv").set_index("item")
    found = irtjax.dif(*data, "score", anchors=[item for item in data[0] if item not in WITH_DIF]).set_index("item_id")
    np.testing.assert_allclose(found["statistic"][WITH_DIF], known["X2"][WITH_DIF], rtol=0.2)  # of another test


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "test", "file", "column"),
    [
        ("likelihood_ratio", "both", "DIF_lrt_add_anchored", "X2"),
        ("wald", "both", "DIF_wald_add_anchored", "W"),
        ("wald", "uniform", "DIF_wald_add_anchored_intercept", "W"),
        ("wald", "nonuniform", "DIF_wald_add_anchored_slope", "W"),
    ],
)
def test_anchored_tests(data, folder, method, test, file, column):
    known = pd.read_csv(folder / f"{file}.csv").set_index("item")
    anchors = [item for item in data[0] if item not in WITH_DIF]
    found = irtjax.dif(*data, method, test=test, anchors=anchors).set_index("item_id")
    np.testing.assert_allclose(found["statistic"][known.index], known[column], rtol=1e-3)
    assert (found["df"][known.index] == known["df"]).all()


@pytest.mark.slow
def test_purification_finds_the_items(data):
    found = irtjax.dif(*data, "likelihood_ratio").set_index("item_id")
    assert set(found.index[found["p_adjusted"] < 0.05]) == set(WITH_DIF)
    assert not found["anchor"][WITH_DIF].any()
    assert found["effect"]["i04"] < -0.1 < 0.1 < found["effect"]["i09"]


def test_items_that_have_a_test():
    """A group that answered alike leaves no finite maximum; other categories leave nothing that could stay the same."""
    found = Membership(np.array(["x", "y"]), np.array([0, 0, 0, 1, 1, 1]))
    values = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [1, -1, 0, 1], [0, 1, 0, -1], [1, 1, 2, -1], [0, 1, 0, -1]])
    responses = ResponseMatrix(np.minimum(values, 1), list("abcdef"), ["both", "alike", "more", "alone"])
    assert model_tests.testable(responses, found, "both") == {"both", "more"}
    graded = types.SimpleNamespace(values=values, item_ids=responses.item_ids)
    assert model_tests.testable(graded, found, "uniform") == {"both"}


def test_what_is_refused():
    answers, groups = pd.DataFrame(np.eye(4), columns=list("abcd")), ["x", "x", "y", "y"]
    with pytest.raises(InputError, match="`anchors`: no item 'e'"):
        irtjax.dif(answers, groups, "score", anchors=["a", "e"])
    with pytest.raises(InputError, match="`anchors`: 1 item, expected two or more"):
        irtjax.dif(answers, groups, "score", anchors=["a"])
