"""The unit of ability of nominal fits under priors, against brute force and a simulation with known truth."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from scipy.stats import norm

from irtjax.estimation.families import fit_families
from irtjax.responses.from_arrays import of_grades

NODES = np.linspace(-6, 6, 481)


@pytest.fixture(scope="module")
def simulated():
    """Thirty subjects, forty items of four categories in any order."""
    rng = np.random.default_rng(4)
    theta, slopes = rng.normal(size=30), rng.normal(0, 1, (40, 4))
    p = softmax(theta[:, None, None] * slopes, axis=2)
    values = (rng.random((30, 40, 1)) > p.cumsum(axis=2)[:, :, :-1]).sum(axis=2).astype(float)
    responses = of_grades(values, [f"s{j}" for j in range(30)], [f"i{i}" for i in range(40)], [0, 1, 2, 3])
    return theta, slopes, fit_families(responses, "nominal")


def test_abilities_are_as_wide_as_the_population(simulated):
    """Priors of slopes, whose mean is 0, would have them 1.2 times as wide."""
    theta, slopes, fit = simulated
    assert np.mean(fit.ability**2 + fit.ability_se**2) == pytest.approx(1, abs=1e-3)
    assert fit.ability.mean() == pytest.approx(0, abs=1e-3)
    white = (theta - theta.mean()) / theta.std()
    sign = np.sign(white @ fit.ability)  # categories without order do not say which way is up
    found = sign * np.stack([fit.item_columns[f"slope_{k}"] for k in range(4)], axis=1)
    errors = np.stack([fit.item_columns[f"slope_{k}_se"] for k in range(4)], axis=1)
    centred = slopes - slopes.mean(axis=1, keepdims=True)
    assert np.mean(np.abs(found - centred) < 1.96 * errors) > 0.9


def test_posteriors_and_log_likelihood_are_those_of_the_items(simulated):
    *_, fit = simulated
    slopes, intercepts = (
        np.stack([fit.item_columns[f"{name}_{k}"] for k in range(4)], axis=1) for name in ("slope", "intercept")
    )
    log_p = log_softmax(NODES[:, None, None] * slopes + intercepts, axis=2)
    chosen = np.asarray(fit.responses.values).astype(int)
    joint = log_p[:, np.arange(40)[None], chosen].sum(axis=2).T + norm.logpdf(NODES) + np.log(NODES[1] - NODES[0])
    weights = softmax(joint, axis=1)
    mean = weights @ NODES
    np.testing.assert_allclose(fit.ability, mean, atol=1e-4)
    np.testing.assert_allclose(fit.ability_se, np.sqrt(weights @ NODES**2 - mean**2), atol=1e-4)
    assert fit.log_likelihood == pytest.approx(np.logaddexp.reduce(joint, axis=1).sum(), abs=1e-3)
