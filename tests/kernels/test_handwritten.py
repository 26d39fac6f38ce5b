"""Kernels written by hand are used where the GPU at hand agrees with XLA."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.kernels import handwritten


def reference(x):
    return x.sum(), 2 * x


def kernel(x):
    return jnp.ones_like(x) @ x, x + x


def off(x):
    value, twice = reference(x)
    return value, 1.001 * twice


def fails(x):
    raise RuntimeError("no such instruction")


def single():
    yield (np.linspace(0, 1, 9, dtype=np.float32),)


def double():
    yield (np.linspace(0, 1, 9),)


@pytest.mark.parametrize("problems", [single, double])
def test_a_kernel_that_fails_or_differs_is_left_aside(problems):
    assert handwritten.agrees(kernel, reference, problems)
    for wrong, message in ((off, "its sums differ"), (fails, "RuntimeError: no such instruction")):
        with pytest.warns(RuntimeWarning, match=f"left aside on this one, for a slower form .{message}"):
            assert not handwritten.agrees(wrong, reference, problems)


def test_doubles_are_compared_as_doubles():
    def nearly(x):
        value, twice = reference(x)
        return value, twice * (1 + 1e-7)

    with pytest.warns(RuntimeWarning, match="its sums differ"):
        assert not handwritten.agrees(nearly, reference, double)
    assert handwritten.agrees(nearly, reference, single)


def test_it_is_tried_where_a_program_is_traced_for_a_gpu(monkeypatch):
    assert handwritten.is_right_here(off, reference, single)  # no GPU is here
    tried = []

    @jax.jit
    def while_tracing(x):
        with monkeypatch.context() as patch:
            patch.setattr(jax, "default_backend", lambda: "gpu")
            tried.append(handwritten.is_right_here.__wrapped__(kernel, reference, single))
        return x

    while_tracing(1.0)
    assert tried == [True]


def test_sizes_that_pallas_addresses():
    def sized(*shape, dtype=jnp.int8):
        return jax.ShapeDtypeStruct(shape, dtype)

    assert handwritten.addressable(sized(6, 4), sized(2**16, 2**17))
    assert not handwritten.addressable(sized(6, 4), sized(2**16, 2**15))
    assert not handwritten.addressable(sized(2**16, 2**12, dtype=jnp.float64))
