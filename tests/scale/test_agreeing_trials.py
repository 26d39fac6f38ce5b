"""Fit of items and subjects where the trials of a count agree: against sums over SciPy's distribution."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import betabinom, kstest, norm

import irtjax
from irtjax.kernels.quadrature import rectangular
from irtjax.responses.from_arrays import of_counts
from irtjax.scale.forms import forms
from irtjax.scale.item_fit import s_x2

SUBJECTS, ITEMS = 150, 6
SLOPE, DIFFICULTY = np.array([0.9, 1.2, 1.5, 1.8, 1.1, 1.4]), np.linspace(-1.2, 1.2, ITEMS)
PHI = np.array([2.0, 4.0, 6.0, 9.0, 12.0, 5.0])
PLACES = np.linspace(-8, 8, 1601)
STEP = 1e-5

pytestmark = pytest.mark.filterwarnings("ignore::irtjax.FitWarning")


def drawn(num_subjects, trials, seed, missing=0.0):
    rng = np.random.default_rng(seed)
    p = expit(SLOPE * (rng.normal(size=(num_subjects, 1)) - DIFFICULTY))
    n = np.broadcast_to(rng.choice(trials, size=p.shape), p.shape)
    k = rng.binomial(n, rng.beta(p * PHI, (1 - p) * PHI)).astype(float)
    k[rng.random(p.shape) < missing] = np.nan
    return of_counts(k, n, [f"s{j}" for j in range(num_subjects)], [f"q{i}" for i in range(ITEMS)])


def parameters(fit):
    return fit.parameters.slope[:, 0], fit.parameters.intercept, np.exp(fit.parameters.others[:, 0])


def log_p(fit, k, n, theta):
    """(…, I) of counts that fit beside (…, I)."""
    slope, intercept, phi = parameters(fit)
    p = expit(slope * np.asarray(theta)[..., None] + intercept)
    return betabinom.logpmf(k, n, p * phi, (1 - p) * phi)


@pytest.fixture(scope="module")
def fit():
    """Of three or eight trials, some missing; not at the maximum, which does not matter here."""
    return irtjax.fit(drawn(SUBJECTS, [3, 8], 1, 0.05), "beta_binomial", max_iterations=40, standard_errors=False)


def test_mean_squares_by_brute_force(fit):
    """Posterior means of squared residuals over their variance, n P (1 - P) (1 + (n - 1) ρ), weighed by information."""
    given, (slope, intercept, phi) = fit.responses, parameters(fit)
    there, k, n = given.observed, np.where(given.observed, given.values, 0), np.asarray(given.trials)
    p = expit(slope * PLACES[:, None] + intercept)
    height = np.tile(norm.logpdf(PLACES), (SUBJECTS, 1))
    for i in range(ITEMS):
        own = betabinom.logpmf(k[:, i, None], n[:, i, None], p[:, i] * phi[i], (1 - p[:, i]) * phi[i])
        height += np.where(there[:, i, None], own, 0.0)
    weights = np.exp(height - height.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    terms = np.zeros((3, SUBJECTS, ITEMS))
    for i in range(ITEMS):
        mean, spread = n[:, i, None] * p[:, i], p[:, i] * (1 - p[:, i])
        variance = n[:, i, None] * spread * (1 + (n[:, i, None] - 1) / (1 + phi[i]))  # of k
        np.testing.assert_allclose(variance[0], betabinom.var(n[0, i], p[:, i] * phi[i], (1 - p[:, i]) * phi[i]))
        square = (k[:, i, None] - mean) ** 2
        weight = (n[:, i, None] * spread) ** 2 / variance  # what a count tells of logit P, near enough
        ratio = square / variance
        # as squares of residuals of P, each by the information of its response per squared unit of P
        told = weight / spread
        terms[:, :, i] = [
            (weights * part).sum(axis=1) for part in (square / n[:, i, None] ** 2 * told**2, told * spread, ratio)
        ]
    terms = np.where(there, terms, 0.0)
    found = irtjax.item_fit(fit)
    np.testing.assert_allclose(found["infit"], terms[0].sum(axis=0) / terms[1].sum(axis=0), rtol=1e-6)
    np.testing.assert_allclose(found["outfit"], terms[2].sum(axis=0) / there.sum(axis=0), rtol=1e-6)
    assert found["s_x2"].isna().all()  # as responses have different numbers of trials
    of_subjects = irtjax.person_fit(fit)
    np.testing.assert_allclose(of_subjects["outfit"], terms[2].sum(axis=1) / there.sum(axis=1), rtol=1e-6)


def test_log_likelihoods_of_subjects_by_brute_force(fit):
    """lz, with expectations over all counts that there could be."""
    given, found = fit.responses, irtjax.person_fit(fit)
    for j in (0, 7, 40):
        there, theta = given.observed[j], found["ability"][j]
        k, n = np.asarray(given.values)[j], np.asarray(given.trials)[j]
        residual = variance = both = information = slope = 0.0
        for i in np.flatnonzero(there):
            every = np.arange(n[i] + 1)[:, None]
            at, low, high = (log_p(fit, every, n[i], theta + step)[:, i] for step in (0.0, -STEP, STEP))
            p, score = np.exp(at), (high - low) / (2 * STEP)
            centred = at - p @ at
            residual, slope = residual + centred[k[i]], slope + score[k[i]]
            variance, both = variance + p @ centred**2, both + p @ (centred * score)
            information += p @ score**2
        assert found["lz"][j] == pytest.approx(residual / np.sqrt(variance), rel=1e-5)
        c = both / information
        star = (residual - c * slope) / np.sqrt(variance - 2 * c * both + c**2 * information)
        assert found["lz_star"][j] == pytest.approx(star, rel=1e-4)


def test_sums_of_counts_of_as_many_trials():
    """S-X2 from SciPy's probabilities, for items of three and of five trials."""
    given = drawn(SUBJECTS, [3], 2)
    n = np.broadcast_to([3, 3, 5, 3, 3, 3], given.trials.shape)
    given = of_counts(given.values, n, given.subject_ids, given.item_ids)
    fit = irtjax.fit(given, "beta_binomial", max_iterations=40, standard_errors=False)
    nodes, top = rectangular(61), n[0]
    p = np.exp(np.stack([log_p(fit, k, top, nodes.nodes[:, 0]) for k in range(6)], axis=2))
    expected = s_x2(forms(given.values.astype(int)), p, np.exp(nodes.log_weights), top, np.full(ITEMS, 3))
    found = irtjax.item_fit(fit)
    for column in ("s_x2", "degrees_of_freedom", "p_value"):
        np.testing.assert_allclose(found[column], expected[column], rtol=1e-6)


@pytest.mark.slow
def test_false_alarms_under_the_model_are_few():
    """Over 20 sets of 500 subjects: p-values of S-X2 are uniform, lz* and the t of infit about standard normal."""
    p_values, infit, t, stars = [], [], [], []
    for seed in range(20):
        given = drawn(500, [5], 100 + seed)
        fit = irtjax.fit(given, "beta_binomial", priors=None, standard_errors=False)
        found, subjects = irtjax.item_fit(fit), irtjax.person_fit(fit)
        p_values += found["p_value"].tolist()
        infit += found["infit"].tolist()
        t += found["infit_t"].tolist()
        stars += subjects["lz_star"].tolist()
    print(np.mean(infit), np.std(t), (np.array(p_values) < 0.05).mean(), np.mean(stars), np.std(stars))
    assert np.mean(infit) == pytest.approx(1, abs=0.01)
    assert kstest(p_values, "uniform").pvalue > 0.01
    assert (np.abs(t) > 1.96).mean() < 0.1
    assert np.std(stars) == pytest.approx(1, abs=0.1)
