"""Parts that several networks share: dense layers, dropout, masks of hidden units, products in two precisions."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from irtjax.kernels.formulation import for_accelerator
from irtjax.networks.hashing import random_bits
from irtjax.tasks.task import ImageFormat


def image_values(format: ImageFormat, images: jax.Array) -> jax.Array:
    """Stored images as float32 inputs: (x / scale - mean) / deviation, by channel."""
    mean, deviation = np.asarray(format.mean, np.float32), np.asarray(format.deviation, np.float32)
    gain, offset = jnp.asarray(1 / (format.scale * deviation)), jnp.asarray(mean / deviation)
    return along_last(gain, images) * images.astype(jnp.float32) - along_last(offset, images)


def along_last(vector: jax.Array, like: jax.Array) -> jax.Array:
    """(N,) with leading axes of 1, up to the rank of `like`: ranks are never promoted silently."""
    return vector.reshape((1,) * (like.ndim - 1) + (-1,))


def compute_dtype(dtype: jnp.dtype) -> jnp.dtype:
    """The dtype that operands of `dtype` are multiplied in: bfloat16 for float32 on a GPU or TPU, else their own."""
    return jnp.dtype(jnp.bfloat16 if for_accelerator() and dtype == jnp.float32 else dtype)


@jax.custom_vjp
def matmul(x: jax.Array, w: jax.Array) -> jax.Array:
    """Product of x (..., K) and w (K, N): operands in `compute_dtype`, sums and result in the dtype of x.

    Its gradient is formed in the same way, in the order that suits a CPU. JAX's own would mix bfloat16 with float32.
    """
    return _product(x, w, x.ndim - 1, 0)


def gradient_of_matrix(x: jax.Array, gradient: jax.Array) -> jax.Array:
    """(K, N) sum of x' g over all leading axes of x (..., K) and g (..., N): the gradient of `matmul` in w."""
    x, gradient = x.reshape(-1, x.shape[-1]), gradient.reshape(-1, gradient.shape[-1])
    # the narrow side first: with the wide one transposed, XLA's product on a CPU takes twice the time
    if x.shape[1] <= gradient.shape[1]:
        return _product(x, gradient, 0, 0)
    return _product(gradient, x, 0, 0).T


def _product(x: jax.Array, y: jax.Array, x_axis: int, y_axis: int) -> jax.Array:
    low = compute_dtype(x.dtype)
    dimensions = (((x_axis,), (y_axis,)), ((), ()))
    return jax.lax.dot_general(x.astype(low), y.astype(low), dimensions, preferred_element_type=x.dtype)


def _matmul_forward(x: jax.Array, w: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    return matmul(x, w), (x, w)


def _matmul_backward(residuals: tuple[jax.Array, jax.Array], gradient: jax.Array) -> tuple[jax.Array, jax.Array]:
    x, w = residuals
    return _product(gradient, w, x.ndim - 1, 1), gradient_of_matrix(x, gradient)


matmul.defvjp(_matmul_forward, _matmul_backward)


class Dense(nnx.Module):
    """W x + c; W is drawn with variance 1 / inputs (LeCun et al. 1998), c starts at 0."""

    def __init__(self, num_inputs: int, num_outputs: int, *, rngs: nnx.Rngs):
        self.kernel = nnx.Param(nnx.initializers.lecun_normal()(rngs.params(), (num_inputs, num_outputs)))
        self.bias = nnx.Param(jnp.zeros(num_outputs))

    def __call__(self, x: jax.Array) -> jax.Array:
        """(..., inputs) -> (..., outputs)."""
        y = matmul(x, self.kernel[...])
        return y + along_last(self.bias[...], y)


def dropout(x: jax.Array, rate: float, key: jax.Array | None) -> jax.Array:
    """Values set to 0 with probability `rate`, the others divided by 1 - rate (Srivastava et al. 2014).

    Each value takes one random byte, a quarter of the cost of a random float: `rate` is rounded to a multiple of 1/256.

    Args:
        x: any shape.
        rate: 0 for no dropout.
        key: None for no dropout, as in answering.
    """
    dropped = round(256 * rate)
    if key is None or dropped == 0:
        return x
    words = random_bits(key, -(-x.size // 4))
    draws = jax.lax.bitcast_convert_type(words, jnp.uint8).reshape(-1)[: x.size].reshape(x.shape)
    return jnp.where(draws >= dropped, x * (256 / (256 - dropped)), 0)


def split_key(key: jax.Array | None, count: int) -> list[jax.Array | None]:
    """`count` keys, or as many None."""
    return [None] * count if key is None else list(jax.random.split(key, count))


def width_mask(width: int, active: jax.Array | int) -> nnx.Param:
    """(width,) ones for the first `active` hidden units, zeros for the others.

    It makes a narrow network in a crowd of wide ones: a masked unit puts out 0 and gets no gradient. The mask is stored
    among the parameters, because each member has its own. Networks apply it by `only_active`, so it never changes.
    """
    return nnx.Param((jnp.arange(width) < active).astype(jnp.float32))


def only_active(mask: nnx.Param, x: jax.Array) -> jax.Array:
    """`x` (..., k · width) with masked units set to 0; in a layer k times as wide as the mask, units ≥ k · active."""
    units = jax.lax.stop_gradient(mask[...]).astype(x.dtype)
    return x * along_last(jnp.repeat(units, x.shape[-1] // units.size), x)
