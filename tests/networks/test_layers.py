"""What networks share: products in two precisions, dropout, masks, image values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.kernels.formulation import for_accelerator, formulated_for
from irtjax.networks import layers
from irtjax.tasks.task import ImageFormat


@pytest.mark.parametrize(("backend", "tolerance"), [("cpu", 1e-6), ("gpu", 0.02), ("tpu", 0.02)])
def test_products_and_their_gradients(backend, tolerance):
    rng = np.random.default_rng(0)
    for outputs in (3, 9):  # both orders of the gradient in w
        x, w, g = rng.normal(size=(2, 4, 5)), rng.normal(size=(5, outputs)), rng.normal(size=(2, 4, outputs))
        x, w, g = (jnp.asarray(each, jnp.float32) for each in (x, w, g))

        @jax.jit
        def product_and_gradients(x, w, g):
            y, back = jax.vjp(layers.matmul, x, w)
            return y, *back(g)

        with formulated_for(backend):
            assert layers.compute_dtype(jnp.float32) == (jnp.float32 if backend == "cpu" else jnp.bfloat16)
            y, dx, dw = product_and_gradients(x, w, g)
        for ours, expected in ((y, x @ w), (dx, g @ w.T), (dw, jnp.einsum("abk,abn->kn", x, g))):
            assert ours.dtype == jnp.float32
            np.testing.assert_allclose(ours, expected, atol=tolerance * np.abs(expected).max())


def test_products_sum_in_float32():
    x = jnp.ones((1, 1001))  # 1001 is no bfloat16
    with formulated_for("gpu"):
        np.testing.assert_array_equal(layers.matmul(x, jnp.ones((1001, 1))), [[1001.0]])


def test_float64_is_never_lowered():
    with formulated_for("gpu"):
        assert layers.compute_dtype(np.dtype("float64")) == np.float64


def test_the_device_at_hand_decides_unless_another_is_named(monkeypatch):
    for at_hand, low in (("cpu", False), ("gpu", True), ("tpu", True)):
        monkeypatch.setattr(jax, "default_backend", lambda name=at_hand: name)
        assert for_accelerator() == low
        for named in ("cpu", "gpu"):
            with formulated_for(named):
                assert for_accelerator() == (named == "gpu")


def test_a_jitted_program_is_traced_anew_for_another_backend():
    x, w = jnp.full((2, 3), 1 + 2.0**-12), jnp.ones((3, 2))  # in bfloat16, 1
    multiply = jax.jit(layers.matmul)
    for backend, expected in (("cpu", 3 + 3 * 2.0**-12), ("gpu", 3.0), ("cpu", 3 + 3 * 2.0**-12)):
        with formulated_for(backend):
            np.testing.assert_array_equal(multiply(x, w), np.full((2, 2), np.float32(expected)))


@pytest.mark.parametrize("rate", [0.25, 0.5])
def test_dropout(rate):
    x = jnp.full((101, 99), 2.0)
    dropped = np.asarray(jax.jit(layers.dropout, static_argnums=1)(x, rate, jax.random.key(0)))
    assert set(np.unique(dropped)) == {0.0, np.float32(2 / (1 - rate))}
    assert abs((dropped == 0).mean() - rate) < 0.02  # standard error 0.005
    assert layers.dropout(x, rate, None) is x
    assert layers.dropout(x, 0.0, jax.random.key(0)) is x


def test_wider_layers_repeat_each_place_of_the_mask():
    mask = layers.width_mask(3, 2)
    np.testing.assert_array_equal(layers.only_active(mask, jnp.ones((1, 6))), [[1, 1, 1, 1, 0, 0]])
    np.testing.assert_array_equal(layers.only_active(mask, jnp.ones((2, 3))), [[1, 1, 0], [1, 1, 0]])


def test_image_values_by_hand():
    format = ImageFormat(scale=10.0, mean=(0.5, 0.2), deviation=(0.5, 0.1))
    images = np.array([[[[10, 2], [0, 5]]]], np.uint8)
    np.testing.assert_allclose(layers.image_values(format, images), [[[[1, 0], [-1, 3]]]], atol=1e-6)
