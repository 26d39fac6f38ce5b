"""VGG-16, for images of 32 × 32."""

import jax
from flax import nnx

from irtjax.networks.convolution import max_pool
from irtjax.networks.group_norm import NormalisedConvolution
from irtjax.networks.layers import Dense, dropout, image_values, only_active, split_key, width_mask
from irtjax.networks.sizes import Images, Sizes

BLOCKS = ((1, 1), (2, 2), (4, 4, 4), (8, 8, 8), (8, 8, 8))  # channels of each convolution, in multiples of the width


class Vgg16(nnx.Module):
    """Configuration D of Simonyan and Zisserman (2015): 13 convolutions of 3 × 3 in five blocks.

    A block ends with a pool of 2 × 2, which rounds odd sizes up. A layer is x ↦ relu(norm(k * x)), for images padded to
    keep their size. At `width` 64, the channels are the published 64, 128, 256, 512, 512. As usual for images of
    32 × 32, of which the pools leave one pixel, the two dense layers of 4096 units are one of 8 · width:
    logits = W_2 relu(W_1 vec(x) + c_1) + c_2, with dropout before both.

    Layers are normalised by groups of 16 channels (`group_norm`). The network of 2015 had no normalisation and was
    trained in stages instead.
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
                x = nnx.relu(next(layers)(x, self.mask))
            x = max_pool(x)
        flat = dropout(x.reshape(x.shape[0], -1), self.dropout, flat_key)
        hidden = only_active(self.mask, nnx.relu(self.hidden(flat)))
        return self.out(dropout(hidden, self.dropout, hidden_key))
