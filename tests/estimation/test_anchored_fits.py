"""Anchors of right and wrong answers: normal posteriors against nodes, and the marginal likelihood by brute force."""

import re
import warnings

import numpy as np
import pytest
from scipy.special import expit, logsumexp
from scipy.stats import norm
from simulation import simulate_model

import irtjax
from irtjax.estimation.priors import GUESSING_PRIOR, NormalPrior

SUBJECTS, ITEMS, MEAN, SD = 200, 60, 0.8, 1.4
PLACES = np.linspace(-9, 11, 401)
SHIFTS = 1e-3 * np.eye(2)


def linked(model, number, way, priors, **options):
    """The fit on the scale of so many items, which are held at the truth."""
    responses, _, truth = simulate_model(model, SUBJECTS, ITEMS, seed=4, mean=MEAN, sd=SD)
    names = {"a": "discrimination", "b": "difficulty"} | ({"c": "guessing"} if model == "3pl" else {})
    table = truth.rename(columns=names)[["item_id", *names.values()]]
    chosen = np.random.default_rng(0).permutation(ITEMS)[:number]
    return irtjax.fit(responses, model, anchors=table.iloc[chosen], integration=way, priors=priors, **options), chosen


def log_likelihood(fit, chosen, scale=(0.0, 0.0), mean=0.0, log_sd=0.0):
    """Of the population with other moments, and on another scale together with the items that are free."""
    items, (at, sd) = fit.parameters, np.ravel(fit.population)
    origin, unit = scale[0], np.exp(scale[1])
    held = np.isin(np.arange(ITEMS), chosen)
    slope = items.slope[:, 0] / np.where(held, 1.0, unit)
    intercept = items.intercept - np.where(held, 0.0, slope * origin)
    lower, upper = expit(items.lower)[:, None], expit(items.upper)[:, None]
    p = lower + (upper - lower) * expit(slope[:, None] * PLACES + intercept[:, None])
    values = np.asarray(fit.responses.values)
    joint = (values == 1) @ np.log(p) + (values == 0) @ np.log1p(-p)
    density = norm.logpdf(PLACES, (at + mean) * unit + origin, sd * np.exp(log_sd) * unit)
    return logsumexp(joint + density + np.log(PLACES[1] - PLACES[0]), axis=1).sum()


def slopes_up(fit, chosen):
    """Derivatives by mean and log deviation of the population, then by origin and log unit, over √J."""
    h = SHIFTS[0, 0]
    by = [log_likelihood(fit, chosen, mean=h) - log_likelihood(fit, chosen, mean=-h)]
    by += [log_likelihood(fit, chosen, log_sd=h) - log_likelihood(fit, chosen, log_sd=-h)]
    by += [log_likelihood(fit, chosen, scale=s) - log_likelihood(fit, chosen, scale=-s) for s in SHIFTS]
    return np.array(by) / (2 * h * np.sqrt(SUBJECTS))


def assert_close(normal, nodes, in_se):
    """Population, free items and abilities, in standard errors."""
    (mean, sd), (on_nodes, sd_on_nodes) = np.ravel(normal.population), np.ravel(nodes.population)
    assert abs(mean - on_nodes) < in_se * sd_on_nodes / np.sqrt(SUBJECTS)
    assert abs(np.log(sd / sd_on_nodes)) < in_se / np.sqrt(2 * SUBJECTS)
    assert (np.abs(normal.ability - nodes.ability) < in_se * nodes.ability_se).all()
    for name in ("difficulty", "discrimination"):
        error = nodes.item_columns[f"{name}_se"]
        known = error > 0
        far = np.abs(normal.item_columns[name] - nodes.item_columns[name])[known] / error[known]
        assert far.size == 0 or far.max() < in_se, name


@pytest.mark.parametrize("held_as", ["matrix", "answers", "shards"])
@pytest.mark.parametrize("change", ["none", "shifted", "one", "flipped"])
def test_anchors_that_contradict_the_answers_are_told(change, held_as, tmp_path):
    """A shift of all is another scale, which is what anchors are for."""
    responses, _, truth = simulate_model("2pl", SUBJECTS, 20, seed=4, mean=MEAN, sd=SD)
    anchors = truth.rename(columns={"a": "discrimination", "b": "difficulty"})[:8].copy()
    if change == "shifted":
        anchors["difficulty"] += 2
    elif change == "one":
        anchors.loc[3, "difficulty"] += 3
    elif change == "flipped":
        anchors["difficulty"] *= -1
    given = responses
    if held_as == "shards":
        irtjax.write_shards([(responses.values, responses.item_ids)], responses.subject_ids, tmp_path / "shards")
        given = irtjax.open_responses(tmp_path / "shards")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        irtjax.fit(given, "2pl", anchors=anchors, sparse=held_as == "answers")
    said = [str(warning.message) for warning in caught if "anchors" in str(warning.message)]
    assert len(said) == (change in ("one", "flipped"))
    assert all(
        re.match(r"of 8 anchors \d are answered right more or less often than their parameters say", one)
        for one in said
    )
    if change == "one":
        assert f"such as '{responses.item_ids[3]}'" in said[0]


@pytest.mark.parametrize("number", [5, 59])
def test_normal_posteriors_come_to_the_maximum_of_the_marginal_likelihood(number):
    (normal, chosen), (nodes, _) = (linked("2pl", number, way, None) for way in ("normal", "nodes"))
    assert (normal.status, normal.integration, nodes.integration) == ("converged", "normal", "nodes")
    assert_close(normal, nodes, 0.03)
    assert normal.log_likelihood == pytest.approx(nodes.log_likelihood, abs=0.02)
    assert log_likelihood(nodes, chosen) == pytest.approx(nodes.log_likelihood, abs=1e-3)
    # the first two are those of normal posteriors without anchors, which are near to normal on 60 items, and no more
    np.testing.assert_allclose(slopes_up(normal, chosen), 0, atol=0.03)
    np.testing.assert_allclose(slopes_up(nodes, chosen), 0, atol=1e-3)
    for fit in (normal, nodes):
        mean, sd = np.ravel(fit.population)
        assert abs(mean - MEAN) < 0.3
        assert abs(sd - SD) < 0.25


def test_estimated_priors_leave_the_scale_to_the_anchors():
    """However many items have them: the likelihood alone is highest in origin and unit."""
    for way in ("normal", "nodes"):
        fit, chosen = linked("2pl", 5, way, "auto")
        assert fit.details["priors"]["discrimination"]["estimated"]
        np.testing.assert_allclose(slopes_up(fit, chosen)[2:], 0, atol=0.03)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the data hardly support asymptotes")
@pytest.mark.parametrize(("model", "in_se"), [("1pl", 0.03), ("3pl", 0.15)])
def test_other_models_come_to_the_estimates_on_nodes(model, in_se):
    """Those of the 3PL as well as without anchors."""
    options = {"guessing_prior": GUESSING_PRIOR, "slope_prior": NormalPrior(1.0, 0.3)} if model == "3pl" else {}
    for number in (5, 59):
        (normal, chosen), (nodes, _) = (linked(model, number, way, None, **options) for way in ("normal", "nodes"))
        assert_close(normal, nodes, in_se)
        np.testing.assert_allclose(slopes_up(normal, chosen)[:2], 0, atol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["normal", "nodes"])
def test_few_subjects_and_few_anchors_tell_the_spread_without_bias(way):
    """Estimated priors would have slopes flatter, and abilities wider, by a quarter."""
    ratios = []
    for seed in range(12):
        responses, theta, truth = simulate_model("2pl", 100, 100, seed=seed, mean=MEAN, sd=SD)
        anchors = truth.head(5).rename(columns={"a": "discrimination", "b": "difficulty"})
        fit = irtjax.fit(
            responses,
            "2pl",
            anchors=anchors[["item_id", "discrimination", "difficulty"]],
            integration=way,
            standard_errors=False,
        )
        ratios.append(np.log(fit.population.sd[0] / theta.std()))
    error = np.std(ratios) / np.sqrt(len(ratios))
    assert error < 0.05
    assert abs(np.mean(ratios)) < 3 * error
