"""Latent regression: against brute force over subjects' own densities, groups, and simulated coefficients."""

import warnings

import numpy as np
import pandas as pd
import pytest
from conftest import matrix
from scipy.optimize import approx_fprime
from scipy.special import expit, log_expit, logsumexp
from scipy.stats import chi2, norm

import irtjax
from irtjax import FitWarning
from irtjax.errors import InputError
from irtjax.estimation.covariates import as_predictors, design_of
from irtjax.estimation.quadrature import observed_information

ITEMS, SUBJECTS = 10, 300
PLACES = np.linspace(-14, 14, 351)
SLOPE, OTHERS = 0.05, {"evening": 0.0, "morning": 0.7, "online": -0.5}


def simulated(seed=0, subjects=SUBJECTS, items=ITEMS):
    """Answers of people of some age on one of three courses."""
    rng = np.random.default_rng(seed)
    age, course = rng.normal(40, 10, subjects), rng.choice(list(OTHERS), subjects)
    theta = SLOPE * (age - 40) + np.array([OTHERS[one] for one in course]) + rng.normal(size=subjects)
    a, b = rng.uniform(0.8, 2.0, items), rng.normal(0.3, 1.0, items)
    values = (rng.random((subjects, items)) < expit(a * (theta[:, None] - b))).astype(np.int8)
    ids = [f"s{j}" for j in range(subjects)]
    return values, pd.DataFrame({"age": age, "course": pd.Categorical(course, list(OTHERS))}, index=ids)


@pytest.fixture(scope="module")
def answers():
    return simulated()


@pytest.fixture(scope="module")
def fit(answers):
    return irtjax.fit(matrix(answers[0]), covariates=answers[1], priors=None)


def predictors(table):
    """By hand: age from its mean, and a 1 for each course but the first."""
    courses = [(table["course"] == name).to_numpy(float) for name in list(OTHERS)[1:]]
    return np.stack([table["age"].to_numpy() - table["age"].mean(), *courses], axis=1)


def brute_force(slope, intercept, values, mean, sd=1.0):
    """Log-likelihood of subjects with means of their own, by a sum over 351 places."""
    logits = PLACES[:, None] * slope + intercept
    given = (values == 1).astype(float) @ log_expit(logits).T + (values == 0).astype(float) @ log_expit(-logits).T
    prior = norm.logpdf(PLACES[None], np.reshape(mean, (-1, 1)), sd)
    return float(logsumexp(given + prior + np.log(PLACES[1] - PLACES[0]), axis=1).sum())


def of_fit(fit, values, mean, **others):
    return brute_force(
        np.asarray(fit.parameters.slope)[:, 0], np.asarray(fit.parameters.intercept), values, mean, **others
    )


def test_likelihood_is_that_of_brute_force_and_coefficients_are_at_its_maximum(answers, fit):
    values, table = answers
    x, beta = predictors(table), fit.covariates()["coefficient"].to_numpy()
    assert fit.converged
    assert fit.covariates()["covariate"].tolist() == ["age", "course=morning", "course=online"]
    assert fit.log_likelihood == pytest.approx(of_fit(fit, values, x @ beta), abs=1e-6)
    assert fit.num_parameters == 2 * ITEMS + 3
    gradient = approx_fprime(beta, lambda beta: of_fit(fit, values, x @ beta), 1e-5)
    assert np.abs(gradient * fit.covariates()["coefficient_se"]).max() < 1e-3


def test_observed_information_is_the_curvature_of_the_likelihood(answers, fit, monkeypatch):
    values, table = answers
    x, found = predictors(table), {}
    design = design_of(as_predictors(table, table.index.to_numpy().astype(str)), with_mean=False)
    invert = observed_information.covariance

    def kept(information):
        found["information"] = information
        return invert(information)

    monkeypatch.setattr(observed_information, "covariance", kept)
    irtjax.fit(matrix(values), covariates=table, priors=None)
    beta = fit.covariates()["coefficient"].to_numpy()
    start = np.concatenate([np.asarray(fit.parameters.slope)[:, 0], np.asarray(fit.parameters.intercept), beta])
    by_item = np.arange(2 * ITEMS).reshape(ITEMS, 2).T.ravel()  # the engine has the parameters of each item together

    def height(change):
        a, c, beta = np.split(start + change, [ITEMS, 2 * ITEMS])
        return brute_force(a, c, values, x @ beta)

    rng = np.random.default_rng(0)
    for _ in range(6):
        of_items, of_beta = rng.normal(size=2 * ITEMS), rng.normal(size=3) * [0.1, 1, 1]
        change = 0.003 * np.concatenate([of_items, of_beta])
        curvature = -(height(change) - 2 * height(0 * change) + height(-change)) / 0.003**2
        own = np.empty(2 * ITEMS + 3)
        own[by_item], own[2 * ITEMS :] = of_items, design.triangle @ of_beta
        assert own @ found["information"] @ own == pytest.approx(curvature, rel=1e-4)
    covariance = np.linalg.inv(found["information"])[-3:, -3:]
    back = np.linalg.inv(design.triangle)
    errors = np.sqrt(np.diag(back @ covariance @ back.T))
    np.testing.assert_allclose(fit.covariates()["coefficient_se"], errors, rtol=1e-6)


def test_a_group_as_covariate_is_two_groups_of_one_standard_deviation(answers):
    values, table = answers
    own = table["course"] == "morning"
    as_text = pd.DataFrame({"morning": np.where(own, "yes", "no")}, index=table.index)
    found = irtjax.fit(matrix(values), covariates=as_text, priors=None)
    groups = irtjax.fit(matrix(values), groups=as_text["morning"], priors=None)
    assert found.num_parameters == groups.num_parameters - 1
    ratio = 2 * (groups.log_likelihood - found.log_likelihood)
    assert 0 <= ratio < chi2.ppf(0.9999, 1)
    # the standard deviations of the groups are equal here, so that both are near
    assert found.covariates()["covariate"].tolist() == [f"morning={groups.groups()['group'][1]}"]
    np.testing.assert_allclose(found.covariates()["coefficient"][0], groups.groups()["mean"][1], atol=0.1)

    second = (as_text["morning"] == groups.groups()["group"][1]).to_numpy(float)

    def height(parameters):
        a, c, (beta,) = np.split(parameters, [ITEMS, 2 * ITEMS])
        return brute_force(a, c, values, beta * second)

    places = [np.asarray(found.parameters.slope)[:, 0], np.asarray(found.parameters.intercept)]
    at = np.concatenate([*places, found.covariates()["coefficient"]])
    # nodes end 5 standard deviations from the mean of the second, which leaves out 4e-8 nats per subject
    assert found.log_likelihood == pytest.approx(height(at), abs=3e-5)
    gradient = (np.array([height(at + step) - height(at - step) for step in 1e-4 * np.eye(at.size)])) / 2e-4
    assert np.abs(gradient).max() < 0.01  # of a coefficient, whose standard error is 0.1, that is 0.001 of the latter


def test_abilities_are_drawn_towards_the_mean_of_their_covariates(answers, fit):
    values, table = answers
    logits = PLACES[:, None] * np.asarray(fit.parameters.slope).T + np.asarray(fit.parameters.intercept)
    given = values @ log_expit(logits).T + (1 - values) @ log_expit(-logits).T
    mean = predictors(table) @ fit.covariates()["coefficient"].to_numpy()
    posterior = given + norm.logpdf(PLACES[None], mean[:, None], 1)
    posterior = np.exp(posterior - logsumexp(posterior, axis=1, keepdims=True))
    np.testing.assert_allclose(fit.ability, posterior @ PLACES, atol=1e-5)
    np.testing.assert_allclose(fit.population.means[:, 0], mean, atol=1e-10)
    assert fit.population.explained[0] == pytest.approx(mean.var() / (mean.var() + 1), abs=1e-10)


def test_rows_units_and_first_categories_change_nothing_but_the_scale(answers, fit):
    values, table = answers
    other = table.assign(age=table["age"] / 10, course=table["course"].cat.reorder_categories(list(OTHERS)[::-1]))
    turned = irtjax.fit(matrix(values), covariates=other.sample(frac=1, random_state=0), priors=None)
    assert turned.log_likelihood == pytest.approx(fit.log_likelihood, abs=1e-6)
    one, another = (found.covariates().set_index("covariate") for found in (fit, turned))
    assert another.loc["age", "coefficient"] == pytest.approx(10 * one.loc["age", "coefficient"], abs=1e-3)
    assert another.loc["age", "coefficient_se"] == pytest.approx(10 * one.loc["age", "coefficient_se"], rel=1e-3)
    shift = one.loc["course=online", "coefficient"]
    assert another.loc["course=evening", "coefficient"] == pytest.approx(-shift, abs=1e-3)
    np.testing.assert_allclose(turned.difficulty, fit.difficulty - shift, atol=5e-3)


def test_rasch_model_and_1pl_are_one_model_in_two_units(answers):
    values, table = answers
    one, rasch = (irtjax.fit(matrix(values), name, covariates=table, priors=None) for name in ("1pl", "rasch"))
    assert rasch.log_likelihood == one.log_likelihood
    unit = float(one.parameters.slope[0, 0])
    np.testing.assert_allclose(rasch.covariates()["coefficient"], unit * one.covariates()["coefficient"])
    assert rasch.reference.sd[0] == pytest.approx(unit)
    assert rasch.population.residual_sd_se[0] == pytest.approx(one.items()["discrimination_se"][0], rel=1e-6)
    # by Wald's test a coefficient of one unit is hardly another than that of the other
    z = [found.covariates()["coefficient"] / found.covariates()["coefficient_se"] for found in (one, rasch)]
    np.testing.assert_allclose(z[0], z[1], rtol=0.1)


def test_anchors_set_origin_and_unit(answers, fit):
    values, table = answers
    known = fit.items()[["item_id", "difficulty", "discrimination"]]
    known = known.assign(difficulty=2 * known["difficulty"] + 1, discrimination=known["discrimination"] / 2)
    found = irtjax.fit(matrix(values), covariates=table, anchors=known, priors=None)
    rows = found.covariates()
    assert rows["covariate"][0] == "(intercept)"
    np.testing.assert_allclose(rows["coefficient"], [1, *(2 * fit.covariates()["coefficient"])], atol=2e-3)
    np.testing.assert_allclose(found.population.residual_sd, 2.0, atol=2e-3)
    assert (rows["coefficient_se"] > 0).all()
    assert found.log_likelihood == pytest.approx(fit.log_likelihood, abs=1e-5)
    a, c = np.asarray(found.parameters.slope)[:, 0], np.asarray(found.parameters.intercept)
    beta, (sd,) = rows["coefficient"].to_numpy(), found.population.residual_sd
    x = np.concatenate([np.ones((SUBJECTS, 1)), predictors(table)], axis=1)
    start = np.append(beta, np.log(sd))
    unit = np.append(rows["coefficient_se"].to_numpy(), 0.05)

    def height(step):
        at = start + 0.05 * step * unit
        return brute_force(a, c, values, x @ at[:-1], np.exp(at[-1]))

    step = np.eye(start.size)
    hessian = [[(height(k + n) - height(k - n) - height(n - k) + height(-k - n)) / 4 for n in step] for k in step]
    errors = np.sqrt(np.diag(np.linalg.inv(-np.array(hessian)))) * 0.05 * unit
    np.testing.assert_allclose(rows["coefficient_se"], errors[:-1], rtol=1e-3)
    np.testing.assert_allclose(found.population.residual_sd_se, sd * errors[-1], rtol=1e-3)


def test_other_models_and_missing_answers_have_covariates_too(answers, fit):
    values, table = answers
    graded = irtjax.fit(values, "graded", covariates=table.reset_index(drop=True), priors=None)
    assert graded.log_likelihood == pytest.approx(fit.log_likelihood, abs=1e-6)
    np.testing.assert_allclose(graded.covariates().iloc[:, 1:3], fit.covariates().iloc[:, 1:3], atol=1e-3)
    masked = np.where(np.random.default_rng(0).random(values.shape) < 0.2, -1, values)
    some = irtjax.fit(matrix(masked), covariates=table, priors=None)
    mean = predictors(table) @ some.covariates()["coefficient"].to_numpy()
    assert some.log_likelihood == pytest.approx(of_fit(some, masked, mean), abs=1e-6)


def test_an_item_that_all_had_right_is_placed_afterwards(answers):
    values, table = answers
    with_easy = np.concatenate([values, np.ones((SUBJECTS, 1), np.int8)], axis=1)
    found = irtjax.fit(matrix(with_easy), covariates=table, priors=None)
    mean = predictors(table) @ found.covariates()["coefficient"].to_numpy()
    assert found.log_likelihood == pytest.approx(of_fit(found, with_easy, mean), abs=1e-5)


def test_several_dimensions_have_coefficients_each():
    rng = np.random.default_rng(3)
    x = rng.normal(size=600)
    theta = np.stack([0.8 * x, -0.5 * x], axis=1) + rng.normal(size=(600, 2))
    slope = np.zeros((16, 2))
    slope[:8, 0], slope[8:, 1] = 1.5, 1.5
    order = np.r_[8:16, 0:8]
    values = (rng.random((600, 16)) < expit(theta @ slope[order].T)).astype(np.int8)
    found = irtjax.fit(matrix(values), dims=2, covariates=pd.DataFrame({"x": x}), priors=None, standard_errors=True)
    table = found.covariates()
    assert found.converged
    # in whatever rotation, predicted logits of all items are those of the truth
    by_x = np.asarray(found.parameters.slope) @ table[["coefficient_1", "coefficient_2"]].to_numpy()[0]
    np.testing.assert_allclose(by_x, slope[order] @ [0.8, -0.5], atol=0.45)
    assert (table[["coefficient_1_se", "coefficient_2_se"]] > 0).all(axis=None)


def test_a_fit_with_covariates_is_saved_and_loaded_whole(answers, fit, tmp_path):
    fit.save(tmp_path)
    assert irtjax.load_fit(tmp_path) == fit
    written = pd.read_csv(tmp_path / "covariates.csv")
    assert written["covariate"].tolist() == fit.covariates()["covariate"].tolist()
    assert fit.record()["covariates"][0]["coefficient"] == fit.covariates()["coefficient"][0]
    assert "course=morning" in repr(fit)
    assert "of the variance of ability" in repr(fit)
    irtjax.fit(matrix(answers[0]), priors=None).save(tmp_path)  # over the same folder
    assert not (tmp_path / "covariates.csv").exists()


def test_scores_of_others_are_by_the_population_that_is_named(answers, fit):
    values, _ = answers
    mean = float(fit.population.means[7, 0])
    own = irtjax.score(fit, matrix(values[7:8]), population=(mean, 1.0))["ability"]
    np.testing.assert_allclose(own, fit.ability[7:8], atol=1e-4)


def test_what_needs_one_population_says_so(fit):
    from irtjax.scale.misfit import write_misfit
    from irtjax.scale.overall_fit import overall_fit

    for refuses in (lambda: overall_fit(fit), lambda: write_misfit(fit, "nowhere"), lambda: fit.groups()):
        with pytest.raises(InputError, match=r"covariates|`groups`"):
            refuses()
    with pytest.raises(InputError, match="given no `covariates`"):
        irtjax.fit(matrix(simulated()[0]), priors=None).covariates()


def table_of(**columns):
    return pd.DataFrame(columns, index=[f"s{j}" for j in range(SUBJECTS)])


@pytest.mark.parametrize(
    ("covariates", "message"),
    [
        (table_of(age=1.0), "'age' is 1.0 for all subjects"),
        (table_of(age=[np.nan] + [1.0, 2.0] * 149 + [1.0]), "subject 's0' has no 'age'"),
        (table_of(age=[np.inf] + [1.0, 2.0] * 149 + [1.0]), "'age' of subject 's0' is infinite"),
        (table_of(a=range(SUBJECTS), b=np.arange(SUBJECTS) * 2.0 + 1), "'b' is determined by the others"),
        (table_of(a=range(SUBJECTS)).iloc[1:], "subject 's0' is not there, expected a row for each subject"),
        ({"a": [1, 2, 3]}, "3 rows for 300 subjects"),
        ("age", "expected a table with a row for each subject"),
    ],
)
def test_covariates_that_cannot_be_used_are_refused_by_name(answers, covariates, message):
    with pytest.raises(InputError, match=message):
        irtjax.fit(matrix(answers[0]), covariates=covariates)


def test_options_that_do_not_go_with_covariates_are_refused(answers):
    values, table = answers
    with pytest.raises(InputError, match="`covariates` do not go with `groups`"):
        irtjax.fit(matrix(values), covariates=table, groups=table["course"])
    with pytest.raises(InputError, match="`covariates`: abilities are integrated out on shared nodes"):
        irtjax.fit(matrix(values), covariates=table, integration="normal")
    with pytest.raises(InputError, match="estimator svi has no option `covariates`"):
        irtjax.fit(matrix(values), "1pl", "svi", covariates=table)


def test_orthogonal_columns_are_the_predictors(answers):
    found = as_predictors(answers[1], np.array([f"s{j}" for j in range(SUBJECTS)]))
    for with_mean in (False, True):
        design = design_of(found, with_mean=with_mean)
        rebuilt = design.columns @ design.triangle
        np.testing.assert_allclose(rebuilt[:, int(with_mean) :], predictors(answers[1]), atol=1e-10)
        np.testing.assert_allclose(design.columns.T @ design.columns, SUBJECTS * np.eye(rebuilt.shape[1]), atol=1e-8)
        if with_mean:
            np.testing.assert_allclose(design.columns[:, 0], 1.0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::irtjax.estimation.diagnostics.FitWarning")  # a sample in a hundred has no maximum
def test_intervals_cover_the_coefficients_that_answers_were_made_with():
    """95% of 3 coefficients of 200 samples; the share of 600 intervals has a standard error of 0.9%."""
    z = []
    for seed in range(200):
        values, table = simulated(seed + 100, 400)
        found = irtjax.fit(matrix(values), covariates=table)
        if found.converged:
            error = found.covariates()["coefficient"] - [SLOPE, OTHERS["morning"], OTHERS["online"]]
            z.append(error / found.covariates()["coefficient_se"])
    assert len(z) > 190
    assert 0.93 < np.mean(np.abs(z) < 1.96) < 0.98
    assert np.abs(np.mean(z, axis=0)).max() < 0.25  # 3.5 standard errors
    assert 0.9 < np.std(z) < 1.1


def test_a_search_of_modes_that_finds_no_step_is_silent():
    """Steep 4PL items of subjects who are far apart: some trials have a lower asymptote above the upper."""
    rng = np.random.default_rng(0)
    covariate = rng.normal(size=600) + np.random.default_rng(1).normal(0, 0.8, 600)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # any other is an error
        fit = irtjax.fit("docs/guide/responses.csv", "4pl", covariates=pd.DataFrame({"x": covariate}))
    assert fit.converged
