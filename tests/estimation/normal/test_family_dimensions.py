"""Long tests of grades, counts and shares in several dimensions: brute force, nodes that subjects share, the truth."""

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes
from scipy.special import expit, logsumexp

import irtjax
from irtjax.errors import InputError
from irtjax.responses.from_arrays import of_counts, of_grades, of_shares

DROPS = np.array([1.5, 0.5, -0.5, -1.5])  # of thresholds of grades, from their mean
TRIALS = 5


def simulated(num_subjects, num_items, kind="grades", dims=2, seed=0):
    """Responses, of which a tenth is missing, abilities, slopes with 0 above the diagonal, and intercepts."""
    rng = np.random.default_rng(seed)
    theta, weak = rng.standard_normal((num_subjects, dims)), rng.random((num_items, dims)) < 0.4
    slope = np.exp(0.3 * rng.standard_normal((num_items, dims))) * np.where(weak, 0.2, 1.0)
    slope[:dims] = np.tril(slope[:dims])
    intercept = 0.5 * rng.standard_normal(num_items)
    x, missing = theta @ slope.T + intercept, rng.random((num_subjects, num_items)) < 0.1
    names = [f"s{j}" for j in range(num_subjects)], [f"{kind}{i}" for i in range(num_items)]
    if kind == "grades":
        values = (rng.random(x.shape)[:, :, None] < expit(x[:, :, None] + DROPS)).sum(axis=2).astype(float)
        responses = of_grades(np.where(missing, np.nan, values), *names)
    elif kind == "counts":
        values = rng.binomial(TRIALS, expit(x)).astype(float)
        responses = of_counts(np.where(missing, np.nan, values), np.full(x.shape, TRIALS), *names)
    else:
        mean, ends = np.clip(expit(x), 0.02, 0.98), rng.random(x.shape)
        values = np.clip(rng.beta(8 * mean, 8 * (1 - mean)), 1e-6, 1 - 1e-6)
        values = np.where(ends < expit(-x - 3), 0.0, np.where(ends > 1 - expit(x - 3), 1.0, values))
        responses = of_shares(np.where(missing, np.nan, values), *names)
    return responses, theta, slope, intercept


def parameters(fit, ending=""):
    """(I, K) of what items are reported to be, or their standard errors."""
    names = [name.removesuffix("_se") for name in fit.item_columns if name.endswith("_se")]
    return np.stack([fit.item_columns[name + ending] for name in names], axis=1)


@pytest.fixture(scope="module")
def grades():
    return simulated(80, 40)[0]


@pytest.fixture(scope="module")
def fit(grades):
    return irtjax.fit(grades, "graded", dims=2, integration="normal", priors=None)


@pytest.fixture(scope="module")
def brute(grades):
    """Log-likelihoods (J, I, Q) of graded responses by slopes and intercepts, at nodes (Q, 2) with log weights."""
    line = np.linspace(-6, 6, 81)
    nodes = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    log_weights = -0.5 * (nodes**2).sum(axis=1) - np.log(2 * np.pi) + 2 * np.log(line[1] - line[0])
    values = np.asarray(grades.values).astype(int)

    def of_item(i, slope, cuts):
        above = np.pad(expit((nodes @ slope)[:, None] + cuts), ((0, 0), (1, 0)), constant_values=1.0)
        p = above - np.pad(above[:, 1:], ((0, 0), (0, 1)))
        return np.where(values[:, i, None] >= 0, np.log(p.T)[np.maximum(values[:, i], 0)], 0.0)

    return nodes, log_weights, of_item


def test_likelihood_abilities_and_maximum_are_those_of_brute_force(fit, brute):
    nodes, log_weights, of_item = brute
    table, errors = parameters(fit), parameters(fit, "_se")
    assert (fit.integration, fit.status) == ("normal", "converged")
    assert table[0, 1] == errors[0, 1] == 0
    assert fit.num_parameters == table.size - 1
    of_items = np.stack([of_item(i, row[:2], row[2:]) for i, row in enumerate(table)])
    joint = of_items.sum(axis=0) + log_weights
    exact = logsumexp(joint, axis=1)
    assert abs(fit.log_likelihood - exact.sum()) < 0.01
    assert 1e-6 < fit.log_likelihood_error < 0.3
    weights = np.exp(joint - exact[:, None])
    mean = weights @ nodes
    np.testing.assert_allclose(fit.ability, mean, atol=0.005)
    np.testing.assert_allclose(fit.ability_se, np.sqrt(weights @ nodes**2 - mean**2), rtol=0.01)
    # the marginal likelihood is at rest: differences of it in standard errors of each parameter
    for i in (0, 1, 7, 30):
        for k in np.flatnonzero(errors[i]):
            move = np.zeros(table.shape[1])
            move[k] = 0.01 * errors[i, k]
            ends = []
            for sign in (1, -1):
                row = table[i] + sign * move
                ends.append(logsumexp(joint - of_items[i] + of_item(i, row[:2], row[2:]), axis=1).sum())
            assert abs(ends[0] - ends[1]) / 0.02 < 0.05


def test_what_goes_without(grades):
    with pytest.raises(InputError, match="'normal' of grades, counts and shares has one population, no beta_binomial"):
        irtjax.fit(grades, "nominal", dims=2, integration="normal")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "model", "dims", "num_subjects", "num_items"),
    [
        ("grades", "graded", 2, 100, 100),
        ("grades", "gpcm", 2, 100, 60),
        ("counts", "binomial", 2, 100, 100),
        ("counts", "binomial", 3, 60, 30),
        ("shares", "ordered_beta", 2, 100, 60),
    ],
)
def test_models_come_to_the_estimates_on_nodes(kind, model, dims, num_subjects, num_items):
    responses = simulated(num_subjects, num_items, kind, dims)[0]
    normal, nodes = (
        irtjax.fit(responses, model, dims=dims, integration=way, priors=None) for way in ("normal", "nodes")
    )
    assert (normal.integration, normal.status, nodes.integration) == ("normal", "converged", "nodes")
    assert normal.num_parameters == nodes.num_parameters
    assert abs(normal.log_likelihood - nodes.log_likelihood) < 0.01
    errors = parameters(nodes, "_se")
    free = errors > 0
    assert (np.abs(parameters(normal) - parameters(nodes))[free] / errors[free]).max() < 0.05
    np.testing.assert_allclose(parameters(normal, "_se")[free], errors[free], rtol=0.1)
    np.testing.assert_allclose(normal.ability, nodes.ability, atol=0.05 * nodes.ability_se.min())
    np.testing.assert_allclose(normal.ability_se, nodes.ability_se, rtol=0.02)


@pytest.mark.slow
def test_recovery():
    """Of 200 subjects, 300 items and five grades: normal posteriors are chosen, and errors are those that are told."""
    of_intercepts = []
    for seed in range(3):
        responses, theta, slope, intercept = simulated(200, 300, seed=seed)
        fit = irtjax.fit(responses, "graded", dims=2)
        assert (fit.integration, fit.status) == ("normal", "converged")
        table, errors = parameters(fit), parameters(fit, "_se")
        turn = orthogonal_procrustes(table[:, :2], slope)[0]
        for found, true, least in ((table[:, :2] @ turn, slope, 0.9), (fit.ability @ turn, theta, 0.96)):
            assert min(np.corrcoef(found[:, d], true[:, d])[0, 1] for d in range(2)) > least
        of_intercepts.append((table[:, 2:] - intercept[:, None] - DROPS) / errors[:, 2:])
    assert 0.91 < (np.abs(of_intercepts) < 1.96).mean() < 0.98
