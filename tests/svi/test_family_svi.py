"""Variational inference of counts, grades and shares: against marginal maximum likelihood, and against truth."""

import numpy as np
import pytest
from scipy.special import expit

import irtjax
from irtjax.responses.from_arrays import of_counts, of_grades, of_shares

SUBJECTS, ITEMS = 150, 40


def truth(items=ITEMS):
    rng = np.random.default_rng(3)
    theta, slope, b = rng.normal(size=SUBJECTS), np.exp(0.3 * rng.normal(size=items)), rng.normal(size=items)
    return rng, (theta - theta.mean()) / theta.std(), slope, b


def ids(items=ITEMS):
    return [f"s{j}" for j in range(SUBJECTS)], [f"q{i}" for i in range(items)]


@pytest.fixture(scope="module")
def counts():
    """Successes of 5 trials, a tenth of them missing, and the abilities."""
    rng, theta, slope, b = truth()
    drawn = rng.binomial(5, expit(slope * (theta[:, None] - b))).astype(float)
    drawn[rng.uniform(size=drawn.shape) < 0.1] = np.nan
    return of_counts(drawn, 5, *ids()), theta


def grades(own_slopes):
    """Grades 0 to 3 by the graded response model or, with slopes of 1, by partial credit; and the abilities."""
    rng, theta, slope, b = truth()
    places = b[:, None] + np.array([-1.0, 0.0, 1.0])
    if own_slopes:
        above = expit(slope[None, :, None] * (theta[:, None, None] - places[None]))
        drawn = (rng.random((SUBJECTS, ITEMS, 1)) < above).sum(axis=2)
    else:
        eta = np.cumsum(np.pad(theta[:, None, None] - places[None], ((0, 0), (0, 0), (1, 0))), axis=2)
        drawn = (eta + rng.gumbel(size=eta.shape)).argmax(axis=2)
    return of_grades(drawn.astype(float), *ids()), theta


def shares():
    """Shares by the Beta model, with exact ends, and the abilities."""
    rng, theta, slope, b = truth()
    p = expit(slope * (theta[:, None] - b))
    drawn = rng.beta(8 * p, 8 * (1 - p))
    return of_shares(np.where(drawn < 0.03, 0.0, np.where(drawn > 0.97, 1.0, drawn)), *ids()), theta


def agrees(fit, other, names, apart=0.4, narrower=0.65):
    """Holds estimates to those of another estimator: abilities within a quarter of an error, parameters within `apart`.

    Independent posteriors are narrower: `narrower` is the least ratio of median errors. The more a response tells of
    ability, the more the errors of an item are those of the scale, which all items share and independent ones lack.
    """
    assert fit.converged
    off = (fit.ability - other.ability) / other.ability_se
    assert np.sqrt((off**2).mean()) < 0.25
    assert np.median(fit.ability_se / other.ability_se) == pytest.approx(1.0, abs=0.1)
    for name in names:
        one, two = (each.item_columns[name] for each in (fit, other))
        error = other.item_columns[f"{name}_se"]
        assert np.sqrt(np.mean(((one - two) / error) ** 2)) < apart, name
        assert narrower < np.median(fit.item_columns[f"{name}_se"] / error) < 1.1, name


@pytest.mark.slow
def test_counts_whose_trials_agree_do_so_too():
    """Of 12 trials that correlate by 0.1 to 0.3; with precisions, and intervals that contain the abilities."""
    rng, theta, slope, b = truth()
    phi, p = np.exp(rng.normal(1.5, 0.5, ITEMS)), expit(slope * (theta[:, None] - b))
    drawn = rng.binomial(12, rng.beta(p * phi, (1 - p) * phi)).astype(float)
    drawn[rng.uniform(size=drawn.shape) < 0.1] = np.nan
    responses = of_counts(drawn, 12, *ids())
    fit, other = (irtjax.fit(responses, "beta_binomial", estimator) for estimator in ("svi", "mml"))
    agrees(fit, other, ["difficulty", "discrimination", "precision"])
    assert np.mean(np.abs(fit.ability - theta) < 1.96 * fit.ability_se) > 0.9
    assert fit.details["elbo"] < other.log_likelihood < fit.log_likelihood
    independent = irtjax.fit(responses, "binomial", "svi")
    assert np.mean(np.abs(independent.ability - theta) < 1.96 * independent.ability_se) < 0.9


@pytest.mark.slow
def test_counts_agree_with_marginal_maximum_likelihood(counts, tmp_path):
    responses, theta = counts
    fit, other = (irtjax.fit(responses, "binomial", estimator) for estimator in ("svi", "mml"))
    agrees(fit, other, ["difficulty", "discrimination"])
    assert np.mean(np.abs(fit.ability - theta) < 1.96 * fit.ability_se) > 0.88
    assert fit.details["elbo"] < other.log_likelihood < fit.log_likelihood
    assert fit.population.sd == pytest.approx(1.0)
    assert fit.ability.mean() == pytest.approx(0, abs=1e-9)
    assert repr(fit).startswith("binomial by svi of counts")
    assert f"{SUBJECTS} subjects × {ITEMS} items, converged" in repr(fit)
    fit.save(tmp_path)
    assert irtjax.load_fit(tmp_path) == fit
    assert fit.draws(7)["discrimination"].shape == (7, ITEMS)
    scored = irtjax.score(fit, responses)
    assert np.corrcoef(scored.ability, fit.ability)[0, 1] > 0.999


@pytest.mark.slow
@pytest.mark.parametrize("priors", ["vague", "hierarchical"])
def test_grades_agree_with_marginal_maximum_likelihood(priors):
    responses, theta = grades(own_slopes=True)
    fit, other = irtjax.fit(responses, "graded", "svi", priors=priors), irtjax.fit(responses, "graded")
    agrees(fit, other, ["discrimination", "threshold_1", "threshold_2", "threshold_3"], apart=0.7)
    assert np.mean(np.abs(fit.ability - theta) < 1.96 * fit.ability_se) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("model", ["pcm", "rsm"])
def test_slopes_of_one_leave_the_population_its_spread(model):
    responses, _ = grades(own_slopes=False)
    fit, other = irtjax.fit(responses, model, "svi"), irtjax.fit(responses, model)
    agrees(fit, other, ["difficulty"])
    assert (fit.item_columns["discrimination"] == 1).all()
    assert fit.population.sd == pytest.approx(np.asarray(other.population.sd), rel=0.05)


@pytest.mark.slow
def test_shares_agree_with_marginal_maximum_likelihood():
    responses, theta = shares()
    fit, other = irtjax.fit(responses, "ordered_beta", "svi"), irtjax.fit(responses, "ordered_beta")
    agrees(fit, other, ["difficulty", "discrimination", "precision"], apart=0.7, narrower=0.55)
    # ends that are cut off are not quite the model: intervals of both hold the truth less often
    covered, of_mml = (np.mean(np.abs(each.ability - theta) < 1.96 * each.ability_se) for each in (fit, other))
    assert covered > of_mml - 0.03


@pytest.mark.slow
def test_batches_lead_to_the_same_abilities():
    responses, theta = grades(own_slopes=True)
    fit = irtjax.fit(responses, "gpcm", "svi", batch_subjects=100, batch_items=20)
    assert np.corrcoef(fit.ability, theta)[0, 1] > 0.95
