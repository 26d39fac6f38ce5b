"""The kernels against dense float64 formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, log_expit

from irtjax.kernels.likelihood import BLOCK_RESPONSES, log_likelihood_1pl, log_likelihood_2pl
from irtjax.kernels.loops import MOST, MULTIPLE
from irtjax.kernels.sharding import BY_ITEM, BY_RESPONSE, BY_SUBJECT, mesh_of, place

KERNELS = [log_likelihood_1pl, log_likelihood_2pl]


def problem(kernel, num_subjects, num_items, dtype=np.float32, missing=0.1, seed=0):
    """Parameters of the kernel, then responses."""
    rng = np.random.default_rng(seed)
    theta, b = rng.normal(0, 2, num_subjects), rng.normal(0, 2, num_items)
    a = rng.normal(1, 0.5, num_items)  # some are negative
    y = rng.integers(0, 2, (num_subjects, num_items)).astype(np.int8)
    y[rng.uniform(size=y.shape) < missing] = -1
    parameters = (theta, b) if kernel is log_likelihood_1pl else (theta, a, b)
    return *(x.astype(dtype) for x in parameters), y


def with_gradients(kernel, *arguments):
    parameters = tuple(range(len(arguments) - 1))
    return jax.jit(jax.value_and_grad(kernel, argnums=parameters))(*map(jnp.asarray, arguments))


def dense(theta, *items_and_y):
    """Value and gradients by the textbook formulas, in float64."""
    *a, b, y = items_and_y
    slope = a[0].astype(float) if a else np.ones(b.size)
    distance = theta.astype(float)[:, None] - b.astype(float)[None, :]
    logit = slope * distance
    value = np.where(y >= 0, np.where(y == 1, log_expit(logit), log_expit(-logit)), 0).sum()
    residual = np.where(y >= 0, (y == 1) - expit(logit), 0)
    by_slope = [(residual * distance).sum(0)] if a else []
    return value, (residual * slope).sum(1), *by_slope, -slope * residual.sum(0)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "shape", [(13, 1), (13, 7), (13, MOST), (13, MOST + 1), (BLOCK_RESPONSES // MULTIPLE, 2 * MULTIPLE + 9)]
)
def test_value_and_gradients_equal_the_dense_formulas_in_float64(kernel, shape):
    arguments = problem(kernel, *shape, np.float64)
    with jax.enable_x64(True):
        value, gradients = with_gradients(kernel, *arguments)
        assert value.dtype == jnp.float64
    expected_value, *expected_gradients = dense(*arguments)
    np.testing.assert_allclose(value, expected_value, rtol=1e-12)
    for got, expected in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
def test_float32_stays_float32_and_close(kernel):
    arguments = problem(kernel, 300, 1000)
    value, gradients = with_gradients(kernel, *arguments)
    assert value.dtype == jnp.float32
    expected_value, *expected_gradients = dense(*arguments)
    np.testing.assert_allclose(value, expected_value, rtol=1e-6)
    for got, expected in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(got, expected, atol=3e-3)


@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (1, 2), (2, 2), (1, 4)])
@pytest.mark.parametrize("kernel", KERNELS)
def test_sharded_equals_unsharded(kernel, shape):
    *parameters, y = problem(kernel, 40, 1200)
    value, gradients = with_gradients(kernel, *parameters, y)
    mesh = mesh_of(*shape)
    spread = place(parameters[0], mesh, BY_SUBJECT), *(place(x, mesh, BY_ITEM) for x in parameters[1:])
    got, got_gradients = with_gradients(lambda *x: kernel(*x, mesh), *spread, place(y, mesh, BY_RESPONSE))
    np.testing.assert_allclose(got, value, rtol=1e-6)
    for one, other in zip(got_gradients, gradients, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_cotangent_scales_the_gradient(kernel):
    *parameters, y = map(jnp.asarray, problem(kernel, 5, 9))
    argnums = tuple(range(len(parameters)))
    plain = jax.grad(kernel, argnums=argnums)(*parameters, y)
    scaled = jax.grad(lambda *x: -3.0 * kernel(*x, y), argnums=argnums)(*parameters)
    for one, three in zip(plain, scaled, strict=True):
        np.testing.assert_allclose(three, -3.0 * one, rtol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
def test_missing_responses_equal_dropped_ones(kernel):
    theta, *items, y = problem(kernel, 6, 20)
    y[:, 15:] = -1
    masked = kernel(*map(jnp.asarray, (theta, *items, y)))
    dropped = kernel(*map(jnp.asarray, (theta, *(x[:15] for x in items), y[:, :15])))
    np.testing.assert_allclose(masked, dropped, rtol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
def test_shift_and_permutation_invariance(kernel):
    theta, *items, y = problem(kernel, 40, 700)
    value = kernel(*map(jnp.asarray, (theta, *items, y)))
    shifted = kernel(*map(jnp.asarray, (theta + 0.75, *items[:-1], items[-1] + 0.75, y)))
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(40), rng.permutation(700)
    permuted = kernel(*map(jnp.asarray, (theta[rows], *(x[columns] for x in items), y[rows][:, columns])))
    np.testing.assert_allclose(shifted, value, rtol=1e-5)
    np.testing.assert_allclose(permuted, value, rtol=1e-5)


def test_extreme_logits_stay_finite():
    theta, b = np.array([-1e4, 0.0, 1e4], np.float32), np.array([-1e4, 1e4], np.float32)
    value, gradients = with_gradients(log_likelihood_1pl, theta, b, np.zeros((3, 2), np.int8))
    assert np.isfinite(value)
    assert all(np.isfinite(gradient).all() for gradient in gradients)


def test_no_float_matrix_is_made():
    shapes = [
        jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in (((1000,), "f4"), ((100_000,), "f4"), ((100_000,), "f4"))
    ]
    matrix = jax.ShapeDtypeStruct((1000, 100_000), "i1")
    program = jax.jit(jax.value_and_grad(log_likelihood_2pl, argnums=(0, 1, 2))).lower(*shapes, matrix).compile()
    analysis = program.memory_analysis()
    # bytes beside the int8 matrix itself: half of it plus 100 MB would be allowed
    assert analysis.temp_size_in_bytes + analysis.output_size_in_bytes < 40e6


def test_wrong_shapes_are_named():
    with pytest.raises(ValueError, match=r"shape \(2, 3\), expected \(3, 2\)"):
        log_likelihood_1pl(jnp.zeros(3), jnp.zeros(2), jnp.zeros((2, 3), jnp.int8))
