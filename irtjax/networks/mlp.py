"""Multilayer perceptron with one hidden layer, for images."""

import jax
from flax import nnx

from irtjax.networks.layers import image_values, width_mask
from irtjax.tasks.task import ImageFormat


class Mlp(nnx.Module):
    """logits = W₂ (m · relu(W₁ x + c₁)) + c₂, for the values x of an image, flattened, and a mask m of hidden units.

    Args:
        num_inputs: size of one flattened image.
        width: hidden units.
        num_classes: C.
        format: of the images.
        active: hidden units that are not masked.
        rngs: of the initial weights.
    """

    def __init__(
        self, num_inputs: int, width: int, num_classes: int, format: ImageFormat, active: jax.Array, *, rngs: nnx.Rngs
    ):
        self.format = format
        self.hidden = nnx.Linear(num_inputs, width, rngs=rngs)
        self.out = nnx.Linear(width, num_classes, rngs=rngs)
        self.mask = width_mask(width, active)

    def __call__(self, embeddings: None, inputs: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """(B, H, W, channels) stored images -> (B, C) logits; there is nothing random in training."""
        x = image_values(self.format, inputs).reshape(inputs.shape[0], self.hidden.in_features)
        return self.out(jax.lax.stop_gradient(self.mask[...]) * nnx.relu(self.hidden(x)))
