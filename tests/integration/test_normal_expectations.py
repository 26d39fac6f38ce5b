"""Sums over the response matrix against automatic differentiation of Gauss-Hermite quadrature, in float64."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.estimation.item_step import as_array
from irtjax.integration import normal_expectations as expectations
from irtjax.integration.normal_posterior import Posterior
from irtjax.kernels.log_response import log_logistic_derivatives, log_response_derivatives
from irtjax.kernels.models import ItemParameters, probabilities

SUBJECTS, ITEMS, BLOCK = 40, 12, 6


# each compiled once per number of dimensions, with and without asymptotes
ITEM_SUMS, SUBJECT_SUMS = (
    jax.jit(sums, static_argnames="asymptotes") for sums in (expectations.item_sums, expectations.subject_sums)
)
ITEM_GAINS = jax.jit(expectations.item_gains)


def expected_of_item(parameters, y, theta, weights):
    """Expected log-likelihood of the responses (J,) to one item, of parameters (D + 3,), at abilities (J, Q, D)."""
    dims = theta.shape[2]
    item = ItemParameters(
        parameters[None, :dims], parameters[dims : dims + 1], parameters[dims + 1 : dims + 2], parameters[dims + 2 :]
    )
    p, q = (x.reshape(theta.shape[:2]) for x in probabilities(item, theta.reshape(-1, dims)))
    value = jnp.where(y[:, None] == 1, jnp.log(p), jnp.where(y[:, None] == 0, jnp.log(q), 0))
    return (value @ weights).sum()


@jax.jit
def by_quadrature(parameters, moved, y, theta, weights):
    """Gradient and Hessian in the parameters (I, D + 3), gradient in abilities, and the gain of what is moved."""
    of_items = jax.vmap(expected_of_item, in_axes=(0, 1, None, None))

    def shifted(shift):
        return of_items(parameters, y, theta + shift[:, None], weights).sum()

    rest = y, theta, weights
    gradient, hessian = (
        jax.vmap(derivative, in_axes=(0, 1, None, None))(parameters, *rest)
        for derivative in (jax.grad(expected_of_item), jax.hessian(expected_of_item))
    )
    gain = of_items(moved, *rest) - of_items(parameters, *rest)
    return gradient, hessian, jax.grad(shifted)(jnp.zeros_like(theta[:, 0])), gain


class Case:
    """Random items, narrow posteriors and responses, and nodes of the posteriors."""

    def __init__(self, dims: int, asymptotes: bool, width: float):
        rng = np.random.default_rng(dims)
        half = width * rng.normal(size=(SUBJECTS, dims, dims))
        self.asymptotes, self.dims = asymptotes, dims
        self.posterior = Posterior(rng.normal(size=(SUBJECTS, dims)), half @ half.transpose(0, 2, 1))
        lower = rng.normal(-1.5, 1, ITEMS) if asymptotes else np.full(ITEMS, -np.inf)
        upper = rng.normal(3, 1, ITEMS) if asymptotes else np.full(ITEMS, np.inf)
        self.items = ItemParameters(rng.normal(size=(ITEMS, dims)), rng.normal(size=ITEMS), lower, upper)
        self.y = rng.integers(-1, 2, (SUBJECTS, ITEMS)).astype(np.int8)
        self.blocks = self.y.reshape(SUBJECTS, -1, BLOCK).transpose(1, 0, 2)
        line, weights = np.polynomial.hermite_e.hermegauss(9)
        grid = np.array(list(itertools.product(line, repeat=dims)))
        self.weights = np.array(list(itertools.product(weights / weights.sum(), repeat=dims))).prod(axis=1)
        spread = np.linalg.cholesky(self.posterior.covariance)
        self.theta = self.posterior.mean[:, None] + np.einsum("jkl,ql->jqk", spread, grid)
        # what is won by moving slopes and intercepts
        self.moved = self.items._replace(slope=self.items.slope + 0.3, intercept=self.items.intercept - 0.5)

    def gains(self):
        """What is won by moving, and by staying: (I, 2)."""
        both = jax.tree.map(lambda *leaves: np.stack(leaves, axis=1), self.moved, self.items)
        return ITEM_GAINS(both, self.items, self.posterior, self.blocks)

    def reference(self):
        return by_quadrature(as_array(self.items), as_array(self.moved), self.y, self.theta, self.weights)


@pytest.mark.parametrize(
    ("dims", "asymptotes"),
    [
        pytest.param(*case, marks=[] if case in ((2, False), (3, True)) else [pytest.mark.slow])
        for case in itertools.product((1, 2, 3), (False, True))
    ],
)
def test_sums_equal_quadrature(dims, asymptotes):
    with jax.enable_x64(True):
        case = Case(dims, asymptotes, width=0.03)
        by_item, hessian, by_subject, expected_gain = case.reference()
        gradient, _, observed = ITEM_SUMS(case.items, case.posterior, case.blocks, asymptotes=asymptotes)
        width = gradient.shape[1]
        assert width == (dims + 3 if asymptotes else dims + 1)
        np.testing.assert_allclose(gradient, by_item[:, :width], atol=5e-4)
        # first order of v is left out of it: about 1%
        np.testing.assert_allclose(observed, -hessian[:, :width, :width], atol=0.04)
        gradient, _ = SUBJECT_SUMS(case.items, case.posterior, case.blocks, asymptotes=asymptotes)
        np.testing.assert_allclose(gradient, by_subject, atol=5e-4)
        gains = case.gains()
        np.testing.assert_allclose(gains[:, 0], expected_gain, atol=4e-4)
        np.testing.assert_allclose(gains[:, 1], 0, atol=4e-4)


def test_the_error_is_of_second_order_in_the_variance():
    with jax.enable_x64(True):
        errors = []
        for width in (0.1, 0.05):
            case = Case(1, True, width)
            errors.append(np.abs(case.gains()[:, 0] - case.reference()[-1]).max())
    assert 8 < errors[0] / errors[1] < 32  # v falls to a quarter: its square to a sixteenth


@pytest.mark.parametrize("asymptotes", [False, True])
def test_derivatives_of_one_response(asymptotes):
    with jax.enable_x64(True):
        case = Case(1, asymptotes, width=0.01)
        eta = np.random.default_rng(0).normal(0, 2, (SUBJECTS, ITEMS))
        derivatives, automatic = derivatives_of_one_response(eta, case.items, case.y)
        p, q = probabilities(case.items._replace(slope=np.zeros((ITEMS, 1)), intercept=eta[0]), np.zeros((1, 1)))
        first_row = np.where(case.y[0] == 1, np.log(p[0]), np.where(case.y[0] == 0, np.log(q[0]), 0))
        np.testing.assert_allclose(derivatives[0][0], first_row, atol=1e-12)
        for got, expected in zip(derivatives[1:], automatic, strict=True):
            np.testing.assert_allclose(got, expected, atol=1e-9)
        if not asymptotes:
            for got, expected in zip(
                log_logistic_derivatives(jnp.asarray(eta), jnp.asarray(case.y)), derivatives, strict=True
            ):
                np.testing.assert_allclose(got, expected, atol=1e-12)


@jax.jit
def derivatives_of_one_response(eta, items, y):
    """The value and its four derivatives as they are, and the four by automatic differentiation."""

    def derivative(order, x):
        if order == 0:
            return log_response_derivatives(x, items, y)[0]
        return jax.jvp(functools.partial(derivative, order - 1), (x,), (jnp.ones_like(x),))[1]

    return log_response_derivatives(eta, items, y), [derivative(order, eta) for order in range(1, 5)]
