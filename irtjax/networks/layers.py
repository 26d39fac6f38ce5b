"""What several networks share."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from irtjax.tasks.task import ImageFormat


def image_values(format: ImageFormat, images: jax.Array) -> jax.Array:
    """Stored images as float32 inputs: (x / scale - mean) / deviation, by channel."""
    mean, deviation = np.float32(format.mean), np.float32(format.deviation)
    gain = 1 / (format.scale * deviation)
    shape = (1,) * (images.ndim - 1) + (-1,)
    return images.astype(jnp.float32) * gain.reshape(shape) - (mean / deviation).reshape(shape)


def width_mask(width: int, active: jax.Array) -> nnx.Param:
    """(width,) ones for the first `active` hidden units, zeros for the others.

    A narrow network in a crowd of wide ones: a masked unit puts out 0 and gets no gradient. The mask is stored among
    the parameters, because each member has its own; networks take it through `stop_gradient`, so it never changes.
    """
    return nnx.Param((jnp.arange(width) < active).astype(jnp.float32))
