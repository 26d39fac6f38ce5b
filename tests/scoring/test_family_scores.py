"""Abilities on grades and categories: against R's mirt, brute force, and the fits that they come from."""

import numpy as np
import pandas as pd
import pytest

import irtjax
from irtjax.estimation.families import fit_families
from irtjax.responses.from_arrays import of_grades

POPULATION_SD = {"science__Rasch": 1.00253300209118**0.5}


def table_of(folder, model):
    """Items as `items.csv` has them, out of mirt's parameters."""
    table = pd.read_csv(folder / "par_irt.csv")
    wide = table[table.item != "GroupPars"].pivot_table(index="item", columns="par", values="est", sort=False)
    if model == "nominal":
        wide.columns = [f"{'slope' if name[0] == 'a' else 'intercept'}_{int(name[1:]) - 1}" for name in wide.columns]
    else:
        wide.columns = ["discrimination" if name == "a" else f"threshold_{name[1:]}" for name in wide.columns]
    return wide.rename_axis("item_id").assign(model=model, grades="0|1|2|3")


@pytest.mark.parametrize(
    ("name", "model"),
    [
        pytest.param("sim_grm__graded", "graded", marks=pytest.mark.slow),
        ("science__graded", "graded"),
        pytest.param("sim_gpcm__gpcm", "gpcm", marks=pytest.mark.slow),
        ("science__Rasch", "pcm"),
        ("sim_nominal__nominal", "nominal"),
    ],
)
def test_scores_are_those_of_mirt(shared, name, model):
    folder = shared / "oracle2" / "a" / name
    responses = pd.read_csv(shared / "oracle2" / "data" / f"{name.split('__')[0]}.csv")
    population = (0.0, POPULATION_SD.get(name, 1.0))
    for method in ("EAP", "MAP", "ML", "WLE"):
        expected = pd.read_csv(folder / f"scores_{method}.csv")
        found = irtjax.score(table_of(folder, model), responses.iloc[: len(expected)], method.lower(), population)
        finite = np.isfinite(expected.theta)
        np.testing.assert_array_equal(np.isfinite(found.ability), finite)
        np.testing.assert_allclose(found.ability[finite], expected.theta[finite], atol=1e-4, err_msg=method)


RNG = np.random.default_rng(8)
GRADES = pd.DataFrame({"x": [1, 2, 5], "y": ["1.0", "5", None]}, index=["ann", "bob", "cy"])
ITEMS = pd.DataFrame(
    {
        "item_id": ["x", "y", "z"],
        "model": ["graded", "gpcm", "nominal"],
        "grades": ["1|2|5", "1|2|5", "a|b|c"],
        "discrimination": [1.5, 0.8, np.nan],
        "threshold_1": [-1.0, 0.4, np.nan],
        "threshold_2": [0.5, -0.2, np.nan],
        **{f"slope_{k}": [np.nan, np.nan, value] for k, value in enumerate((-1.0, 0.3, 0.7))},
        **{f"intercept_{k}": [np.nan, np.nan, value] for k, value in enumerate((0.2, -0.5, 0.3))},
    }
)


def probabilities(theta):
    """Of the three categories of the three items: (Q, 3, 3)."""
    above = 1 / (1 + np.exp(-1.5 * (theta[:, None] - np.array([-1.0, 0.5]))))
    graded = np.diff(np.column_stack([np.zeros(len(theta)), 1 - above, np.ones(len(theta))]), axis=1)
    steps = np.cumsum(0.8 * (theta[:, None] - np.array([0.4, -0.2])), axis=1)
    options = np.outer(theta, [-1, 0.3, 0.7]) + np.array([0.2, -0.5, 0.3])
    logits = np.stack([np.column_stack([0 * theta, steps]), options])
    shares = np.exp(logits - np.logaddexp.reduce(logits, axis=2, keepdims=True))
    return np.stack([graded, *shares], axis=1)


@pytest.mark.slow
def test_mixed_items_by_brute_force():
    codes = RNG.integers(-1, 3, (12, 3))
    codes[:2], codes[2] = [[2, 2, 2], [0, 0, 0]], -1
    labels = pd.DataFrame({name: pd.Series(codes[:, i]).map(dict(enumerate(cells))) for i, (name, cells) in enumerate(
        {"x": (1, 2, 5), "y": (1, 2, 5), "z": ("a", "b", "c")}.items())})  # fmt: skip
    theta = np.linspace(-12, 12, 48_001)
    p = probabilities(theta)
    first = np.gradient(p, theta, axis=0)
    information = (first**2 / p).sum(axis=2)
    warm = (first * np.gradient(first, theta, axis=0) / p).sum(axis=2)
    found = {name: irtjax.score(ITEMS, labels, name, (0.5, 2.0)) for name in ("eap", "map", "ml", "wle")}
    for j, row in enumerate(codes):
        seen = row >= 0
        log_l = sum((np.log(p[:, i, row[i]]) for i in np.flatnonzero(seen)), np.zeros_like(theta))
        log_posterior = log_l - (theta - 0.5) ** 2 / 8
        weights = np.exp(log_posterior - log_posterior.max()) / np.exp(log_posterior - log_posterior.max()).sum()
        mean = weights @ theta
        np.testing.assert_allclose(found["eap"].ability[j], mean, atol=1e-5)
        np.testing.assert_allclose(found["eap"].ability_se[j], np.sqrt(weights @ (theta - mean) ** 2), atol=1e-5)
        np.testing.assert_allclose(found["map"].ability[j], theta[log_posterior.argmax()], atol=6e-4)
        if not seen.any():
            assert found["ml"].loc[j, ["ability", "ability_se"]].isna().all()
            continue
        ends = {0: -np.inf, len(theta) - 1: np.inf}
        np.testing.assert_allclose(found["ml"].ability[j], ends.get(log_l.argmax(), theta[log_l.argmax()]), atol=6e-4)
        of_seen = information[:, seen].sum(axis=1)
        slope = np.gradient(log_l, theta) + warm[:, seen].sum(axis=1) / (2 * of_seen)
        roots = theta[:-1][(slope[:-1] > 0) & (slope[1:] <= 0)]
        assert np.abs(roots - found["wle"].ability[j]).min() < 2e-3
        error = np.interp(found["wle"].ability[j], theta, of_seen) ** -0.5
        np.testing.assert_allclose(found["wle"].ability_se[j], error, rtol=1e-4)
    numbers = ITEMS.filter(regex="_")
    moved = ITEMS.assign(
        discrimination=ITEMS.discrimination / 10,
        **(50 + 10 * numbers.filter(regex="threshold")),
        **numbers.filter(regex="slope") / 10,
        **{f"intercept_{k}": ITEMS[f"intercept_{k}"] - 5 * ITEMS[f"slope_{k}"] for k in range(3)},
    )
    for method, scores in found.items():
        other = irtjax.score(moved, labels, method, (55.0, 20.0))
        np.testing.assert_allclose(other.ability, 50 + 10 * scores.ability, atol=1e-6)
        np.testing.assert_allclose(other.ability_se, 10 * scores.ability_se, rtol=1e-6)


def test_graded_items_of_two_categories_are_those_of_the_2pl():
    right_wrong = pd.DataFrame({"item_id": ["x", "y", "z"], "difficulty": [-1.0, 0.0, 1.0], "discrimination": 2.0})
    graded = right_wrong.rename(columns={"difficulty": "threshold_1"}).assign(model="graded", grades="0|1")
    responses = pd.DataFrame({"x": [1, 0, 1], "y": [1, 0, None], "z": [1, 0, 0]}, ["a", "b", "c"])
    for method in ("eap", "ml", "wle"):
        expected, found = (irtjax.score(items, responses, method) for items in (right_wrong, graded))
        np.testing.assert_allclose(found.ability, expected.ability, atol=1e-6)
        np.testing.assert_allclose(found.ability_se, expected.ability_se, atol=1e-6)


def test_scores_of_a_fit_of_its_folder_and_of_its_table_are_its_abilities(tmp_path):
    theta, places = RNG.normal(size=(200, 1)), np.sort(RNG.normal(size=(6, 3)), axis=1)
    grades = (RNG.logistic(size=(200, 6, 1)) < 1.3 * (theta[:, None] - places)).sum(axis=2) + 1.0
    responses = of_grades(grades, [f"s{j}" for j in range(200)], [f"i{i}" for i in range(6)])
    fit = fit_families(responses, "graded")
    fit.save(tmp_path)
    scores = irtjax.score(fit, responses)
    np.testing.assert_allclose(scores.ability, fit.ability, atol=1e-5)
    np.testing.assert_allclose(scores.ability_se, fit.ability_se, atol=1e-5)
    np.testing.assert_allclose(scores.mean_response, grades.mean(axis=1))
    table = pd.DataFrame(grades, responses.subject_ids, responses.item_ids).iloc[:, ::-1]
    for items in (tmp_path, tmp_path / "items.csv", fit.items()):
        again = irtjax.score(items, table)
        np.testing.assert_allclose(again.ability, scores.ability, atol=1e-5)


def test_wide_populations_and_steep_items():
    """Uniform posteriors between steep thresholds, which nodes of the population do not see."""
    steep = ITEMS.iloc[:2].assign(model="graded", discrimination=1e3, threshold_1=[-3.0, 2.0], threshold_2=[5.0, 6.0])
    middle = pd.DataFrame({"x": [2], "y": [2]})
    scores = irtjax.score(steep, middle, "eap", (0.0, 1e4))
    np.testing.assert_allclose([scores.ability[0], scores.ability_se[0]], [3.5, 3 / 12**0.5], rtol=2e-3)
    top = irtjax.score(steep, pd.DataFrame({"x": [5], "y": [5]}), "eap", (0.0, 1e4))
    np.testing.assert_allclose(top.ability[0], 1e4 * (2 / np.pi) ** 0.5, rtol=1e-3)
    narrow = irtjax.score(steep, middle, "eap", (0.0, 0.1))  # 20 standard deviations from its mean
    assert 1.99 < narrow.ability[0] < 2.1


def test_responses_that_items_do_not_have_get_one_line():
    for table, message in (
        (
            GRADES.assign(x=[1, 3, 5]),
            "subject 'bob', item 'x': 3 is none of the grades 1, 2, 5: fix it, or leave it empty",
        ),
        (GRADES.assign(w=1), "item 'w' (1 of 1 such) has responses and no parameters"),
        ([[1, 2]], "expected responses to all 3, in order"),
    ):
        with pytest.raises(irtjax.InputError, match=message.replace("(", r"\(").replace(")", r"\)")):
            irtjax.score(ITEMS, table)
    with pytest.raises(irtjax.InputError, match="item 'x': a parameter of the graded is missing"):
        irtjax.score(ITEMS.assign(threshold_2=np.nan), GRADES)
    with pytest.raises(irtjax.InputError, match="item 'x' has model 'best', expected one of graded"):
        irtjax.score(ITEMS.assign(model="best"), GRADES)


def test_plausible_values_have_the_moments_of_posteriors():
    right_wrong = pd.DataFrame({"item_id": ["x", "y", "z"], "difficulty": [-1.0, 0.0, 1.0], "discrimination": 2.0})
    for items, responses in (
        (ITEMS, GRADES),
        (right_wrong, pd.DataFrame({"x": [1, 0, 1], "y": [1, 0, None], "z": [1, 0, 0]}, ["a", "b", "c"])),
    ):
        scores = irtjax.score(items, responses, "eap", (0.5, 2.0))
        draws = irtjax.plausible_values(items, responses, 40_000, 1, (0.5, 2.0))
        assert draws.shape == (40_000, 3)
        error = scores.ability_se / 200
        assert (np.abs(draws.mean(axis=0) - scores.ability) < 4 * error).all()
        np.testing.assert_allclose(draws.std(axis=0), scores.ability_se, rtol=0.02)
        np.testing.assert_array_equal(draws[:3], irtjax.plausible_values(items, responses, 40_000, 1, (0.5, 2.0))[:3])


def test_responses_of_files_are_read_on_the_scales_of_the_items(tmp_path):
    """A long file of grades that has none at an end; and the mean of repeated ones."""
    table = pd.DataFrame({"x": [2, 2], "y": [1, 5]}, index=["ann", "bob"])
    expected = irtjax.score(ITEMS.iloc[:2], table)
    long = table.rename_axis("subject_id").reset_index().melt("subject_id", var_name="item_id", value_name="response")
    path = tmp_path / "long.csv"
    pd.concat([long, long]).assign(judge="z").to_csv(path, index=False)
    for data in (long, path):
        pd.testing.assert_frame_equal(irtjax.score(ITEMS.iloc[:2], data), expected)
    long.assign(response=7).to_csv(path, index=False)
    with pytest.raises(irtjax.InputError, match="subject 'ann', item 'x': '7' is none of the grades 1, 2, 5: fix it"):
        irtjax.score(ITEMS.iloc[:2], path)
