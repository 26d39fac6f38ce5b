"""The LSTM kernel: by hand, against autodiff in float64, through padding and in both directions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from irtjax.kernels.formulation import formulated_for
from irtjax.networks import recurrent

LENGTH, BATCH, WIDTH = 6, 4, 3
ENDS = np.array([6, 1, 4, 5])
PRESENT = np.arange(LENGTH)[:, None] < ENDS[None]


def random_case(seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(LENGTH, BATCH, 4 * WIDTH)), rng.normal(size=(WIDTH, 4 * WIDTH))


def by_autodiff(z, weights, present, reverse):
    """The recurrence as in the paper, its gradient left to JAX."""

    def step(carry, at):
        hidden, memory = carry
        z, present = at
        i, f, o, g = jnp.split(z + hidden @ weights, 4, axis=-1)
        new_memory = jax.nn.sigmoid(f) * memory + jax.nn.sigmoid(i) * jnp.tanh(g)
        new_hidden = jax.nn.sigmoid(o) * jnp.tanh(new_memory)
        carry = tuple(
            jnp.where(present[:, None], new, old) for new, old in ((new_hidden, hidden), (new_memory, memory))
        )
        return carry, carry[0]

    zero = jnp.zeros((z.shape[1], weights.shape[0]), z.dtype)
    return jax.lax.scan(step, (zero, zero), (z, present), reverse=reverse)[1]


def test_one_unit_by_hand():
    # i = f = o = 1/2 and g = tanh(1) at both words, h fed back into nothing
    z = np.tile(np.array([0.0, 0.0, 0.0, 1.0]), (2, 1, 1))
    states = recurrent.states(jnp.asarray(z), jnp.zeros((1, 4)), jnp.ones((2, 1), bool), False)
    first = np.tanh(1) / 2
    second = first / 2 + np.tanh(1) / 2
    np.testing.assert_allclose(states[:, 0, 0], [np.tanh(first) / 2, np.tanh(second) / 2], rtol=1e-6)


@pytest.mark.parametrize("reverse", [False, True])
def test_states_and_gradients_against_autodiff(reverse):
    with jax.enable_x64(True):
        z, weights = map(jnp.asarray, random_case())
        sought = jnp.asarray(np.random.default_rng(1).normal(size=(LENGTH, BATCH, WIDTH)))

        def value(kernel):
            def loss(z, weights):
                states = kernel(z, weights, jnp.asarray(PRESENT), reverse)
                return (states * sought).sum(), states

            return jax.jit(jax.value_and_grad(loss, (0, 1), has_aux=True))(z, weights)

        ours, expected = value(recurrent.states), value(by_autodiff)
        for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(expected), strict=True):
            assert a.dtype == jnp.float64
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
        np.testing.assert_array_equal(ours[1][0][~PRESENT], 0)  # inputs at padding have no gradient


@pytest.mark.parametrize("reverse", [False, True])
def test_padding_carries_the_state(reverse):
    z, weights = (jnp.asarray(x, jnp.float32) for x in random_case())
    kernel = jax.jit(recurrent.states, static_argnums=3)
    states = np.asarray(kernel(z, weights, jnp.asarray(PRESENT), reverse))
    for example, end in list(enumerate(ENDS))[1:3]:
        alone = kernel(z[:end, example : example + 1], weights, jnp.ones((end, 1), bool), reverse)
        np.testing.assert_allclose(states[:end, example], alone[:, 0], atol=1e-6)
        carried = 0 if reverse else states[end - 1, example]
        np.testing.assert_array_equal(states[end:, example], np.broadcast_to(carried, (LENGTH - end, WIDTH)))


def test_bfloat16_products_stay_close():
    z, weights = (jnp.asarray(x, jnp.float32) for x in random_case())

    def value(backend):
        def loss(weights):
            return jnp.sin(recurrent.states(z, weights, jnp.asarray(PRESENT), False)).sum()

        with formulated_for(backend):
            return jax.jit(jax.value_and_grad(loss))(weights)

    for low, full in zip(jax.tree.leaves(value("gpu")), jax.tree.leaves(value("cpu")), strict=True):
        assert low.dtype == jnp.float32
        np.testing.assert_allclose(low, full, atol=0.1)
        assert np.abs(low - full).max() > 1e-5  # bfloat16 it was
