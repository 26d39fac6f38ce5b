"""A residual network, for small images."""

import jax
import jax.numpy as jnp
from flax import nnx

from irtjax.networks.group_norm import NormalisedConvolution
from irtjax.networks.layers import Dense, dropout, image_values, width_mask
from irtjax.networks.sizes import Images, Sizes

STAGES = (1, 2, 4)  # channels, in multiples of the width; beyond the first, each halves the size of images
BLOCKS = 1  # of each stage


class ResNet(nnx.Module):
    """The residual network of He et al. (2016) for small images (section 4.2), with 6 · `blocks` + 2 layers: ResNet-8.

    x_0 = relu(norm(k_0 * x)); then three stages of `blocks` blocks, of width, 2 · width and 4 · width channels:
        x_{t+1} = relu(s(x_t) + norm(k'_t * relu(norm(k_t * x_t))))
    with kernels of 3 × 3. The first block of the second and of the third stage halves the size of images: k_t and the
    shortcut s take every second pixel, and s puts zeros into channels that it does not have (option A there, without
    parameters). In all others s(x) = x. logits = W u + c, with u the mean of the last x over the pixels.

    At `width` 16 the channels are the published 16, 32, 64. Normalisation is by groups (`group_norm`), theirs by batch.
    Dropout, of which they have none, is applied to u.
    """

    def __init__(self, sizes: Sizes[Images], active: jax.Array | int, *, blocks: int = BLOCKS, rngs: nnx.Rngs):
        width, channels = sizes.width, sizes.width
        self.format, self.dropout = sizes.inputs.format, sizes.dropout
        self.first = NormalisedConvolution(sizes.inputs.shape[2], width, rngs=rngs)
        layers = []
        for stage, multiple in enumerate(STAGES):
            for block in range(blocks):
                stride = 2 if stage > 0 and block == 0 else 1
                layers.append(Block(channels, multiple * width, stride, rngs=rngs))
                channels = multiple * width
        self.layers = nnx.List(layers)
        self.out = Dense(channels, sizes.num_classes, rngs=rngs)
        self.mask = width_mask(width, active)

    def __call__(self, embeddings: None, inputs: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """(B, H, W, channels) stored images -> (B, C) logits."""
        x = nnx.relu(self.first(image_values(self.format, inputs), self.mask))
        for layer in self.layers:
            x = layer(x, self.mask)
        return self.out(dropout(x.mean((1, 2)), self.dropout, key))


class Block(nnx.Module):
    """relu(s(x) + norm(k' * relu(norm(k * x))))."""

    def __init__(self, num_inputs: int, num_outputs: int, stride: int, *, rngs: nnx.Rngs):
        self.stride, self.more = stride, num_outputs - num_inputs
        self.first = NormalisedConvolution(num_inputs, num_outputs, stride=stride, rngs=rngs)
        self.second = NormalisedConvolution(num_outputs, num_outputs, rngs=rngs)

    def __call__(self, x: jax.Array, mask: nnx.Param) -> jax.Array:
        """(B, H, W, inputs) -> (B, ⌈H / stride⌉, ⌈W / stride⌉, outputs)."""
        y = self.second(nnx.relu(self.first(x, mask)), mask)
        shortcut = jnp.pad(x[:, :: self.stride, :: self.stride], [(0, 0)] * 3 + [(0, self.more)])
        return nnx.relu(shortcut + y)
