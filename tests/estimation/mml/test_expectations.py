"""Sums over the response matrix against automatic differentiation of Gauss-Hermite quadrature, in float64."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.estimation.mml import expectations
from irtjax.estimation.mml.expectations import Posterior
from irtjax.kernels.models import ItemParameters, probabilities

SUBJECTS, ITEMS, BLOCK = 40, 12, 6


class Case:
    """Random items, narrow posteriors and responses, and the exact expected log-likelihood of each response."""

    def __init__(self, dims: int, asymptotes: bool, width: float):
        rng = np.random.default_rng(dims)
        half = width * rng.normal(size=(SUBJECTS, dims, dims))
        self.asymptotes, self.dims = asymptotes, dims
        self.posterior = Posterior(
            jnp.asarray(rng.normal(size=(SUBJECTS, dims))), jnp.asarray(half @ half.transpose(0, 2, 1))
        )
        lower = rng.normal(-1.5, 1, ITEMS) if asymptotes else np.full(ITEMS, -np.inf)
        upper = rng.normal(3, 1, ITEMS) if asymptotes else np.full(ITEMS, np.inf)
        self.items = ItemParameters(
            *map(jnp.asarray, (rng.normal(size=(ITEMS, dims)), rng.normal(size=ITEMS), lower, upper))
        )
        self.y = rng.integers(-1, 2, (SUBJECTS, ITEMS)).astype(np.int8)
        self.blocks = jnp.asarray(self.y.reshape(SUBJECTS, -1, BLOCK).transpose(1, 0, 2))
        line, weights = np.polynomial.hermite_e.hermegauss(9)
        grid = np.array(list(itertools.product(line, repeat=dims)))
        self.weights = np.array(list(itertools.product(weights / weights.sum(), repeat=dims))).prod(axis=1)
        spread = np.linalg.cholesky(self.posterior.covariance)
        self.theta = self.posterior.mean[:, None] + jnp.einsum("jkl,ql->jqk", spread, grid)

    def expected(self, items, shift=0.0):
        """(J, I) expected log-likelihoods, the abilities moved by `shift` (J, D)."""
        theta = self.theta + jnp.broadcast_to(shift, (SUBJECTS, self.dims))[:, None]
        p, q = (x.reshape(SUBJECTS, -1, ITEMS) for x in probabilities(items, theta.reshape(-1, self.dims)))
        y = self.y[:, None]
        value = jnp.where(y == 1, jnp.log(p), jnp.where(y == 0, jnp.log(q), 0))
        return jnp.einsum("q,jqi->ji", self.weights, value)

    def gains(self):
        """What is won by moving slopes and intercepts, and by staying: (I, 2), by `item_gains` and by quadrature."""
        slope, intercept = self.items.slope, self.items.intercept
        moved = self.items._replace(slope=slope + 0.3, intercept=intercept - 0.5)
        both = jax.tree.map(lambda *leaves: jnp.stack(leaves, axis=1), moved, self.items)
        before, after = (self.expected(items).sum(axis=0) for items in (self.items, moved))
        expected = jnp.stack([after - before, jnp.zeros_like(before)], axis=1)
        return expectations.item_gains(both, self.items, self.posterior, self.blocks), expected


def free_columns(items, width):
    return jnp.concatenate([items.slope, jnp.stack([items.intercept, items.lower, items.upper], axis=1)], axis=1)[
        :, :width
    ]


@pytest.mark.parametrize("asymptotes", [False, True])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_sums_equal_quadrature(dims, asymptotes):
    with jax.enable_x64(True):
        case = Case(dims, asymptotes, width=0.03)
        gradient, _, observed = expectations.item_sums(case.items, case.posterior, case.blocks, asymptotes=asymptotes)
        width = gradient.shape[1]
        expected = jax.jit(jax.grad(lambda items: case.expected(items).sum()))(case.items)
        np.testing.assert_allclose(gradient, free_columns(expected, width), atol=5e-4)

        def of_items(array):
            ends = (array[:, dims + 1], array[:, dims + 2]) if asymptotes else case.items[2:]
            return case.expected(ItemParameters(array[:, :dims], array[:, dims], *ends)).sum()

        array = free_columns(case.items, width)
        hessian = jax.jit(jax.hessian(of_items))(array)
        by_item = np.stack([hessian[i, :, i] for i in range(ITEMS)])
        np.testing.assert_allclose(observed, -by_item, atol=0.04)  # first order of v is left out of it: about 1%

        gradient, _ = expectations.subject_sums(case.items, case.posterior, case.blocks, asymptotes=asymptotes)
        expected = jax.jit(jax.grad(lambda shift: case.expected(case.items, shift).sum()))(jnp.zeros((SUBJECTS, dims)))
        np.testing.assert_allclose(gradient, expected, atol=5e-4)
        gains, expected = case.gains()
        np.testing.assert_allclose(gains, expected, atol=4e-4)


def test_the_error_is_of_second_order_in_the_variance():
    with jax.enable_x64(True):
        errors = []
        for width in (0.1, 0.05):
            case = Case(1, True, width)
            gains, expected = case.gains()
            errors.append(np.abs(gains - expected).max())
    assert 8 < errors[0] / errors[1] < 32  # v falls to a quarter: its square to a sixteenth


@pytest.mark.parametrize("asymptotes", [False, True])
def test_derivatives_of_one_response(asymptotes):
    with jax.enable_x64(True):
        case = Case(1, asymptotes, width=0.01)
        eta = jnp.asarray(np.random.default_rng(0).normal(0, 2, (SUBJECTS, ITEMS)))

        def derivative(order, x):
            if order == 0:
                return expectations.log_response_derivatives(x, case.items, case.y)[0]
            return jax.jvp(lambda x: derivative(order - 1, x), (x,), (jnp.ones_like(x),))[1]

        orders = expectations.log_response_derivatives(eta, case.items, case.y)
        p, q = probabilities(case.items._replace(slope=jnp.zeros((ITEMS, 1)), intercept=eta[0]), jnp.zeros((1, 1)))
        first_row = np.where(case.y[0] == 1, np.log(p[0]), np.where(case.y[0] == 0, np.log(q[0]), 0))
        np.testing.assert_allclose(orders[0][0], first_row, atol=1e-12)
        for order in range(1, 5):
            np.testing.assert_allclose(orders[order], derivative(order, eta), atol=1e-9)
