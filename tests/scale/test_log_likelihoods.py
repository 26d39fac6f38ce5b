"""Means, variances and covariances of log-likelihoods of counts and shares: against integrals and sums."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import beta, binom

import irtjax
from irtjax.responses.from_arrays import of_counts, of_shares
from irtjax.responses.scaled import ScaledResponses
from irtjax.scale import tested
from irtjax.scale.fit_statistics import person_fit
from irtjax.scale.log_likelihoods import terms_at
from irtjax.scale.person_fit import Terms
from irtjax.scoring.family_items import known_items

STEP = 1e-5
ITEMS = pd.DataFrame(
    {
        "model": ["graded", "ordered_beta", "binomial_3pl"],
        "grades": ["0|1|2", "", ""],
        "discrimination": [1.3, 0.8, 1.1],
        "difficulty": [np.nan, 0.3, -0.2],
        "threshold_1": [-1, np.nan, np.nan],
        "threshold_2": [0.4, np.nan, np.nan],
        "precision": [np.nan, 5.0, np.nan],
        "cut_0": [np.nan, -2.0, np.nan],
        "cut_1": [np.nan, 1.5, np.nan],
        "guessing": [np.nan, np.nan, 0.2],
    },
    index=["g", "y", "k"],
)


def mixed_test():
    """Responses of three subjects to a graded item, a share and a count."""
    known, values = known_items(ITEMS), np.array([[2, 0.37, 3], [0, 1.0, 0], [1, 0.0, 6]])
    trials = np.array([[1, 1, 5], [1, 1, 4], [1, 1, 6]])
    responses = ScaledResponses(values, np.array(list("abc")), known.item_ids, known.scales, trials)
    top, graded = np.asarray(known.parameters.top), np.array([True, False, False])
    single = tested.one_by_one(responses)
    times = trials.astype(float).ravel()
    items = known.parameters, known, top, graded
    return tested.Tested(None, responses, single, times, known.model, *items, None, None, False, single.answers, times)


def test_they_are_those_of_all_responses_that_there_could_be():
    test, theta = mixed_test(), np.array([-0.7, 0.2, 1.1])
    found, values = terms_at(test, np.arange(9), np.repeat(theta, 3)), test.values
    found = Terms(*(leaf.reshape(3, 3) for leaf in found))

    nodes, weights = np.polynomial.legendre.leggauss(200)
    between, weights = (1 + np.sin(np.pi * nodes / 2)) / 2, weights * np.pi / 4 * np.cos(np.pi * nodes / 2)
    row = ITEMS.loc["y"]

    def log_densities(x, y):
        """At 0, at 1 and at shares between."""
        low, high = expit(x - row.cut_0), expit(x - row.cut_1)
        shape = expit(x) * row.precision, expit(-x) * row.precision
        return np.array([np.log1p(-low), np.log(high), *(np.log(low - high) + beta.logpdf(y, *shape))])

    for j in range(3):
        low, middle, high = (
            log_densities(row.discrimination * (theta[j] + step - row.difficulty), between)
            for step in (-STEP, 0.0, STEP)
        )
        p, score = np.exp(middle) * np.concatenate([[1, 1], weights]), (high - low) / (2 * STEP)
        y = values[j, 1]
        own = middle[int(y)] if y in (0, 1) else log_densities(0.8 * (theta[j] - 0.3), np.array([y]))[2]
        mean = p @ middle
        expected = [own - mean, p @ middle**2 - mean**2, p @ (middle * score), p @ score**2]
        leaves = found.residual, found.variance, found.both, found.information
        np.testing.assert_allclose([leaf[j, 1] for leaf in leaves], expected, rtol=1e-6)
        n = test.trials.reshape(3, 3)[j, 2]
        k = np.arange(n + 1)
        low, middle, high = (0.2 + 0.8 * expit(1.1 * (theta[j] + step + 0.2)) for step in (-STEP, 0.0, STEP))
        pmf, score = binom.pmf(k, n, middle), (binom.logpmf(k, n, high) - binom.logpmf(k, n, low)) / (2 * STEP)
        centred = np.log(pmf) - pmf @ np.log(pmf)
        expected = [centred[int(values[j, 2])], pmf @ centred**2, pmf @ (centred * score), pmf @ score**2]
        np.testing.assert_allclose([leaf[j, 2] for leaf in leaves], expected, rtol=1e-7)


@pytest.mark.slow
def test_lz_of_counts_and_shares_is_about_standard_normal():
    rng, theta, slope = np.random.default_rng(0), np.random.default_rng(1).normal(size=600), np.linspace(0.7, 1.6, 24)
    mean = expit(slope * (theta[:, None] - np.linspace(-1.2, 1.2, 24)))
    ids = [f"s{j}" for j in range(600)], [f"i{i}" for i in range(24)]
    for responses in (
        of_counts(rng.binomial(6, mean), 6, *ids),
        of_shares(rng.beta(6 * mean, 6 * (1 - mean)), *ids, ends=False),
    ):
        found = person_fit(irtjax.fit(responses, "auto", standard_errors=False)).lz_star
        assert abs(found.mean()) < 0.15
        assert 0.9 < found.std() < 1.1
        assert 0.03 < (found < -1.645).mean() < 0.08
        values = np.array(responses.values)
        values[:10] = values[:10][:, rng.permutation(24)]  # whose responses belong to other items
        odd = person_fit(
            irtjax.fit(dataclasses.replace(responses, values=values), "auto", standard_errors=False)
        ).lz_star
        assert odd[:10].mean() < -1.5
