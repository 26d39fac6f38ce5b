"""Convolutions normalised by groups of channels."""

import jax
import jax.numpy as jnp
from flax import nnx

from irtjax.networks.convolution import convolve
from irtjax.networks.layers import along_last, only_active

GROUP = 16
EPSILON = 1e-5


class NormalisedConvolution(nnx.Module):
    """norm(k * x): k drawn with variance 2 / inputs (He et al. 2015), no bias, as the norm has one.

    Layers are normalised by groups of 16 channels (`normalise`; Wu and He 2018), not by batch: there is no running
    state to keep, and the answer to an example does not depend on the others in its batch.
    """

    def __init__(self, num_inputs: int, num_outputs: int, *, stride: int = 1, rngs: nnx.Rngs):
        self.stride = stride
        self.kernel = nnx.Param(nnx.initializers.he_normal()(rngs.params(), (3, 3, num_inputs, num_outputs)))
        self.gain = nnx.Param(jnp.ones(num_outputs))
        self.bias = nnx.Param(jnp.zeros(num_outputs))

    def __call__(self, x: jax.Array, mask: nnx.Param) -> jax.Array:
        """(B, H, W, inputs) -> (B, ⌈H / stride⌉, ⌈W / stride⌉, outputs)."""
        y = convolve(x, self.kernel[...], self.stride)
        active = only_active(mask, jnp.ones_like(self.gain[...]))
        return only_active(mask, normalise(y, self.gain[...], self.bias[...], active))


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
