"""Categories without order in several dimensions: against a sum over a product grid, and one dimension."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import irtjax
from irtjax import InputError
from irtjax.item_models.categories import Coordinates
from irtjax.item_models.contrasts import helmert
from irtjax.item_models.nominal import NOMINAL
from irtjax.item_models.nominal_dimensions import NominalInDimensions
from irtjax.responses.from_arrays import of_grades

SUBJECTS, ITEMS, CATEGORIES = 200, 6, 3


@pytest.fixture(scope="module")
def grades():
    """Categories of six items in two dimensions; one response is missing."""
    rng = np.random.default_rng(3)
    slopes, intercepts = rng.normal(size=(ITEMS, 2, CATEGORIES)), rng.normal(0, 0.5, (ITEMS, CATEGORIES))
    p = np.exp(np.einsum("jd,idk->jik", rng.normal(size=(SUBJECTS, 2)), slopes) + intercepts)
    above = rng.random((SUBJECTS, ITEMS, 1)) > (p / p.sum(axis=2, keepdims=True)).cumsum(axis=2)
    values = above.sum(axis=2).astype(float)
    values[5, 2] = np.nan
    return of_grades(values, [f"s{j}" for j in range(SUBJECTS)], [f"i{i}" for i in range(ITEMS)])


def test_in_one_dimension_it_is_the_nominal_model():
    rng = np.random.default_rng(0)
    theta, others, top = rng.normal(size=(7, 1)), rng.normal(size=(4, 6)), np.array([3, 2, 3, 1])
    for k in range(3):
        others[k >= top, k] = others[k >= top, 3 + k] = 0.0
    at = Coordinates(np.repeat(theta, 4, axis=1), others, top, theta)
    one, other = NOMINAL, NominalInDimensions(1)
    for found, expected in zip(other.natural(at, 3), one.natural(at, 3), strict=True):
        np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(other.derivatives(at, 3)[1], one.derivatives(at, 3)[1])
    columns = other.reported(jnp.zeros(1), jnp.zeros(()), jnp.asarray(others[0]), 3)
    restored = other.restored({name: np.array([float(value)]) for name, value in columns.items()}, top[:1])
    np.testing.assert_allclose(restored.others[0], others[0], rtol=1e-5)


def test_nominal_items_of_several_dimensions_go_with_no_others(grades):
    with pytest.raises(InputError, match="dims 2: items of the nominal model go with no others"):
        irtjax.fit(grades, ["graded"] + ["nominal"] * (ITEMS - 1), dims=2)


@pytest.mark.slow
def test_a_fit_is_the_maximum_of_a_sum_over_a_grid_and_has_its_errors(grades):
    fit = irtjax.fit(grades, "nominal", dims=2)
    assert fit.converged
    line = np.linspace(-6, 6, 41)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    log_weights = -(grid**2).sum(axis=1) / 2
    log_weights -= np.log(np.exp(log_weights).sum())
    others, contrasts = fit.parameters.others, helmert(CATEGORIES)
    free = np.ones(others.shape, bool)
    free[0, 3] = False  # the last contrast of the first item in the second dimension
    assert others[0, 3] == 0
    chosen = np.eye(CATEGORIES)[np.maximum(np.asarray(grades.values), 0)] * grades.observed[:, :, None]

    def log_likelihood(vector):
        own = jnp.zeros(others.shape).at[free].set(vector).reshape(ITEMS, 3, 2) @ contrasts.T
        eta = jnp.einsum("qd,idk->qik", grid, own[:, :2]) + own[None, :, 2]
        of_nodes = jnp.einsum("jik,qik->jq", chosen, jax.nn.log_softmax(eta, axis=2))
        return jax.nn.logsumexp(of_nodes + log_weights[None], axis=1).sum()

    def objective(vector):
        slopes = jnp.zeros(others.shape).at[free].set(vector)[:, :4]
        return log_likelihood(vector) - (slopes**2).sum() / (2 * 3.0**2)

    with jax.enable_x64(True):
        at = jnp.asarray(others[free])
        assert float(log_likelihood(at)) == pytest.approx(fit.log_likelihood, abs=1e-4)
        np.testing.assert_allclose(jax.grad(objective)(at), 0, atol=2e-3)
        covariance = np.zeros((others.size, others.size))
        places = np.flatnonzero(free)
        covariance[np.ix_(places, places)] = np.linalg.inv(-np.asarray(jax.hessian(objective)(at)))
    of_columns = np.kron(np.eye(3), contrasts)
    names = [f"slope_{k}_{d}_se" for d in (1, 2) for k in range(3)] + [f"intercept_{k}_se" for k in range(3)]
    for i in range(ITEMS):
        own = covariance[6 * i : 6 * i + 6, 6 * i : 6 * i + 6]
        expected = np.sqrt(np.diag(of_columns @ own @ of_columns.T))
        np.testing.assert_allclose([fit.item_columns[name][i] for name in names], expected, rtol=1e-3, atol=1e-9)
