"""Rising factorials P (P + τ) … (P + (k - 1) τ) by a few logarithms, whatever k is, in float32 too.

With τ = 1/φ they are φ^-k Γ(P φ + k) / Γ(P φ), of which the probabilities of counts whose trials agree are made. As
differences of log Γ they would lose all digits where φ is large. Here the first eight factors are multiplied as they
are. The others are, with z = P φ + 8 and m more of them, by Stirling's series for both log Γ,

    m log(z/φ) + (z + m - 1/2) log1p(m/z) - m + s(z + m) - s(z),     s(z) = 1/(12 z) - 1/(360 z³) + 1/(1260 z⁵) - …,

where what is large has gone beforehand. The error is less than 1e-11 in float64.
"""

import jax.numpy as jnp

from irtjax.types import AnyArray, Float

FIRST = 8  # factors that are multiplied as they are
SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680)


def log_rising(
    log_p: Float[AnyArray, "*n"], tau: Float[AnyArray, "*n"], k: Float[AnyArray, "*n"]
) -> Float[AnyArray, "*n"]:
    """Log Π_{j < k} (P + j τ).

    Args:
        log_p: log P.
        tau: above 0.
        k: whole numbers, 0 or more.
    """
    p = jnp.exp(log_p)
    total = jnp.where(k > 0, log_p, 0.0)
    for j in range(1, FIRST):
        total = total + jnp.where(k > j, jnp.log(p + j * tau), 0.0)
    more, first = jnp.maximum(k - FIRST, 0.0), p + FIRST * tau
    z = first / tau
    rest = more * jnp.log(first) + (z + more - 0.5) * jnp.log1p(more / z) - more
    return total + jnp.where(more > 0, rest + _remainder(z + more) - _remainder(z), 0.0)


def _remainder(z: AnyArray) -> AnyArray:
    """s(z)."""
    square, found = 1 / z**2, jnp.zeros_like(z)
    for term in reversed(SERIES):
        found = found * square + term
    return found / z
