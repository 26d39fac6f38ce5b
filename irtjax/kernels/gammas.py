"""Log Γ and its derivative at once, by one logarithm, one division and a polynomial more than Stirling's series.

    log Γ(x) = (z - 1/2) log z - z + log(2π)/2 + s(z) - log(x (x + 1) … (x + 7)),     z = x + 8,
    ψ(x)     = log z - 1/(2 z) + s'(z) - Σ_k 1/(x + k),                               s(z) = 1/(12 z) - 1/(360 z³) + …

The sum is the derivative of the product over the product, for which one pass of Horner's rule is enough. Large x need
no shift. The special functions of XLA take many times as long on CPUs.
"""

import math

import jax.numpy as jnp

from irtjax.types import AnyArray, Float

SHIFT = 8
LARGE = 64.0  # from which on there is no shift
SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def log_gamma_and_digamma(x: Float[AnyArray, "*n"]) -> tuple[Float[AnyArray, "*n"], Float[AnyArray, "*n"]]:
    """Log Γ and ψ of x > 0; to 1e-13 relative to the larger of 1 and |log Γ| in float64, to its rounding in float32."""
    large = x > LARGE
    product, slope = jnp.ones_like(x), jnp.zeros_like(x)
    small = jnp.where(large, 1.0, x)
    for k in range(SHIFT):
        factor = small + k
        slope = slope * factor + product
        product = product * factor
    z = jnp.where(large, x, x + SHIFT)
    inverse = 1 / z
    square = inverse * inverse
    series, derivative = jnp.zeros_like(x), jnp.zeros_like(x)
    for k in reversed(range(len(SERIES))):
        series = series * square + SERIES[k]
        derivative = derivative * square - (2 * k + 1) * SERIES[k]
    log_z = jnp.log(z)
    log_gamma = (z - 0.5) * log_z - z + 0.5 * math.log(2 * math.pi) + series * inverse
    digamma = log_z - 0.5 * inverse + derivative * square
    shifted_log, shifted_slope = jnp.log(product), slope / product
    return log_gamma - jnp.where(large, 0.0, shifted_log), digamma - jnp.where(large, 0.0, shifted_slope)


def log_less_digamma(y: Float[AnyArray, "*n"], x: Float[AnyArray, "*n"]) -> Float[AnyArray, "*n"]:
    """Log y - ψ(1 + x) of y > 0 and x ≥ 0, by the logarithm of a ratio: that of y and z = x + 1 + n, with n shifts.

    Where x is large, and y of its size, this keeps the digits that a difference would lose. In float32 three shifts and
    four terms are enough. The error is 1e-13 in float64, 3e-7 in float32, relative to the larger of 1 and the result.
    """
    single = x.dtype.itemsize == 4
    shift, terms, most = (3, 4, 1e10) if single else (SHIFT, len(SERIES), 1e30)  # `most`: products are finite up to it
    part = jnp.minimum(x, most)
    product, slope = part + 1, jnp.ones_like(x)
    for k in range(2, shift + 1):
        factor = part + k
        slope = slope * factor + product
        product = product * factor
    inverse = 1 / (x + (shift + 1))
    square = inverse * inverse
    series = jnp.zeros_like(x)
    for k in reversed(range(terms)):
        series = series * square + (2 * k + 1) * SERIES[k]
    return jnp.log(y * inverse) + 0.5 * inverse + series * square + slope / product
