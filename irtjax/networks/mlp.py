"""Multilayer perceptron with one hidden layer, for images."""

import jax
from flax import nnx

from irtjax.networks.layers import Dense, dropout, image_values, only_active, width_mask
from irtjax.tasks.task import ImageFormat


class Mlp(nnx.Module):
    """logits = W₂ (m · relu(W₁ x + c₁)) + c₂, for the values x of an image, flattened, and a mask m of hidden units.

    Args:
        shape: (height, width, channels) of an image.
        format: of the images.
        width: hidden units.
        num_classes: C.
        dropout: rate, of the hidden units.
        active: hidden units that are not masked.
        rngs: of the initial weights.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        format: ImageFormat,
        width: int,
        num_classes: int,
        dropout: float,
        active: jax.Array,
        *,
        rngs: nnx.Rngs,
    ):
        self.format, self.dropout = format, dropout
        self.num_inputs = shape[0] * shape[1] * shape[2]
        self.hidden = Dense(self.num_inputs, width, rngs=rngs)
        self.out = Dense(width, num_classes, rngs=rngs)
        self.mask = width_mask(width, active)

    def __call__(self, embeddings: None, inputs: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """(B, H, W, channels) stored images -> (B, C) logits."""
        x = image_values(self.format, inputs).reshape(inputs.shape[0], self.num_inputs)
        hidden = only_active(self.mask, nnx.relu(self.hidden(x)))
        return self.out(dropout(hidden, self.dropout, key))
