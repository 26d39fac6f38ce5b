"""VGG-16, for images of 32 × 32."""

import jax
import jax.numpy as jnp
from flax import nnx

from irtjax.networks.convolution import convolve, max_pool
from irtjax.networks.layers import Dense, along_last, dropout, image_values, only_active, split_key, width_mask
from irtjax.networks.sizes import Images, Sizes

BLOCKS = ((1, 1), (2, 2), (4, 4, 4), (8, 8, 8), (8, 8, 8))  # channels of each convolution, in multiples of the width
GROUP = 16
EPSILON = 1e-5


class Vgg16(nnx.Module):
    """Configuration D of Simonyan and Zisserman (2015): 13 convolutions of 3 × 3 in five blocks.

    A block ends with a pool of 2 × 2, which rounds odd sizes up. A layer is x ↦ relu(norm(k * x)), for images padded to
    keep their size. At `width` 64, the channels are the published 64, 128, 256, 512, 512. As usual for images of
    32 × 32, of which the pools leave one pixel, the two dense layers of 4096 units are one of 8 · width:
    logits = W_2 relu(W_1 vec(x) + c_1) + c_2, with dropout before both.

    Layers are normalised by groups of 16 channels (`normalise`; Wu and He 2018), not by batch: there is no running
    state to keep, and the answer to an example does not depend on the others in its batch. The network of 2015 had no
    normalisation and was trained in stages instead.
    """

    def __init__(self, sizes: Sizes[Images], active: jax.Array | int, *, rngs: nnx.Rngs):
        width, (height, breadth, channels) = sizes.width, sizes.inputs.shape
        self.format, self.dropout = sizes.inputs.format, sizes.dropout
        layers = []
        for block in BLOCKS:
            for multiple in block:
                layers.append(NormalisedConvolution(channels, multiple * width, rngs=rngs))
                channels = multiple * width
            height, breadth = -(-height // 2), -(-breadth // 2)
        self.layers = nnx.List(layers)
        self.hidden = Dense(height * breadth * channels, 8 * width, rngs=rngs)
        self.out = Dense(8 * width, sizes.num_classes, rngs=rngs)
        self.mask = width_mask(width, active)

    def __call__(self, embeddings: None, inputs: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """(B, H, W, channels) stored images -> (B, C) logits."""
        flat_key, hidden_key = split_key(key, 2)
        x, layers = image_values(self.format, inputs), iter(self.layers)
        for block in BLOCKS:
            for _ in block:
                x = next(layers)(x, self.mask)
            x = max_pool(x)
        flat = dropout(x.reshape(x.shape[0], -1), self.dropout, flat_key)
        hidden = only_active(self.mask, nnx.relu(self.hidden(flat)))
        return self.out(dropout(hidden, self.dropout, hidden_key))


class NormalisedConvolution(nnx.Module):
    """relu(norm(k * x)): k drawn with variance 2 / inputs (He et al. 2015), no bias, as the norm has one."""

    def __init__(self, num_inputs: int, num_outputs: int, *, rngs: nnx.Rngs):
        self.kernel = nnx.Param(nnx.initializers.he_normal()(rngs.params(), (3, 3, num_inputs, num_outputs)))
        self.gain = nnx.Param(jnp.ones(num_outputs))
        self.bias = nnx.Param(jnp.zeros(num_outputs))

    def __call__(self, x: jax.Array, mask: nnx.Param) -> jax.Array:
        """(B, H, W, inputs) -> (B, H, W, outputs)."""
        y = convolve(x, self.kernel[...])
        active = only_active(mask, jnp.ones_like(self.gain[...]))
        return only_active(mask, nnx.relu(normalise(y, self.gain[...], self.bias[...], active)))


def normalise(x: jax.Array, gain: jax.Array, bias: jax.Array, active: jax.Array) -> jax.Array:
    """γ_c (x - μ) / √(σ² + ε) + β_c, for the mean μ and variance σ² over an image's pixels of 16 successive channels.

    Args:
        x: (B, H, W, C).
        gain: (C,) γ.
        bias: (C,) β.
        active: (C,) ones for channels that count, zeros for masked ones. A group that is partly masked, or a last group
            of fewer than 16 channels, has the mean and variance of the channels that it has.
    """
    channels = x.shape[-1]

    def by_group(values: jax.Array) -> jax.Array:  # (..., C) -> (..., G) sums over active channels
        values = values * along_last(active, values)
        padded = jnp.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, -channels % GROUP)])
        return padded.reshape(*values.shape[:-1], -1, GROUP).sum(-1)

    count = jnp.maximum(by_group(active), 1)[None]
    mean = by_group(x.mean((1, 2))) / count
    variance = jnp.maximum(by_group((x * x).mean((1, 2))) / count - mean * mean, 0)
    mean, deviation = (
        jnp.repeat(values, GROUP, axis=1)[:, :channels] for values in (mean, jnp.sqrt(variance + EPSILON))
    )
    scale = gain[None] / deviation
    # two passes over the images, one for sums and one for values: everything else has one value per image and channel
    return x * scale[:, None, None] + (bias[None] - mean * scale)[:, None, None]
