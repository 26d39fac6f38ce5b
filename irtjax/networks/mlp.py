"""Multilayer perceptron with one hidden layer."""

import jax
import jax.numpy as jnp
from flax import nnx


class Mlp(nnx.Module):
    """logits = W₂ relu(W₁ x / scale + c₁) + c₂, for inputs x of any shape, flattened.

    Args:
        num_inputs: size of one flattened input.
        width: hidden units.
        num_classes: C.
        input_scale: integer inputs are divided by it on the device.
        rngs: of the initial weights.
    """

    def __init__(self, num_inputs: int, width: int, num_classes: int, input_scale: float, *, rngs: nnx.Rngs):
        self.input_scale = input_scale
        self.hidden = nnx.Linear(num_inputs, width, rngs=rngs)
        self.out = nnx.Linear(width, num_classes, rngs=rngs)

    def __call__(self, inputs: jax.Array) -> jax.Array:
        """(B, ...) inputs -> (B, C) logits."""
        x = inputs.reshape(inputs.shape[0], self.hidden.in_features).astype(jnp.float32) / self.input_scale
        return self.out(nnx.relu(self.hidden(x)))
