"""Long short-term memory over padded sequences: one kernel for every network that reads word by word."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx

from irtjax.networks.layers import Dense, compute_dtype, gradient_of_matrix, only_active


class Lstm(nnx.Module):
    r"""Long short-term memory (Hochreiter and Schmidhuber 1997) with forget gates (Gers et al. 2000).

    .. math::
        (i_t, f_t, o_t) = \sigma(W x_t + U h_{t-1} + b), \quad g_t = \tanh(W_g x_t + U_g h_{t-1} + b_g) \\
        c_t = f_t c_{t-1} + i_t g_t, \qquad h_t = m \, o_t \tanh(c_t)

    for a mask m of units. The bias of the forget gate starts at 1 (Jozefowicz et al. 2015). W x + b is one product
    for the whole sequence, U h one for all gates, whose 4 · width columns are in the order i, f, o, g. At padding the
    state stays as it is, so the state after the last column is that after the last word, and a reversed pass, which
    meets padding first, starts from 0 at the last word.

    Args:
        num_inputs: size of x.
        width: hidden units H.
        rngs: of the initial weights.
    """

    def __init__(self, num_inputs: int, width: int, *, rngs: nnx.Rngs):
        self.input = Dense(num_inputs, 4 * width, rngs=rngs)
        self.input.bias = nnx.Param(jnp.zeros(4 * width).at[width : 2 * width].set(1.0))
        self.recurrent = nnx.Param(nnx.initializers.lecun_normal()(rngs.params(), (width, 4 * width)))

    def __call__(self, x: jax.Array, present: jax.Array, mask: nnx.Param, *, reverse: bool = False) -> jax.Array:
        """States after every word: (L, B, inputs) and (L, B) bool -> (L, B, H); from the last word on if `reverse`."""
        return only_active(mask, states(self.input(x), self.masked_recurrent(mask), present, reverse))

    def masked_recurrent(self, mask: nnx.Param) -> jax.Array:
        """U (H, 4H) that ignores masked units: whatever their state is, it has no effect and no gradient."""
        return only_active(mask, self.recurrent[...].T).T


class BiLstm(nnx.Module):
    """Two LSTMs, one per direction, whose states are concatenated: (L, B, 2H)."""

    def __init__(self, num_inputs: int, width: int, *, rngs: nnx.Rngs):
        self.forward = Lstm(num_inputs, width, rngs=rngs)
        self.backward = Lstm(num_inputs, width, rngs=rngs)

    def __call__(self, x: jax.Array, present: jax.Array, mask: nnx.Param) -> jax.Array:
        """(L, B, inputs) -> (L, B, 2H): states after reading up to each word from the left, and from the right."""
        both = self.forward(x, present, mask), self.backward(x, present, mask, reverse=True)
        return jnp.concatenate(both, axis=-1)


class Step(NamedTuple):
    """One step of an LSTM, (..., H) each: its activated gates, and the state after it."""

    input: jax.Array
    forget: jax.Array
    output: jax.Array
    candidate: jax.Array
    memory: jax.Array
    hidden: jax.Array


def cell(z: jax.Array, memory: jax.Array) -> Step:
    """One step of an LSTM from z = W x + U h + b (B, 4H) and c (B, H)."""
    i, f, o, g = jnp.split(z, 4, axis=-1)
    i, f, o, g = *map(jax.nn.sigmoid, (i, f, o)), jnp.tanh(g)
    memory = f * memory + i * g
    return Step(i, f, o, g, memory, o * jnp.tanh(memory))


Residuals = tuple[Step, jax.Array, jax.Array]  # steps, U, and where there are words


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def states(z: jax.Array, recurrent: jax.Array, present: jax.Array, reverse: bool) -> jax.Array:
    """States of an LSTM from its input products.

    The gradient of a scan would add to dU at every step, with one product over B examples each. Here the backward pass
    returns dz of every step, and dU is one product over L · B. All derivatives of a step that need no gradient are
    formed for the whole sequence at once, so that the loop does little more than its matrix product.

    Args:
        z: (L, B, 4H) W x + b.
        recurrent: (H, 4H) U.
        present: (L, B) bool, False at padding.
        reverse: from the last column to the first.

    Returns:
        (L, B, H) states h; at padding, the state before it.
    """
    return _scan(z, recurrent, present, reverse).hidden


def _scan(z: jax.Array, recurrent: jax.Array, present: jax.Array, reverse: bool) -> Step:
    low = compute_dtype(recurrent.dtype)
    recurrent = recurrent.astype(low)

    def step(
        carry: tuple[jax.Array, jax.Array], at: tuple[jax.Array, jax.Array]
    ) -> tuple[tuple[jax.Array, jax.Array], Step]:
        hidden, memory = carry
        z, present = at
        new = cell(z + jnp.dot(hidden.astype(low), recurrent, preferred_element_type=z.dtype), memory)
        hidden = jnp.where(present[:, None], new.hidden, hidden)
        memory = jnp.where(present[:, None], new.memory, memory)
        return (hidden, memory), new._replace(hidden=hidden, memory=memory)

    zero = jnp.zeros((z.shape[1], recurrent.shape[0]), z.dtype)
    return jax.lax.scan(step, (zero, zero), (z, present), reverse=reverse)[1]


def _states_forward(
    z: jax.Array, recurrent: jax.Array, present: jax.Array, reverse: bool
) -> tuple[jax.Array, Residuals]:
    steps = _scan(z, recurrent, present, reverse)
    return steps.hidden, (steps, recurrent, present)


def _states_backward(reverse: bool, residuals: Residuals, gradient: jax.Array) -> tuple[jax.Array, jax.Array, None]:
    (i, f, o, g, memory, hidden), recurrent, present = residuals
    tanh, here = jnp.tanh(memory), present[:, :, None]

    # what dh and dc are multiplied by; 0 at padding, where they pass unchanged
    by_input, by_forget = g * i * (1 - i), _before(memory, reverse) * f * (1 - f)
    by_output, by_candidate = tanh * o * (1 - o), i * (1 - g * g)
    by_gates = tuple(jnp.where(here, by, 0) for by in (by_input, by_forget, by_output, by_candidate))
    hidden_by_memory = jnp.where(here, o * (1 - tanh * tanh), 0)
    memory_by_memory = jnp.where(here, f, 1)
    hidden_by_hidden = jnp.broadcast_to(jnp.where(here, 0, 1).astype(f.dtype), f.shape)

    low = compute_dtype(recurrent.dtype)
    transposed = recurrent.T.astype(low)

    def step(carry: tuple[jax.Array, jax.Array], at: Any) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        dh, dc = carry
        gradient, (by_i, by_f, by_o, by_g), hidden_by_memory, memory_by_memory, hidden_by_hidden = at
        dh = dh + gradient
        dc = dc + dh * hidden_by_memory
        dz = jnp.concatenate([dc * by_i, dc * by_f, dh * by_o, dc * by_g], axis=-1)
        back = jnp.dot(dz.astype(low), transposed, preferred_element_type=dz.dtype)
        return (back + dh * hidden_by_hidden, dc * memory_by_memory), dz

    zero = jnp.zeros_like(hidden[0])
    steps = (gradient, by_gates, hidden_by_memory, memory_by_memory, hidden_by_hidden)
    _, dz = jax.lax.scan(step, (zero, zero), steps, reverse=not reverse)
    return dz, gradient_of_matrix(_before(hidden, reverse), dz), None


def _before(states: jax.Array, reverse: bool) -> jax.Array:
    """The state that each step started from: states one step earlier, 0 at first."""
    zero = jnp.zeros_like(states[:1])
    return jnp.concatenate([states[1:], zero] if reverse else [zero, states[:-1]])


states.defvjp(_states_forward, _states_backward)
