"""Convolutions as matrix products and pools, against XLA's own in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.kernels.formulation import formulated_for
from irtjax.networks import convolution
from irtjax.networks.group_norm import normalise


def values(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def expected_convolution(x, kernel):
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def expected_pool(x):
    return jax.lax.reduce_window(x, -np.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")


def assert_same(ours, expected, *arguments):
    """Values, and gradients in all arguments."""
    with jax.enable_x64(True):
        arguments = [jnp.asarray(each) for each in arguments]

        def value(f):
            def loss(*arguments):
                y = f(*arguments)
                return jnp.sin(y).sum(), y

            return jax.jit(jax.value_and_grad(loss, tuple(range(len(arguments))), has_aux=True))(*arguments)

        for a, b in zip(jax.tree.leaves(value(ours)), jax.tree.leaves(value(expected)), strict=True):
            assert a.dtype == jnp.float64
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    ("image", "size", "outputs"),
    [((6, 5, 3), 5, 4), ((4, 4, 6), 3, 2), ((1, 2, 2), 5, 3), ((3, 1, 1), 3, 1)],
    ids=["5x5", "3x3-narrowing", "smaller-than-the-kernel", "one-column"],
)
def test_products_against_xla(image, size, outputs):
    kernel = values(size, size, image[-1], outputs, seed=1)
    assert_same(convolution.by_products, expected_convolution, values(2, *image), kernel)


@pytest.mark.parametrize(("image", "size"), [((6, 5, 3), 3), ((1, 4, 2), 5)])
def test_patches_against_xla(image, size):
    kernel, radius = values(size, size, image[-1], 4, seed=1), size // 2
    numbers = ("NHWC", "HWIO", "NHWC")

    def expected(x, kernel):
        return jax.lax.conv_general_dilated(x, kernel, (2, 2), ((radius, radius),) * 2, dimension_numbers=numbers)

    assert_same(lambda x, k: convolution.by_patches(x, k, 2), expected, values(2, *image), kernel)
    assert_same(lambda x, k: convolution.by_convolution(x, k, 2), expected, values(2, *image), kernel)


@pytest.mark.parametrize("size", [3, 5])
def test_squares_against_xla(size):
    kernel = values(size, size, 2, 3, seed=1)
    assert_same(
        convolution.by_squares, lambda x, k: expected_pool(expected_convolution(x, k)), values(2, 6, 4, 2), kernel
    )


@pytest.mark.parametrize("image", [(4, 6, 2), (5, 3, 2), (1, 1, 2)])
def test_pool_against_xla(image):
    assert_same(convolution.max_pool, expected_pool, values(2, *image))


@pytest.mark.parametrize("pool", [convolution.max_pool, lambda x: convolution._largest(x.reshape(1, 1, 4, 1))])
def test_equal_pixels_share_the_gradient(pool):
    x = jnp.asarray([[3.0, 3.0], [1.0, 3.0]]).reshape(1, 2, 2, 1)
    gradient = jax.jit(jax.grad(lambda x: 6 * pool(x).sum()))(x)
    np.testing.assert_allclose(gradient.reshape(2, 2), [[2, 2], [0, 2]], rtol=1e-6)


def test_gradients_come_through_a_pool_of_what_is_rounded_anew():
    """Without optimizations, pixels are computed anew in the backward pass, in another rounding."""
    x, kernel = (jnp.asarray(each, jnp.float32) for each in (values(8, 8, 8, 16), values(3, 3, 16, 16, seed=1) / 12))
    gain, bias, active = jnp.linspace(0.5, 1.5, 16), jnp.linspace(-1.0, 1.0, 16), jnp.ones(16, bool)

    def loss(gain, bias):
        y = normalise(convolution.by_products(x, kernel), gain, bias, active)
        return (convolution.max_pool(jax.nn.relu(y)) * jnp.asarray(values(8, 4, 4, 16, seed=2), jnp.float32)).sum()

    with formulated_for("gpu"):
        gradient = jax.grad(loss, (0, 1))
        lowered = jax.jit(gradient).lower(gain, bias)
        compiled = lowered.compile(compiler_options={"xla_backend_optimization_level": 0})(gain, bias)
        for ours, expected in zip(compiled, gradient(gain, bias), strict=True):
            np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-3)


def test_every_backend_convolves_alike():
    x, kernel = (jnp.asarray(each, jnp.float32) for each in (values(2, 4, 4, 1), values(5, 5, 1, 2, seed=1)))
    on_any = jax.jit(convolution.convolve_and_pool)
    with formulated_for("cpu"):
        on_cpu = on_any(x, kernel)
    with formulated_for("gpu"):
        on_gpu = on_any(x, kernel)
        by_convolution = jax.jit(lambda x, kernel: convolution.max_pool(convolution.by_convolution(x, kernel)))
        np.testing.assert_array_equal(on_gpu, by_convolution(x, kernel))
    assert on_gpu.dtype == jnp.float32
    np.testing.assert_allclose(on_gpu, on_cpu, rtol=0.02, atol=0.1)


def test_groups_are_normalised_without_their_masked_channels():
    x, gain, bias = values(2, 3, 3, 40) + 1, values(40, seed=1), values(40, seed=2)
    active = np.arange(40) < 20  # a whole group, four channels of the second, none of the third
    y = np.asarray(jax.jit(normalise)(*(jnp.asarray(each, jnp.float32) for each in (x, gain, bias, active))))
    for channels in (slice(0, 16), slice(16, 20)):
        group = x[..., channels]
        mean, variance = group.mean((1, 2, 3), keepdims=True), group.var((1, 2, 3), keepdims=True)
        expected = (group - mean) / np.sqrt(variance + 1e-5) * gain[channels] + bias[channels]
        np.testing.assert_allclose(y[..., channels], expected, atol=1e-4)
    assert np.isfinite(y).all()
