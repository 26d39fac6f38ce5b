"""Several groups of subjects: against R's mirt, brute force, and what must not change a fit."""

import numpy as np
import pandas as pd
import pytest
from conftest import matrix
from scipy.special import expit, log_expit, logsumexp
from scipy.stats import norm

import irtjax
from irtjax.errors import InputError
from irtjax.estimation.quadrature import observed_information

ITEMS = 10
PLACES = np.linspace(-12, 12, 2401)


def simulated(*populations, seed=0, of_each=150, items=ITEMS):
    """Answers of groups with these means and standard deviations, and the group of each subject."""
    rng = np.random.default_rng(seed)
    theta = np.concatenate([rng.normal(mean, sd, of_each) for mean, sd in populations])
    slope, difficulty = rng.uniform(0.8, 2.0, items), rng.normal(0.3, 1.0, items)
    values = rng.random((theta.size, items)) < expit(slope * (theta[:, None] - difficulty))
    return values.astype(np.int8), np.repeat([f"g{k}" for k in range(len(populations))], of_each)


@pytest.fixture(scope="module")
def answers():
    return simulated((0.0, 1.0), (0.8, 1.4))


@pytest.fixture(scope="module")
def fit(answers):
    return irtjax.fit(matrix(answers[0]), groups=answers[1], priors=None)


def brute_force(fit, values, groups, means, sds):
    """Log-likelihood at the items of a fit, and populations that are given, by a sum over 2,401 places."""
    logits = PLACES[:, None] * np.asarray(fit.parameters.slope).T + np.asarray(fit.parameters.intercept)
    given = (
        np.where(values == 1, 1.0, 0.0) @ log_expit(logits).T + np.where(values == 0, 1.0, 0.0) @ log_expit(-logits).T
    )
    of_group = {name: norm.logpdf(PLACES, means[k], sds[k]) for k, name in enumerate(dict.fromkeys(groups))}
    prior = np.stack([of_group[name] for name in groups])
    return float((logsumexp(given + prior, axis=1) + np.log(PLACES[1] - PLACES[0])).sum())


def test_log_likelihood_is_that_of_brute_force_and_populations_are_at_its_maximum(answers, fit):
    values, groups = answers
    table = fit.groups()
    means, sds = table["mean"].to_numpy(), table["sd"].to_numpy()
    best = brute_force(fit, values, groups, means, sds)
    assert fit.converged
    assert fit.log_likelihood == pytest.approx(best, abs=1e-6)
    for change in (-1e-2, 1e-2):
        assert brute_force(fit, values, groups, means + np.array([0, change]), sds) < best
        assert brute_force(fit, values, groups, means, sds * [1, 1 + change]) < best
    assert abs(table["mean"][1] - 0.8) < 3 * table["mean_se"][1]
    assert abs(table["sd"][1] - 1.4) < 3 * table["sd_se"][1]
    assert table.iloc[0, 2:].tolist() == [0, 0, 1, 0]
    assert (fit.subjects()["group"] == groups).all()
    assert fit.num_parameters == 2 * ITEMS + 2


def test_observed_information_of_groups_is_the_curvature_of_the_likelihood(answers, fit, monkeypatch):
    values, groups = answers
    found = {}
    invert = observed_information.covariance

    def kept(information):
        found["information"] = information
        return invert(information)

    monkeypatch.setattr(observed_information, "covariance", kept)
    irtjax.fit(matrix(values), groups=groups, priors=None)
    table = fit.groups()
    means, sds, step = table["mean"].to_numpy(), table["sd"].to_numpy(), 1e-3

    def at(mean, log_sd):
        return brute_force(fit, values, groups, means + np.array([0, mean]), sds * [1, np.exp(log_sd)])

    middle = at(0, 0)
    by_mean = -(at(step, 0) - 2 * middle + at(-step, 0)) / step**2
    by_log_sd = -(at(0, step) - 2 * middle + at(0, -step)) / step**2
    both = -(at(step, step) - at(step, -step) - at(-step, step) + at(-step, -step)) / (4 * step**2)
    np.testing.assert_allclose(found["information"][-2:, -2:], [[by_mean, both], [both, by_log_sd]], rtol=1e-4)


def test_which_group_comes_first_changes_the_scale_alone(answers, fit):
    values, groups = answers
    other = irtjax.fit(matrix(values), groups=pd.Categorical(groups, ["g1", "g0"]), priors=None)
    assert other.log_likelihood == pytest.approx(fit.log_likelihood, abs=1e-6)
    first = fit.groups()
    mean, sd = first["mean"][1], first["sd"][1]
    np.testing.assert_allclose(other.difficulty * sd + mean, fit.difficulty, atol=2e-3)
    second = other.groups()
    assert second["group"].tolist() == ["g1", "g0"]
    np.testing.assert_allclose([second["mean"][1], second["sd"][1]], [-mean / sd, 1 / sd], atol=2e-4)


def test_rasch_model_and_1pl_are_one_model_of_groups(answers):
    values, groups = answers
    one, rasch = (irtjax.fit(matrix(values), model, groups=groups, priors=None) for model in ("1pl", "rasch"))
    assert rasch.log_likelihood == one.log_likelihood
    assert rasch.num_parameters == one.num_parameters
    unit = float(one.parameters.slope[0, 0])
    np.testing.assert_allclose(rasch.groups()["mean"], unit * one.groups()["mean"])
    np.testing.assert_allclose(rasch.groups()["sd"], unit * one.groups()["sd"])
    # the error of a standard deviation of 1 in logits is that of the slope
    slope_error = one.items()["discrimination_se"][0]
    assert rasch.groups()["sd_se"][0] == pytest.approx(slope_error, rel=1e-6)


def test_graded_items_of_two_grades_are_the_2pl_of_groups(answers, fit):
    graded = irtjax.fit(answers[0], "graded", groups=answers[1], priors=None)
    assert graded.log_likelihood == pytest.approx(fit.log_likelihood, abs=1e-6)
    np.testing.assert_allclose(graded.groups().iloc[:, 2:], fit.groups().iloc[:, 2:], atol=2e-4)


def test_missing_answers_of_a_group_are_as_items_that_it_was_not_asked(answers):
    values, groups = answers
    masked = np.where((groups == "g1")[:, None] & (np.arange(ITEMS) < 4), -1, values)
    some = irtjax.fit(matrix(masked), groups=groups, priors=None)
    found = some.groups()
    at_some = brute_force(some, masked, groups, found["mean"].to_numpy(), found["sd"].to_numpy())
    assert some.log_likelihood == pytest.approx(at_some, abs=1e-6)


def test_a_group_without_spread_is_held_there_and_told(answers):
    values, groups = answers
    turned = (np.arange(150)[:, None] + np.arange(ITEMS)) % ITEMS < ITEMS // 2  # half right, each: less than by chance
    alike = np.where((groups == "g1")[:, None], np.concatenate([turned, turned]), values).astype(np.int8)
    found = irtjax.fit(matrix(alike), groups=groups, priors=None)
    table = found.groups()
    assert found.converged
    assert np.isnan(table["sd_se"][1])
    assert table["mean_se"][1] > 0
    assert table["sd"][1] < 0.05
    assert any("group 'g1' is likeliest with a standard deviation of ability of 0" in note for note in found.notes())


def test_a_fit_of_groups_is_saved_and_loaded_whole(answers, fit, tmp_path):
    fit.save(tmp_path)
    assert irtjax.load_fit(tmp_path) == fit
    assert pd.read_csv(tmp_path / "groups.csv")["group"].tolist() == ["g0", "g1"]
    irtjax.fit(matrix(answers[0]), priors=None).save(tmp_path)  # over the same folder
    assert not (tmp_path / "groups.csv").exists()


def test_scores_are_those_of_the_own_group_by_its_name(answers, fit):
    values, groups = answers
    own = irtjax.score(fit, matrix(values[groups == "g1"]), population="g1")["ability"]
    np.testing.assert_allclose(own, fit.ability[groups == "g1"], atol=1e-4)
    of_first = irtjax.score(fit, matrix(values[groups == "g0"]))["ability"]
    np.testing.assert_allclose(of_first, fit.ability[groups == "g0"], atol=1e-4)
    with pytest.raises(InputError, match="no group 'g2', expected one of g0, g1"):
        irtjax.score(fit, values[:3], population="g2")


def test_what_needs_one_population_says_so(answers, fit):
    from irtjax.scale.misfit import write_misfit
    from irtjax.scale.overall_fit import overall_fit

    for refuses in (lambda: overall_fit(fit), lambda: write_misfit(fit, "nowhere")):
        with pytest.raises(InputError, match="needs a fit of one population, and this fit has 2 groups"):
            refuses()


def ids(number):
    return [f"s{j}" for j in range(number)]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["a"] * 300, "all subjects are in 'a', expected two groups or more"),
        (["a", "b"], "2 labels for 300 subjects"),
        (["a"] * 299 + ["b"], "'b' has one subject"),
        (["a"] * 150 + [None] * 150, "subject 's150' has none"),
        (dict.fromkeys(ids(299), "a"), "subject 's299' is not there"),
        (pd.Series(["a"] * 301, index=[*ids(300), "s7"]), "subject 's7' is there twice"),
    ],
)
def test_groups_that_cannot_be_used_are_refused_by_name(answers, groups, message):
    with pytest.raises(InputError, match=message):
        irtjax.fit(matrix(answers[0]), groups=groups)


def test_a_series_is_aligned_by_subject_id(answers, fit):
    values, groups = answers
    series = pd.Series(groups, index=ids(len(groups)))
    shuffled = series.sample(frac=1, random_state=0)
    by_id = irtjax.fit(
        matrix(values), groups=pd.Series(pd.Categorical(shuffled, ["g0", "g1"]), shuffled.index), priors=None
    )
    assert by_id.log_likelihood == fit.log_likelihood


def test_groups_that_no_item_links_are_named(answers):
    values, groups = answers
    first = (groups == "g0")[:, None]
    apart = np.where(first == (np.arange(ITEMS) < 5), values, -1)
    with pytest.raises(InputError, match="'g1' answered no item that links them to 'g0'"):
        irtjax.fit(matrix(apart), groups=groups)


def test_options_that_do_not_go_with_groups_are_refused(answers):
    values, groups = answers
    with pytest.raises(InputError, match="on shared nodes, in up to three dimensions"):
        irtjax.fit(matrix(values), groups=groups, integration="normal")
    with pytest.raises(InputError, match="estimator svi has no option `groups`"):
        irtjax.fit(matrix(values), "1pl", "svi", groups=groups)


@pytest.mark.parametrize("name", ["sim_dif2pl", "verbal_gender"])
def test_groups_of_mirt(shared, name):
    """Equal items, mean and variance of the second group free; its first is standard normal."""
    data = shared / "oracle2" / "data"
    folder = shared / "oracle2" / "c" / name / "scalar"
    if name == "sim_dif2pl":
        table = pd.read_csv(data / "sim_dif2pl.csv")
        groups, values = pd.Categorical(table.iloc[:, 0], ["ref", "foc"]), table.iloc[:, 1:]
    else:
        graded = shared / "graded_responses"
        values = pd.read_csv(graded / "verbal_aggression_dichotomous.csv").iloc[:, 1:]
        groups = pd.Categorical(pd.read_csv(graded / "verbal_aggression_subjects.csv")["gender"], ["female", "male"])
    found = irtjax.fit(values, groups=groups, priors=None)
    parameters = pd.read_csv(folder / "par_irt.csv").query("item == 'GroupPars' and group == 'foc'").set_index("par")
    mean, variance = parameters.loc["MEAN_1"], parameters.loc["COV_11"]
    second = found.groups().iloc[1]
    assert found.log_likelihood == pytest.approx(pd.read_csv(folder / "fit.csv")["logLik"][0], abs=1e-5)
    assert second["mean"] == pytest.approx(mean["est"], abs=1e-3 * mean["se"])
    assert second["sd"] ** 2 == pytest.approx(variance["est"], abs=1e-3 * variance["se"])
    assert second["mean_se"] == pytest.approx(mean["se"], rel=1e-2)
    assert 2 * second["sd"] * second["sd_se"] == pytest.approx(variance["se"], rel=1e-2)
    items = pd.read_csv(folder / "par_irt.csv").query("group == 'foc' and item != 'GroupPars'")
    for par, column in (("a", "discrimination"), ("b", "difficulty")):
        ours = found.items()
        reference = items[items["par"] == par].set_index(items["item"][items["par"] == par].str.lower())
        reference = reference.loc[ours["item_id"].str.lower()]
        np.testing.assert_array_less(
            np.abs(ours[column].to_numpy() - reference["est"].to_numpy()), 2e-3 * reference["se"].to_numpy()
        )
        np.testing.assert_allclose(ours[f"{column}_se"], reference["se"], rtol=1e-2)
