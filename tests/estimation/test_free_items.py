"""Items that are free by group: against responses that are split by hand, ties, grades, files, what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import irtjax
from irtjax.errors import InputError
from irtjax.estimation.free_items import with_free_items
from irtjax.estimation.grouping import membership
from irtjax.responses.convert import as_responses
from irtjax.responses.from_arrays import of_grades
from irtjax.responses.sparse import of_matrix

OPTIONS = {"priors": None}


def simulated(num_items=8, of_each=250):
    rng = np.random.default_rng(0)
    second = np.repeat([0, 1], of_each)
    theta = rng.normal(size=second.size) + 0.5 * second
    slope, difficulty = rng.uniform(0.8, 1.8, num_items), rng.normal(size=num_items)
    logit = slope * (theta[:, None] - difficulty - 0.7 * np.outer(second, np.arange(num_items) == 2))
    right = rng.random(logit.shape) < expit(logit)
    return pd.DataFrame(right.astype(float), columns=[f"i{k}" for k in range(num_items)]), np.array(["a", "b"])[second]


@pytest.fixture(scope="module")
def data():
    return simulated()


@pytest.fixture(scope="module")
def fits(data):
    answers, groups = data
    options = {"groups": groups, **OPTIONS}
    found = {
        kind: irtjax.fit(answers, free_by_group={"i2": kind}, **options) for kind in ("all", "difficulty", "slope")
    }
    return found | {"none": irtjax.fit(answers, **options)}


def test_all_is_what_split_columns_are(data, fits):
    answers, groups = data
    split = answers.drop(columns="i2")
    for name in "ab":
        split[f"i2 {name}"] = answers["i2"].where(groups == name)
    by_hand = irtjax.fit(split, groups=groups, **OPTIONS)
    assert fits["all"].log_likelihood == pytest.approx(by_hand.log_likelihood, abs=1e-6)
    table = fits["all"].items().set_index("item_id")
    assert table.index.tolist() == ["i0", "i1", "i2 (a)", "i2 (b)", "i3", "i4", "i5", "i6", "i7"]
    assert table["group"].tolist() == ["", "", "a", "b", "", "", "", "", ""]
    for name in ("difficulty", "difficulty_se", "discrimination", "discrimination_se"):
        np.testing.assert_allclose(
            table.loc["i2 (b)", name], by_hand.items().set_index("item_id").loc["i2 b", name], rtol=1e-3
        )
    np.testing.assert_allclose(fits["all"].ability, by_hand.ability, atol=1e-4)


def test_what_is_tied_is_the_same_and_costs_likelihood(fits):
    likelihood = {kind: fit.log_likelihood for kind, fit in fits.items()}
    assert likelihood["none"] < likelihood["slope"] < likelihood["difficulty"] < likelihood["all"]
    assert [fits[kind].num_parameters for kind in ("none", "slope", "difficulty", "all")] == [18, 19, 19, 20]
    for kind, name in (("difficulty", "slope"), ("slope", "intercept")):
        one, other = np.asarray(getattr(fits[kind].parameters, name))[[2, 3]]
        assert one == other
        assert fits[kind].converged
    table = fits["difficulty"].items().set_index("item_id")
    assert table.loc["i2 (b)", "difficulty"] - table.loc["i2 (a)", "difficulty"] == pytest.approx(0.7, abs=0.5)
    assert table["discrimination_se"].notna().all()


def test_the_gradient_of_a_tied_fit_is_zero(data, fits):
    """The likelihood by hand, of the two columns together, has its maximum in the common slope where the fit is."""
    answers, groups = data
    fit, theta = fits["difficulty"], np.linspace(-8, 8, 801)
    slope, intercept = (
        np.asarray(leaf, float).reshape(9, -1)[:, 0] for leaf in (fit.parameters.slope, fit.parameters.intercept)
    )
    column = np.array([[0, 1, 2 + (name == "b"), 4, 5, 6, 7, 8] for name in "ab"])
    member, values = (groups == "b").astype(int), answers.to_numpy()

    def log_likelihood(change):
        moved = slope + change * np.isin(np.arange(9), [2, 3])
        total = 0.0
        for at in range(2):
            mean, sd = fit.groups()[["mean", "sd"]].iloc[at]
            logit = np.outer(theta, moved[column[at]]) + intercept[column[at]]
            y = values[member == at]
            given = y @ -np.log1p(np.exp(-logit)).T + (1 - y) @ -np.log1p(np.exp(logit)).T
            weights = np.exp(-0.5 * ((theta - mean) / sd) ** 2) / sd / np.sqrt(2 * np.pi) * (theta[1] - theta[0])
            total += np.log(np.exp(given) @ weights).sum()
        return total

    best = log_likelihood(0.0)
    assert best == pytest.approx(fit.log_likelihood, abs=1e-4)
    assert log_likelihood(0.01) < best
    assert log_likelihood(-0.01) < best


def test_it_is_saved_and_loaded(fits, tmp_path):
    fits["all"].save(tmp_path)
    again = irtjax.load_fit(tmp_path)
    pd.testing.assert_frame_equal(again.items(), fits["all"].items())
    assert pd.read_csv(tmp_path / "items.csv", keep_default_na=False)["group"].tolist()[2:4] == ["a", "b"]


def test_grades():
    rng = np.random.default_rng(1)
    second = np.repeat([0, 1], 200)
    logit = 1.3 * (rng.normal(size=400) + 0.3 * second)[:, None] + rng.normal(size=6)
    logit[:, 1] += 0.8 * second
    grades = pd.DataFrame((logit + rng.logistic(size=logit.shape) > np.array([-1, 0, 1])[:, None, None]).sum(axis=0))
    groups = np.array(["a", "b"])[second]
    fits = [
        irtjax.fit(grades, "graded", groups=groups, free_by_group=free, priors=None)
        for free in (None, ["1"], {"1": "difficulty"})
    ]
    assert fits[1].num_parameters - fits[0].num_parameters == 4
    assert fits[2].num_parameters - fits[0].num_parameters == 3
    assert fits[0].log_likelihood < fits[2].log_likelihood <= fits[1].log_likelihood + 1e-6
    assert len(fits[1].items()) == 7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"free_by_group": {"i9": "all"}}, "`free_by_group`: no item 'i9'"),
        ({"free_by_group": {"i2": "threshold"}}, "`free_by_group`: 'threshold' of item 'i2', expected one of all"),
        ({"free_by_group": [f"i{k}" for k in range(8)]}, "all items are free"),
        ({"free_by_group": ["i2"], "groups": None}, "needs estimator mml and `groups`"),
        ({"free_by_group": {"i2": "slope"}, "model": "3pl"}, "of item 'i2', a 3pl, expected all"),
    ],
)
def test_what_is_refused(data, change, message):
    answers, groups = data
    with pytest.raises(InputError, match=message):
        irtjax.fit(answers, **({"groups": groups} | change))


def test_what_is_free_in_name_only_is_refused(data):
    answers, groups = data
    alike, alone = answers.copy(), answers.copy()
    alike.loc[groups == "b", "i2"], alone.loc[groups == "b", "i2"] = 1.0, np.nan
    for given, free, message in (
        (alike, {"i2": "difficulty"}, "item 'i2': all of 'b' answered alike"),
        (alone, ["i2"], "item 'i2' was answered by one group alone"),
    ):
        with pytest.raises(InputError, match=message):
            irtjax.fit(given, groups=groups, free_by_group=free)
    with pytest.raises(InputError, match="'i2', a 1pl, has no slope of its own"):
        irtjax.fit(answers, "1pl", groups=groups, free_by_group={"i2": "slope"})
    grades = answers * 2
    grades.iloc[::5, 2] = 1
    grades.loc[groups == "b", "i2"] = grades.loc[groups == "b", "i2"].replace(1, 2)
    with pytest.raises(InputError, match="item 'i2': its groups used different categories"):
        irtjax.fit(grades, "graded", groups=groups, free_by_group={"i2": "slope"})


def test_new_subjects_of_a_group_are_scored_by_its_own_items(data, fits):
    """As by hand: the items in common and the group's own, its population, and columns by their plain ids."""
    answers, _ = data
    fit, new = fits["all"], answers[:40]
    for name, other in (("a", "b"), ("b", "a")):
        table = fit.items().set_index("item_id").drop(f"i2 ({other})").rename({f"i2 ({name})": "i2"})
        own = fit.population.of(name)
        by_hand = irtjax.score(table, new, population=(float(own.mean[0]), float(own.sd[0])))
        found = irtjax.score(fit, new, population=name)
        pd.testing.assert_frame_equal(found, by_hand, check_exact=False, rtol=1e-9)
        draws = irtjax.plausible_values(fit, new, 200, population=name)
        np.testing.assert_allclose(draws.mean(axis=0), found["ability"], atol=0.15)
        in_order = irtjax.score(fit, new.to_numpy(), population=name)["ability"]  # of the group's items
        np.testing.assert_allclose(in_order, found["ability"], rtol=1e-9)
    assert irtjax.score(fit, new.drop(columns="i2"))["num_responses"].eq(7).all()
    split = new.rename(columns={"i2": "i2 (b)"})
    ability = irtjax.score(fit, split, population=(float(own.mean[0]), float(own.sd[0])))["ability"]
    np.testing.assert_allclose(ability, found["ability"], rtol=1e-9)
    with pytest.raises(InputError, match=r"item 'i2' has parameters of its own in 'a', 'b': name the group of these"):
        irtjax.score(fit, new)


def test_new_subjects_on_grades_that_are_free_by_group():
    rng = np.random.default_rng(1)
    second = np.repeat([0, 1], 200)
    logit = 1.3 * rng.normal(size=400)[:, None] + rng.normal(size=6)
    logit[:, 1] += 2.0 * second
    grades = pd.DataFrame((logit + rng.logistic(size=logit.shape) > np.array([-1, 0, 1])[:, None, None]).sum(axis=0))
    fit = irtjax.fit(grades, "graded", groups=np.array(["a", "b"])[second], free_by_group=["1"], priors=None)
    abilities = {name: irtjax.score(fit, grades[:50], population=name)["ability"] for name in "ab"}
    assert (abilities["a"] > abilities["b"] + 0.1).mean() > 0.9  # the same grades tell more where the item is harder
    with pytest.raises(InputError, match="name the group"):
        irtjax.score(fit, grades[:50])


def test_single_answers_are_split_as_the_matrix_is(monkeypatch):
    rng = np.random.default_rng(2)
    values = rng.integers(0, 3, (60, 5))
    values[rng.random(values.shape) < 0.4] = -1
    values[:3, 2], values[3:6, 2] = (0, 1, 2), (0, 1, 2)
    ids = [f"s{j}" for j in range(60)], [f"i{i}" for i in range(5)]
    grades = of_grades(np.where(values < 0, np.nan, values), *ids)
    right = irtjax.ResponseMatrix(np.minimum(values, 1), *ids)
    groups = membership(np.resize(["a", "a", "a", "b", "b", "b", "c"], 60), np.array(ids[0]))
    for matrix in (grades, right):
        expected = with_free_items(matrix, groups, {2: "all", 4: "all"})
        single = of_matrix(matrix)
        with monkeypatch.context() as patch:
            patch.setattr(type(single), "read", lambda self: pytest.fail("made the matrix"))
            found = with_free_items(single, groups, {2: "all", 4: "all"})
        assert found.responses == of_matrix(expected.responses)
        assert found.group.tolist() == expected.group.tolist()
        assert [(kind, at.tolist()) for kind, at in found.membership.copies] == [
            (kind, at.tolist()) for kind, at in expected.membership.copies
        ]


def test_fits_of_single_answers_are_those_of_the_matrix(data, fits):
    answers, groups = data
    single = of_matrix(as_responses(answers))
    found = irtjax.fit(single, groups=groups, free_by_group={"i2": "difficulty"}, **OPTIONS)
    assert found.details["num_answers"] == single.num_answers
    assert found.log_likelihood == pytest.approx(fits["difficulty"].log_likelihood, abs=1e-5)
    np.testing.assert_allclose(found.difficulty, fits["difficulty"].difficulty, atol=1e-4)
    np.testing.assert_allclose(found.difficulty_se, fits["difficulty"].difficulty_se, rtol=1e-3)
