"""Likelihood-ratio tests of guessing, against exact ones."""

import numpy as np
import pytest
from references import matrix, simulated
from scipy.special import expit, logsumexp

from irtjax.estimation import driver
from irtjax.responses.matrix import ResponseMatrix
from irtjax.scale import guessing
from irtjax.scale.guessing import guessing_tests


@pytest.mark.slow
def test_statistics_are_those_of_the_reference(monkeypatch, oracle):
    """Or lower, where a model with c = 0 has a maximum that is higher than the one that the reference found.

    There are several, and rounding has a say in which of them is reached: from the full maximum, asymptotes of other
    items move. So every likelihood is that of the responses by quadrature, and none is below the reference's.
    """
    responses, expected = oracle.responses("5_contradiction"), oracle.table("lrt3v2_5_contradiction_exact")
    keep = np.isin(responses.item_ids, expected["item"])
    reached = []

    def run(*args, **kwargs):
        reached.append(driver.run(*args, **kwargs))
        return reached[-1]

    monkeypatch.setattr(guessing, "run", run)
    values = responses.values[:, keep]
    found = guessing.guessing_tests(ResponseMatrix(values, responses.subject_ids, responses.item_ids[keep]))
    ratio, exact = found["likelihood_ratio"].to_numpy(), expected["LR"].to_numpy()
    estimates = [estimate.items for estimate, _ in reached]
    full = log_likelihood(values, estimates[0])
    assert full == pytest.approx((expected["logLik_restricted"] + expected["LR"] / 2).max(), abs=0.01)
    for item in np.flatnonzero(exact > 1):
        assert np.isneginf(estimates[1 + item].lower[item])
        restricted = log_likelihood(values, estimates[1 + item])
        assert 2 * (full - restricted) == pytest.approx(ratio[item], abs=2e-3)
        assert restricted > expected["logLik_restricted"][item] - 0.005
    assert (ratio[exact > 1] > exact[exact > 1] - 0.5).all()
    assert (ratio[exact < 1] < 1).all()  # known to be small is all that is known of them
    assert (ratio[exact < 1] > exact[exact < 1] - 0.02).all()
    assert not (found["p_holm"] < 0.05).any()


def log_likelihood(values, items):
    """Of the 3PL under N(0, 1), by 601 nodes."""
    nodes = np.linspace(-6, 6, 601)
    slope, intercept, lower = (np.asarray(leaf, float) for leaf in (items.slope[:, 0], items.intercept, items.lower))
    p = expit(lower) + (1 - expit(lower)) * expit(slope * nodes[:, None] + intercept)
    weights = -(nodes**2) / 2
    logs = (values == 1) @ np.log(p).T + (values == 0) @ np.log1p(-p).T
    return (logsumexp(logs + weights, axis=1) - logsumexp(weights)).sum()


@pytest.mark.slow
def test_guessing_is_found_where_it_is():
    rng = np.random.default_rng(0)
    values = simulated(1, np.full(20, 1.8), np.linspace(-2, 2, 20), 2000)
    guessed = np.array([0, 2, 4])
    lucky = rng.random((2000, 3)) < 0.3
    values[:, guessed] = np.maximum(values[:, guessed], lucky)
    found = guessing_tests(matrix(values))
    assert set(np.flatnonzero(found["p_holm"] < 0.05)) == set(guessed)
    np.testing.assert_allclose(found["guessing"][guessed], 0.3, atol=0.08)


def test_progress_is_reported():
    seen = []
    guessing_tests(matrix(simulated(0, np.ones(5), np.zeros(5), 200)), seen.append)
    assert seen == [1, 2, 3, 4, 5]
