"""Nodes of each subject's own against products of integrals in one dimension, and against a grid."""

import jax
import numpy as np
import pytest
from conftest import matrix
from scipy.special import expit
from simulation import draw

import irtjax
from irtjax.estimation.driver import Problem, run
from irtjax.estimation.priors import NormalPrior, Priors
from irtjax.estimation.quadrature.engine import QuadratureEngine
from irtjax.estimation.specify import specify, start_items
from irtjax.integration.e_step import e_step
from irtjax.integration.encode import to_answers
from irtjax.integration.importance_nodes import (
    OF_POPULATION,
    ImportanceNodes,
    importance_nodes,
    importance_nodes_to_start_with,
)
from irtjax.integration.rules import SharedNodes
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.quadrature import rectangular
from irtjax.populations.normal import Population
from irtjax.responses.matrix import counts


def simulate(num_subjects, num_items, dims, seed=0):
    rng = np.random.default_rng(seed)
    slope = np.tril(rng.uniform(0.4, 1.4, (num_items, dims)) * (rng.random((num_items, dims)) < 0.6), 0)
    slope[np.arange(num_items), np.arange(num_items) % dims] = rng.uniform(1.0, 2.0, num_items)
    intercept = rng.normal(size=num_items)
    theta = rng.normal(size=(num_subjects, dims))
    return slope, intercept, draw(rng, expit(theta @ slope.T + intercept))


@pytest.mark.slow
def test_likelihoods_and_moments_are_those_of_separate_dimensions():
    """Where every item has one dimension, the integral over four is a product of four."""
    rng, dims = np.random.default_rng(0), 4
    dimension = np.arange(20) % dims
    slope = np.where(dimension[:, None] == np.arange(dims), rng.uniform(-0.5, 2.5, (20, 1)), 0.0)
    intercept, infinite = rng.normal(size=20), np.full(20, np.inf)
    values = rng.integers(-1, 2, (100, 20)).astype(np.int8)
    line = rectangular(241)
    exact, mean, sd = np.zeros(100), np.empty((100, dims)), np.empty((100, dims))
    for k in range(dims):
        own = dimension == k
        p = expit(line.nodes * slope[own, k] + intercept[own])
        joint = (values[:, own] == 1) @ np.log(p).T + (values[:, own] == 0) @ np.log1p(-p).T + line.log_weights
        whole = np.logaddexp.reduce(joint, axis=1)
        weights = np.exp(joint - whole[:, None])
        exact, mean[:, k] = exact + whole, weights @ line.nodes[:, 0]
        sd[:, k] = np.sqrt(weights @ line.nodes[:, 0] ** 2 - mean[:, k] ** 2)
    items, population = ItemParameters(slope, intercept, -infinite, infinite), Population(np.zeros(dims), np.ones(dims))
    spread = []
    with jax.enable_x64(True):
        answers = to_answers(values)
        for number in (256, 4096):
            placed = importance_nodes(items, answers, number)
            assert np.exp(placed.nodes.log_weights).max() * number <= 1 / OF_POPULATION
            found = e_step(items, population, answers, placed)
            errors = np.asarray(found.log_likelihoods) - exact
            assert abs(errors.mean()) < 3 * errors.std() / 10 + 1e-4  # no subject errs as the others do
            spread.append(errors.std())
        got_mean, got_sd = found.mean, found.sd
    assert spread[0] < 0.02
    assert spread[1] < spread[0] / 4
    np.testing.assert_allclose(got_mean, mean, atol=0.02)
    np.testing.assert_allclose(got_sd, sd, atol=0.02)


@pytest.mark.slow
def test_fits_and_their_errors_are_those_on_a_grid():
    _, _, values = simulate(300, 10, 2)
    specification = specify(("2pl",) * 10, dims=2, priors=Priors(slope=NormalPrior(0.0, 2.0)))
    problem = Problem(values, start_items(specification, *counts(values, axis=0)), specification)
    grid, _ = run(QuadratureEngine(SharedNodes(61, 2), adapt=False), problem, max_iterations=200)
    own, outcome = run(QuadratureEngine(ImportanceNodes(1024), adapt=False), problem, max_iterations=200)
    assert outcome.status == "converged"
    assert own.log_likelihood == pytest.approx(grid.log_likelihood, abs=0.1)
    assert abs(own.log_likelihood - grid.log_likelihood) < 2 * own.log_likelihood_error + 0.01
    errors = np.sqrt(np.einsum("ikk->ik", grid.covariances))
    free = errors[:, :3] > 0
    np.testing.assert_allclose(
        (own.items.slope - grid.items.slope) / np.where(free, errors[:, :3], 1)[:, :2], 0, atol=0.1
    )
    got = np.sqrt(np.einsum("ikk->ik", own.covariances))
    np.testing.assert_allclose(got[:, :3][free], errors[:, :3][free], rtol=0.03)
    np.testing.assert_allclose(own.ability, grid.ability, atol=0.05)


def test_large_tests_have_normal_posteriors_in_their_place():
    assert importance_nodes_to_start_with(1000, 40) == ImportanceNodes(256)
    assert importance_nodes_to_start_with(5000, 100) == ImportanceNodes(64)
    assert importance_nodes_to_start_with(10_000, 100) is None


@pytest.mark.slow
@pytest.mark.parametrize("dims", [4, 5])
def test_the_truth_is_as_likely_as_it_should_be(dims):
    """Twice the difference of log-likelihoods is chi-square; by four times the nodes, with errors of their own."""
    slope, intercept, values = simulate(1000, 40, dims)
    fit = irtjax.fit(matrix(values), "2pl", dims=dims)
    assert fit.converged
    truth = ItemParameters(slope, intercept, np.full(40, -np.inf), np.full(40, np.inf))
    normal, answers = Population(np.zeros(dims), np.ones(dims)), to_answers(values)
    ours, true = (
        np.asarray(e_step(items, normal, answers, importance_nodes(items, answers, 1024)).log_likelihoods).sum()
        for items in (fit.parameters, truth)
    )
    assert ours == pytest.approx(fit.log_likelihood, abs=5.0)
    freedom = fit.num_parameters
    assert abs(2 * (ours - true) - freedom) < 3 * np.sqrt(2 * freedom)
    error = (fit.parameters.intercept - intercept) / fit.item_columns["intercept_se"]
    assert 0.7 < np.sqrt(np.mean(error**2)) < 1.3
    left, _, right = np.linalg.svd(fit.parameters.slope.T @ slope)  # the first items fix the rotation badly
    assert np.sqrt(np.mean((fit.parameters.slope @ left @ right - slope) ** 2)) < 0.16
