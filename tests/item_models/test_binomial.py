"""Items tried n times: against the distribution of SciPy, and a dense maximum."""

import jax
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logsumexp
from scipy.stats import binom

from irtjax.errors import InputError
from irtjax.estimation.driver import Problem, run
from irtjax.estimation.problem import as_array, as_items, layout
from irtjax.estimation.quadrature.engine import QuadratureEngine
from irtjax.estimation.specify import specify, start_items
from irtjax.integration.rules import SharedNodes
from irtjax.item_models.binomial import BINOMIAL
from irtjax.kernels.models import probabilities
from irtjax.kernels.quadrature import rectangular

RNG = np.random.default_rng(0)
TRIALS = RNG.integers(1, 9, (150, 8))
SUCCESSES = RNG.binomial(TRIALS, expit(RNG.normal(size=(150, 1)) * 1.2 - np.linspace(-1.5, 1.5, 8))).astype(np.int8)
SUCCESSES[3, 2] = SUCCESSES[7, :4] = -1
SEEN = SUCCESSES >= 0


def problem(specification):
    totals = (np.where(SEEN, count, 0).sum(axis=0) for count in (SUCCESSES, TRIALS))
    return Problem(SUCCESSES, start_items(specification, *totals), specification, BINOMIAL, TRIALS)


def log_likelihood(items, nodes):
    p, _ = probabilities(items, nodes.nodes)
    of_cells = binom.logpmf(SUCCESSES[:, None], TRIALS[:, None], p[None])
    joint = np.where(SEEN[:, None], of_cells, 0.0).sum(axis=2) + nodes.log_weights
    return logsumexp(joint, axis=1)


@pytest.fixture(scope="module")
def fitted():
    specification = specify(["2pl"] * 8)
    estimate, outcome = run(QuadratureEngine(SharedNodes(121, 1)), problem(specification), max_iterations=300)
    assert outcome.status == "converged"
    return specification, estimate


def test_the_fit_is_the_dense_maximum(fitted):
    specification, estimate = fitted
    nodes, places = rectangular(121), layout(specification)
    np.testing.assert_allclose(estimate.log_likelihoods, log_likelihood(estimate.items, nodes), rtol=1e-9)
    start = np.asarray(as_array(estimate.items))

    k, n = np.where(SEEN, SUCCESSES, 0), np.where(SEEN, TRIALS, 0)

    def loss(vector):
        items = as_items(np.where(places.items >= 0, places.gather(vector), start))
        log_p, log_q = np.log(probabilities(items, nodes.nodes))
        return -logsumexp(k @ log_p.T + (n - k) @ log_q.T + nodes.log_weights, axis=1).sum()

    at_fit = places.add_up(np.where(places.items >= 0, start, 0.0))
    constant = estimate.log_likelihoods.sum() + loss(at_fit)
    found = minimize(loss, at_fit + 0.1, tol=1e-9)
    assert constant - found.fun == pytest.approx(estimate.log_likelihood, abs=1e-5)
    at = places.items[:, :2]
    np.testing.assert_allclose(as_array(estimate.items)[:, :2], found.x[at], atol=2e-4)
    step, size = 1e-3, places.size  # the information, by differences
    eye = np.eye(size) * step
    hessian = [[loss(found.x + a + b) - loss(found.x + a - b) - loss(found.x - a + b) + loss(found.x - a - b)
                for b in eye] for a in eye]  # fmt: skip
    errors = np.sqrt(np.diag(np.linalg.inv(np.array(hessian) / (4 * step**2))))
    of_items = np.sqrt(np.einsum("ikk->ik", estimate.covariances)[:, :2])
    np.testing.assert_allclose(of_items, errors[at], rtol=2e-3)


def test_one_trial_is_right_or_wrong(fitted):
    del fitted
    values = (SUCCESSES > 2).astype(np.int8)
    specification = specify(["2pl"] * 8)
    items = start_items(specification, values.sum(axis=0), np.full(8, 150))
    engine = QuadratureEngine(SharedNodes(61, 1))
    one, other = (
        run(engine, Problem(values, items, specification, *more), max_iterations=300)[0]
        for more in ((), (BINOMIAL, np.ones_like(TRIALS)))
    )
    np.testing.assert_allclose(one.items.slope, other.items.slope, rtol=1e-9)
    assert one.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-12)


def test_more_successes_than_trials_are_refused():
    with jax.enable_x64(True), pytest.raises(InputError, match="9 successes of 2 trials, subject number 1, item 2"):
        BINOMIAL.log_base(np.array([[1, 9]]), np.array([[2, 2]]))
