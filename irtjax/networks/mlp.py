"""Multilayer perceptron with one hidden layer, for images."""

import jax
from flax import nnx

from irtjax.networks.layers import Dense, dropout, image_values, only_active, width_mask
from irtjax.networks.sizes import Images, Sizes


class Mlp(nnx.Module):
    """logits = W₂ (m · relu(W₁ x + c₁)) + c₂, for the values x of an image, flattened, and a mask m of hidden units.

    `width` is the number of hidden units. Dropout is applied to them.
    """

    def __init__(self, sizes: Sizes[Images], active: jax.Array | int, *, rngs: nnx.Rngs):
        shape, width = sizes.inputs.shape, sizes.width
        self.format, self.dropout = sizes.inputs.format, sizes.dropout
        self.num_inputs = shape[0] * shape[1] * shape[2]
        self.hidden = Dense(self.num_inputs, width, rngs=rngs)
        self.out = Dense(width, sizes.num_classes, rngs=rngs)
        self.mask = width_mask(width, active)

    def __call__(self, embeddings: None, inputs: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """(B, H, W, channels) stored images -> (B, C) logits."""
        x = image_values(self.format, inputs).reshape(inputs.shape[0], self.num_inputs)
        hidden = only_active(self.mask, nnx.relu(self.hidden(x)))
        return self.out(dropout(hidden, self.dropout, key))
