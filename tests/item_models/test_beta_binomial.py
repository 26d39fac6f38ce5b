"""Counts whose trials agree more than chance: a fit against sums of SciPy's distribution, and what is refused."""

import numpy as np
import pytest
from scipy.special import expit, logsumexp
from scipy.stats import betabinom, norm

import irtjax
from irtjax import InputError
from irtjax.fits import category_text
from irtjax.item_models.beta_binomial import BETA_BINOMIAL
from irtjax.item_models.categories import Coordinates
from irtjax.item_models.coded_counts import coded
from irtjax.item_models.families import Families
from irtjax.plots.fitted_items import information_of_items
from irtjax.responses.from_arrays import of_counts

SUBJECTS, ITEMS, PHI = 150, 6, 6.0
PLACES = np.linspace(-8, 8, 161)


@pytest.fixture(scope="module")
def counts():
    """Of three or eight trials, of the first item always eight; some are missing."""
    rng = np.random.default_rng(1)
    slope, difficulty = rng.uniform(0.8, 2, ITEMS), rng.normal(0, 1, ITEMS)
    p = expit(slope * (rng.normal(size=(SUBJECTS, 1)) - difficulty))
    n = rng.choice([3, 8], size=p.shape)
    n[:, 0] = 8
    k = rng.binomial(n, rng.beta(p * PHI, (1 - p) * PHI)).astype(float)
    k[rng.random(p.shape) < 0.05] = np.nan
    return of_counts(k, n, [f"s{j}" for j in range(SUBJECTS)], [f"q{i}" for i in range(ITEMS)])


def log_likelihood(responses, vector):
    """Of slopes, intercepts and log φ, by a sum over 161 places."""
    slope, intercept, log_phi = vector.reshape(3, ITEMS)
    p, phi = expit(PLACES[:, None] * slope + intercept), np.exp(log_phi)
    of_places = np.zeros((SUBJECTS, len(PLACES)))
    for i in range(ITEMS):
        there = responses.observed[:, i]
        k, n = (np.asarray(leaf)[there, i, None] for leaf in (responses.values, responses.trials))
        of_places[there] += betabinom.logpmf(k, n, p[:, i] * phi[i], (1 - p[:, i]) * phi[i])
    weights = norm.logpdf(PLACES) + np.log(PLACES[1] - PLACES[0])
    return logsumexp(of_places + weights, axis=1).sum()


@pytest.mark.slow
def test_a_fit_is_the_maximum_and_has_its_errors(counts):
    fit = irtjax.fit(counts, "beta_binomial", priors=None)
    items = fit.parameters
    at = np.concatenate([items.slope[:, 0], items.intercept, items.others[:, 0]])
    assert fit.converged
    assert fit.log_likelihood == pytest.approx(log_likelihood(counts, at), abs=1e-6)
    unit = 1e-3 * np.eye(at.size)
    gradient = [log_likelihood(counts, at + u) - log_likelihood(counts, at - u) for u in unit]
    np.testing.assert_allclose(gradient, 0, atol=1e-5)
    own = unit[[0, ITEMS, 2 * ITEMS]]  # of the first item; the others hardly move its errors
    information = np.array(
        [
            [
                log_likelihood(counts, at + u - v)
                + log_likelihood(counts, at - u + v)
                - log_likelihood(counts, at + u + v)
                - log_likelihood(counts, at - u - v)
                for v in own
            ]
            for u in own
        ]
    )
    error = np.sqrt(np.diag(np.linalg.inv(information / 4e-6)))
    assert fit.item_columns["precision_se"][0] == pytest.approx(error[2] * np.exp(at[2 * ITEMS]), rel=0.05)
    np.testing.assert_allclose(irtjax.score(fit, counts).ability, fit.ability, atol=1e-5)


def test_derivatives_are_those_of_differences(counts):
    """At a very small, a usual, and a very large precision, where it is the binomial."""
    known = coded(Families((BETA_BINOMIAL,), (0,), 1), np.asarray(counts.values), counts.trials, np.ones(ITEMS, int))
    (family,), size, top = known.model.families, known.model.per_item, known.top[:3]
    x, log_phi, step = np.array([[-3.0, 0.2, 1.0]]), np.array([[-9.0], [1.5], [25.0]]), 1e-5

    def at(x_more=0.0, phi_more=0.0):
        return Coordinates(x + x_more, log_phi + phi_more, top)

    def slopes(function):
        """Differences by x and by log φ."""
        return [(function(at(*one)) - function(at(*-one))) / (2 * step) for one in step * np.eye(2)]

    by_x, by_others = family.derivatives(at(), size)
    expected = slopes(lambda where: family.natural(where, size)[0])
    np.testing.assert_allclose([by_x, by_others[..., 0]], expected, rtol=1e-6, atol=1e-5)
    residual = np.random.default_rng(0).normal(size=(1, 3, size))
    for k in range(2):

        def weighted(where, k=k):
            by_x, by_others = family.derivatives(where, size)
            return (residual * (by_x, by_others[..., 0])[k]).sum(axis=2)

        np.testing.assert_allclose(family.curvature(at(), residual)[..., k], np.stack(slopes(weighted), 2), atol=1e-5)
    eta, log_normalizer = family.natural(at(), size)
    none_of_eight = eta[0, 2, family.trials[0]] - log_normalizer[0, 2]
    assert none_of_eight == pytest.approx(8 * np.log(expit(-1.0)), rel=1e-6)


def test_one_line_says_what_cannot_be_fitted():
    n = np.tile(np.arange(40, 100), (3, 1)).T
    many = of_counts(n - 1, n, [f"s{j}" for j in range(60)], list("abc"))
    with pytest.raises(InputError, match="60 different numbers of trials, up to 99, have 4,230 different counts"):
        irtjax.fit(many, "beta_binomial")


def test_the_note_on_dispersed_counts_names_the_model():
    (line,) = category_text.notes({"dispersion": 2.0}, ITEMS)
    assert line.endswith("`beta_binomial` allows for it")


def test_what_is_not_there_for_the_model_is_refused():
    at = Coordinates(np.zeros((1, 1)), np.zeros((1, 1)), np.zeros(1, int))
    with pytest.raises(InputError, match="take the binomial here"):
        BETA_BINOMIAL.natural(at, 1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::irtjax.FitWarning")
def test_pictures_show_curves_and_information(counts):
    """The information of a response is the mean square of its score, here by differences."""
    fit = irtjax.fit(counts, "beta_binomial", max_iterations=30, standard_errors=False)
    theta, step = np.array([-1.0, 0.5]), 1e-5
    slope, intercept = fit.parameters.slope[:, 0], fit.parameters.intercept
    phi = np.exp(fit.parameters.others[:, 0])

    def log_p(k, n, i, theta):
        p = expit(slope[i] * theta + intercept[i])
        return betabinom.logpmf(k, n, p * phi[i], (1 - p) * phi[i])

    found = information_of_items(fit, theta)
    for i in (0, 3):
        there = counts.observed[:, i]
        expected = 0.0
        for n in (3, 8):
            k = np.arange(n + 1)[:, None]
            score = (log_p(k, n, i, theta + step) - log_p(k, n, i, theta - step)) / (2 * step)
            share = (counts.trials[there, i] == n).mean()
            expected = expected + share * (np.exp(log_p(k, n, i, theta)) * score**2).sum(axis=0)
        np.testing.assert_allclose(found[:, i], expected, rtol=1e-5)
    for draw in (irtjax.plots.curves, irtjax.plots.information, irtjax.plots.wright):
        draw(fit)
