"""Two convolutions and two dense layers, for small images."""

import jax
import jax.numpy as jnp
from flax import nnx

from irtjax.networks.convolution import convolve_and_pool
from irtjax.networks.layers import Dense, along_last, dropout, image_values, only_active, split_key, width_mask
from irtjax.networks.sizes import Images, Sizes

KERNEL = 5


class LeNet(nnx.Module):
    """A network in the manner of LeNet-5 (LeCun et al. 1998), with rectifiers, max-pooling and dropout.

    x_1 = relu(pool(k_1 * x) + b_1) of `width` channels, x_2 = relu(pool(k_2 * x_1) + b_2) of 2 · width, for 5 × 5
    kernels over images padded to keep their size and pools of 2 × 2; u = relu(W_1 vec(x_2) + c_1) of 8 · width units;
    logits = W_2 u + c_2. Dropout before both dense layers. (Bias and rectifier come after the pool, where they cost a
    quarter; neither changes which of four values is the largest.)

    Args:
        sizes: of the inputs and layers.
        active: channels of the first convolution that are not masked.
        dropout_once: only between the two dense layers, as by Lalor (2020, 5.2.1).
        rngs: of the initial weights.
    """

    def __init__(self, sizes: Sizes[Images], active: jax.Array | int, *, dropout_once: bool = False, rngs: nnx.Rngs):
        width, (height, breadth, channels) = sizes.width, sizes.inputs.shape
        self.format, self.dropout, self.dropout_once = sizes.inputs.format, sizes.dropout, dropout_once
        self.first = Convolution(KERNEL, channels, width, rngs=rngs)
        self.second = Convolution(KERNEL, width, 2 * width, rngs=rngs)
        self.pixels = -(-height // 4) * -(-breadth // 4)
        self.hidden = Dense(self.pixels * 2 * width, 8 * width, rngs=rngs)
        self.out = Dense(8 * width, sizes.num_classes, rngs=rngs)
        self.mask = width_mask(width, active)

    def __call__(self, embeddings: None, inputs: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """(B, H, W, channels) stored images -> (B, C) logits."""
        flat_key, hidden_key = split_key(key, 2)
        x = image_values(self.format, inputs)
        for layer in (self.first, self.second):
            pooled = convolve_and_pool(x, layer.kernel[...])
            x = only_active(self.mask, nnx.relu(pooled + along_last(layer.bias[...], pooled)))
        flat = dropout(x.reshape(x.shape[0], -1), self.dropout, None if self.dropout_once else flat_key)
        hidden = only_active(self.mask, nnx.relu(self.hidden(flat)))
        return self.out(dropout(hidden, self.dropout, hidden_key))


class Convolution(nnx.Module):
    """Kernel and bias of a convolution: variance 2 / inputs of a rectified unit (He et al. 2015), and 0."""

    def __init__(self, size: int, num_inputs: int, num_outputs: int, *, rngs: nnx.Rngs):
        shape = (size, size, num_inputs, num_outputs)
        self.kernel = nnx.Param(nnx.initializers.he_normal()(rngs.params(), shape))
        self.bias = nnx.Param(jnp.zeros(num_outputs))
