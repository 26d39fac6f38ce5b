"""Anchors of grades and counts: the scale of an earlier fit, standard errors by differences, and what is refused."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logsumexp
from scipy.stats import norm
from simulation import by_difficulty, draw

import irtjax
from irtjax import InputError

RNG = np.random.default_rng(5)
NAMES = [f"q{i}" for i in range(1, 7)]
SLOPE, DIFFICULTY = RNG.uniform(0.9, 1.8, 6), RNG.normal(0, 0.8, 6)
PLACES = np.linspace(-9, 11, 81)


def steps(theta):
    """Three answers to each item, to be summed."""
    return np.array([draw(RNG, by_difficulty(theta, SLOPE, DIFFICULTY + shift)) for shift in (-1.0, 0.0, 1.0)])


FIRST, SECOND = (steps(RNG.normal(mean, sd, 200)) for mean, sd in ((0, 1), (1.0, 1.5)))


def grades(three):
    return pd.DataFrame(np.cumprod(three, axis=0).sum(axis=0) + 1.0, columns=NAMES)


def counts(three):
    return {"model": "binomial", "trials": 3}, pd.DataFrame(three.sum(axis=0), columns=NAMES)


@pytest.fixture(scope="module")
def first():
    return irtjax.fit(grades(FIRST), "graded", priors=None)


@pytest.fixture(scope="module")
def second(first):
    return irtjax.fit(grades(SECOND), "graded", anchors=first.items().head(4), priors=None)


def test_estimates_of_the_fit_itself_change_nothing(first):
    again = irtjax.fit(grades(FIRST), "graded", anchors=first.items().head(4), priors=None)
    assert again.log_likelihood == pytest.approx(first.log_likelihood, abs=1e-6)
    np.testing.assert_allclose(np.ravel(again.population), [0, 1], atol=1e-5)
    for name, column in first.item_columns.items():
        if not name.endswith("_se"):
            np.testing.assert_allclose(again.item_columns[name], column, atol=1e-4)
    assert (again.item_columns["threshold_1_se"][:4] == 0).all()
    assert again.num_parameters == 2 * 4 + 2


def test_another_population_is_placed_on_the_scale(first, second):
    """Were its grades and those of the first on one scale by chance, mean and deviation would be 0 and 1."""
    mean, sd = np.ravel(second.population)
    assert abs(mean - 1.0) < 0.35
    assert abs(sd - 1.5) < 0.35
    free = slice(4, None)
    error = np.hypot(first.item_columns["difficulty_se"], second.item_columns["difficulty_se"])
    assert (np.abs(second.difficulty - first.difficulty)[free] < 3 * error[free]).all()


def chances(own, places):
    """P of each grade (Q, I, 4), from slope, intercept and logarithms of gaps."""
    falls = np.pad(np.exp(own[:, 2:]).cumsum(axis=1), ((0, 0), (1, 0)))
    above = expit(places[:, None, None] * own[:, :1] + own[:, 1:2] + falls.mean(axis=1)[:, None] - falls)
    return -np.diff(np.pad(np.pad(above, ((0, 0), (0, 0), (1, 0)), constant_values=1), ((0, 0), (0, 0), (0, 1))))


def as_rows(items):
    return np.concatenate([items.slope, items.intercept[:, None], items.others], axis=1)


def test_standard_errors_are_those_of_the_curvature_with_the_population_free(second):
    """By differences of a sum over 81 places."""
    known, values = as_rows(second.parameters), np.asarray(second.responses.values).astype(int)

    def log_likelihood(vector):
        """Of the slope, intercept and logarithms of gaps of the last two items, and mean and log deviation."""
        own = np.concatenate([known[:4], vector[:8].reshape(2, 4)])
        p = chances(own, PLACES)
        of_places = sum(np.log(p[:, i, values[:, i]]) for i in range(6))
        density = norm.logpdf(PLACES, vector[8], np.exp(vector[9])) + np.log(PLACES[1] - PLACES[0])
        return logsumexp(of_places + density[:, None], axis=0).sum()

    at = np.concatenate([known[4:].ravel(), second.population.mean, np.log(second.population.sd)])
    assert second.log_likelihood == pytest.approx(log_likelihood(at), abs=1e-4)
    unit = 1e-3 * np.eye(10)
    information = [[log_likelihood(at + u - v) + log_likelihood(at - u + v) for v in unit] for u in unit] - np.array(
        [[log_likelihood(at + u + v) + log_likelihood(at - u - v) for v in unit] for u in unit]
    )
    error = np.sqrt(np.diag(np.linalg.inv(information / 4e-6)))
    np.testing.assert_allclose(second.item_columns["discrimination_se"][4:], error[[0, 4]], rtol=1e-3)


def test_one_person_has_the_error_of_the_mean(first):
    with pytest.warns(irtjax.FitWarning, match="abilities have no variance"):
        alone = irtjax.fit(grades(SECOND).head(1), "graded", anchors=first)
    p = chances(as_rows(first.parameters), alone.ability[0] + np.array([-1e-4, 0, 1e-4]))
    information = ((p[2] - p[0]) ** 2 / p[1]).sum() / 4e-8
    assert alone.ability_se[0] == pytest.approx(information**-0.5, rel=1e-3)


@pytest.mark.slow
def test_counts_are_linked_in_the_same_way():
    options, data = counts(FIRST)
    first = irtjax.fit(data, **options)
    second = irtjax.fit(counts(SECOND)[1], anchors=first, **options)
    mean, sd = np.ravel(second.population)
    assert abs(mean - 1.0) < 0.35
    assert abs(sd - 1.5) < 0.35
    np.testing.assert_array_equal(second.parameters.slope, first.parameters.slope)


def test_grades_that_nobody_was_given_stay_those_of_an_anchor(first):
    fit = irtjax.fit(grades(SECOND).replace({"q1": {1.0: 2.0}}), "graded", anchors=first.items().head(4))
    assert fit.items().grades[0] == "1|2|3|4"


REFUSED = {
    "another model": ("gpcm", {}, "anchor item 'q1' has the model graded, and is to be fitted by the gpcm"),
    "no categories": ("graded", {"grades": None}, "anchor items with categories need the column grades"),
    "a parameter missing": ("graded", {"threshold_2": np.nan}, "item 'q1': a parameter of the graded is missing"),
    "a grade of others": ("graded", {"grades": "0|1|2|3"}, "item 'q1': '4', expected one of 0, 1, 2, 3"),
    "other items": ("graded", {"item_id": "x"}, "item 'x' is there twice"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_one_line_says_which_anchor_does_not_fit(case, first):
    model, change, message = REFUSED[case]
    table = first.items().head(4).assign(**{name: value for name, value in change.items() if value is not None})
    table = table.drop(columns=[name for name, value in change.items() if value is None])
    with pytest.raises(InputError, match=re.escape(message)):
        irtjax.fit(grades(FIRST), model, anchors=table)
    with pytest.raises(InputError, match="anchor items need dims 1"):
        irtjax.fit(grades(FIRST), "graded", anchors=first, dims=2)


def changed(anchors, change):
    """The anchors on another scale, one of them harder, or all turned round."""
    found, thresholds = (
        anchors.copy(),
        [name for name in anchors if name in ("threshold_1", "threshold_2", "threshold_3")],
    )
    places = ["difficulty", *thresholds]
    if change == "shifted":
        found[places] += 2.0
    elif change == "one":
        found.loc[found.index[1], places] += 3.0
    elif change == "flipped":
        found["difficulty"] *= -1
        found[thresholds] = -found[thresholds[::-1]].to_numpy()
    return found


CHANGES = ["none", "shifted", "one", "flipped"]


def assert_told(change, fitted):
    """Anchors that contradict the responses are told, and a shift of all, which is what anchors are for, is not."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted()
    said = [str(one.message) for one in caught if "anchors" in str(one.message)]
    assert len(said) == (change in ("one", "flipped"))
    assert all(re.match(r"of 4 anchors \d are answered higher or lower than their parameters say", one) for one in said)
    if change == "one":
        assert "such as 'q2'" in said[0]


@pytest.mark.parametrize("change", CHANGES)
def test_anchors_that_contradict_the_grades_are_told(change, first):
    anchors = changed(first.items().head(4), change)
    assert_told(change, lambda: irtjax.fit(grades(SECOND), "graded", anchors=anchors, priors=None))


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("model", ["pcm", "binomial", "beta_binomial", "ordered_beta", "by the answer"])
def test_anchors_of_all_kinds_that_contradict_the_responses_are_told(model, change):
    options, data = {"model": model}, grades
    if model in ("binomial", "beta_binomial"):
        options["trials"], data = 3, lambda three: counts(three)[1]
    elif model == "ordered_beta":
        data = lambda three: counts(three)[1] / 3  # noqa: E731
    elif model == "by the answer":
        options = {"model": "graded", "sparse": True}
    anchors = changed(irtjax.fit(data(FIRST), **options).items().head(4), change)
    assert_told(change, lambda: irtjax.fit(data(SECOND), anchors=anchors, **options))
