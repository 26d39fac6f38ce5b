"""Passes over shares (`one_pass`)."""

import jax
import jax.numpy as jnp

from irtjax.kernels.gammas import log_gamma_and_digamma, log_less_digamma
from irtjax.kernels.one_pass import Sums, residual_and_value
from irtjax.types import AnyArray, Float


def shares(
    theta: Float[AnyArray, " J"],
    items: tuple[Float[AnyArray, " I"], ...],
    responses: tuple[Float[AnyArray, "J I"]],
) -> Sums:
    """Shares y in [0, 1] of the ordered Beta model (`item_models.unit_interval`), without -log y - log(1 - y).

    Whether y is 0, 1 or between is what right/wrong answers to two items say, with predictors x - c_0 and x - c_1; the
    term log(1 - exp(c_0 - c_1)) of those between, which depends on no ability, is left out, as in `graded`. Between,
    with s = μ φ and t = (1 - μ) φ,

        log p = s log y + t log(1 - y) - log Γ(1 + s) + log s - log Γ(1 + t) + log t + log Γ(φ).

    With p_s = s (log y - ψ(s) + ψ(φ)) and p_t = t (log(1 - y) - ψ(t) + ψ(φ)), the derivatives are (1 - μ) p_s - μ p_t
    by x, and p_s + p_t by log φ. Each takes one logarithm, of a ratio (`gammas.log_less_digamma`), which also keeps the
    digits where φ is large.

    Args:
        theta: (J,).
        items: each (I,): a, d, log φ, c_0 and c_1; cuts far out where there are none.
        responses: y (J, I), negative where missing.
    """
    (slope, intercept, log_phi, low, high), (y,) = items, responses
    x = theta[:, None] * slope[None, :] + intercept[None, :]
    none, whole = (y == 0).astype(x.dtype), (y == 1).astype(x.dtype)
    inside = (y > 0) & (y < 1)
    between = inside.astype(x.dtype)
    by_low, value_low = residual_and_value(x - low[None, :], between, none + between)
    by_high, value_high = residual_and_value(x - high[None, :], whole, whole + between)
    phi = jnp.exp(log_phi)
    small = jnp.exp(-jnp.abs(x))
    larger = 1 / (1 + small)
    above, smaller = x >= 0, small * larger
    mean, rest = jnp.where(above, larger, smaller), jnp.where(above, smaller, larger)
    y = jnp.where(inside, y, 0.5).astype(x.dtype)
    # log φ - ψ(φ), as ψ(φ) = ψ(1 + φ) - 1 / φ
    of_phi = log_less_digamma(phi, phi) + 1 / phi

    def pull(share: AnyArray, y: AnyArray) -> AnyArray:
        shape = share * phi[None, :]  # s ψ(s) = s ψ(1 + s) - 1
        return between * (shape * (log_less_digamma(y * phi[None, :], shape) - of_phi[None, :]) + 1)

    pull_s, pull_t = pull(mean, y), pull(rest, 1 - y)
    by_x = by_low + by_high + pull_s * rest - pull_t * mean
    ones, of_items = jnp.ones_like(theta), jnp.ones_like(slope)
    height = between * _log_density(x, y, (mean, rest), log_phi)
    value = (ones @ (height + value_low + value_high)) @ of_items
    by_item = theta @ by_x, ones @ by_x, ones @ (pull_s + pull_t), -(ones @ by_low), -(ones @ by_high)
    return Sums(value, by_x @ slope, by_item)


def _log_density(
    x: Float[AnyArray, "J I"],
    y: Float[AnyArray, "J I"],
    means: tuple[Float[AnyArray, "J I"], Float[AnyArray, "J I"]],
    log_phi: Float[AnyArray, " I"],
) -> Float[AnyArray, "J I"]:
    """Log p + log y + log(1 - y) of shares between the ends, whose means are μ and 1 - μ."""
    phi = jnp.exp(log_phi)
    s, t = (mean * phi[None, :] for mean in means)
    of_shapes = log_gamma_and_digamma(1 + s)[0] + log_gamma_and_digamma(1 + t)[0]
    of_logarithms = jax.nn.log_sigmoid(x) + jax.nn.log_sigmoid(-x)
    found = s * jnp.log(y) + t * jnp.log1p(-y) - of_shapes + of_logarithms
    return found + (log_gamma_and_digamma(phi)[0] + 2 * log_phi)[None, :]
