"""Sums over responses of families at the nodes of normal posteriors in two dimensions, against finite differences."""

import jax
import numpy as np
import pytest

from irtjax.estimation.driver import Problem
from irtjax.estimation.normal.family_passes import around, passes_over
from irtjax.estimation.problem import as_array, as_items
from irtjax.estimation.specify_families import plan_families
from irtjax.integration.normal_posterior import Posterior
from irtjax.kernels.quadrature import gauss_hermite
from irtjax.responses.from_arrays import of_counts, of_grades
from irtjax.responses.joining import beside

NUM_SUBJECTS, STEP = 12, 1e-5
MODELS = ("graded",) * 8 + ("binomial",) * 4


@pytest.fixture(scope="module")
def case():
    """Passes in float64 over items of two families, some parameters of these, and wide posteriors."""
    rng, subjects = np.random.default_rng(0), [f"s{j}" for j in range(NUM_SUBJECTS)]
    grades = rng.permuted(np.arange(NUM_SUBJECTS)[:, None] % 4 * np.ones(8), axis=0)
    counts = rng.integers(0, 6, (NUM_SUBJECTS, 4)).astype(float)
    grades[1, ::2], counts[0, 0] = np.nan, np.nan
    responses = beside(
        of_grades(grades, subjects, [f"g{k}" for k in range(8)]),
        of_counts(counts, np.full(counts.shape, 5), subjects, [f"c{k}" for k in range(4)]),
    )
    plan = plan_families(responses, MODELS, 2, None)
    top = np.asarray(plan.items.top)
    values, trials = np.asarray(plan.responses.values), plan.responses.trials
    problem = Problem(values, plan.items, plan.specification, plan.model, trials)
    items = plan.items._replace(slope=rng.normal(size=(12, 2)), top=top)
    root = 0.3 * rng.normal(size=(NUM_SUBJECTS, 2, 2))
    posterior = Posterior(rng.normal(size=(NUM_SUBJECTS, 2)), root @ root.swapaxes(1, 2) + 0.02 * np.eye(2))
    with jax.enable_x64(True):
        yield passes_over(problem, 9, np.float64), items, posterior


def expected(passes, items, posterior):
    """Log-likelihoods (J,) expected under the posteriors, by the nodes of a fit."""
    theta = around(posterior, gauss_hermite(3, 2))
    return passes.weights @ np.asarray(passes.log_likelihoods(items, theta))


def test_gradients_of_items(case):
    passes, items, posterior = case
    gradient, information = passes.item_sums(items, posterior)
    start = as_array(items)
    np.testing.assert_allclose(information, information.swapaxes(1, 2), rtol=1e-12)
    for k in range(start.shape[1]):
        for i in range(0, len(start), 3):
            move = np.zeros_like(start)
            move[i, k] = STEP
            ends = [expected(passes, as_items(start + sign * move, items), posterior).sum() for sign in (1, -1)]
            np.testing.assert_allclose((ends[0] - ends[1]) / (2 * STEP), gradient[i, k], rtol=1e-5, atol=1e-6)


def test_gradients_and_curvatures_of_subjects(case):
    passes, items, posterior = case
    found = [np.asarray(leaf) for leaf in passes.subject_sums(items, posterior)]
    narrow = posterior._replace(covariance=0.01 * posterior.covariance)
    _, curvature = passes.subject_sums(items, narrow)
    for k in range(2):
        move = STEP * np.eye(2)[k]
        ends, gradients = [], []
        for sign in (1, -1):
            moved = posterior._replace(mean=posterior.mean + sign * move)
            ends.append(expected(passes, items, moved))
            gradients.append(passes.subject_sums(items, moved._replace(covariance=narrow.covariance))[0])
        np.testing.assert_allclose((ends[0] - ends[1]) / (2 * STEP), found[0][:, k], rtol=1e-6, atol=1e-7)
        # Stein's lemma holds of the normal distribution, and of its nodes up to their own error
        second = (gradients[1] - gradients[0]) / (2 * STEP)
        concave = np.linalg.eigvalsh(np.asarray(curvature)).min(axis=1) > 1e-3
        assert concave.sum() > 6
        np.testing.assert_allclose(second[concave], np.asarray(curvature)[concave, :, k], rtol=0.01, atol=0.01)
