"""Random changes of training images that leave their class as it is."""

import jax
import jax.numpy as jnp

MARGIN = 4  # pixels


def flip_and_shift(key: jax.Array, images: jax.Array) -> jax.Array:
    """Each image mirrored or not, and cut at random from itself with `MARGIN` black pixels around it.

    The augmentation usual for CIFAR (He et al. 2016, section 4.2).

    Args:
        key: of the draws.
        images: (B, H, W, channels).
    """
    count, height, width, channels = images.shape
    flip_key, shift_key = jax.random.split(key)
    flipped = jnp.where(jax.random.bernoulli(flip_key, shape=(count, 1, 1, 1)), images[:, :, ::-1], images)
    padded = jnp.pad(flipped, ((0, 0), (MARGIN, MARGIN), (MARGIN, MARGIN), (0, 0)))
    corners = jax.random.randint(shift_key, (count, 2), 0, 2 * MARGIN + 1)

    def cut(image, corner):
        return jax.lax.dynamic_slice(image, (corner[0], corner[1], 0), (height, width, channels))

    return jax.vmap(cut)(padded, corners)
