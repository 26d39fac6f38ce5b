"""Log-probability of one response in any model of one to four parameters, and its derivatives.

With η the logit of the item, y the response, and c = σ(lower), d = σ(upper), the probability of the response given is

    π = base + (d - c) s,     s = σ(η) and base = c for y = 1,     s = σ(-η) and base = 1 - d for y = 0.

With sign = ±1 and w = s (1 - s) the derivatives of π in the logit are

    π' = sign (d - c) w,     π'' = (d - c) w (1 - 2 s),     π''' = π' (1 - 6 w),     π'''' = π'' (1 - 12 w),

and those in the asymptotes, of σ(lower) and σ(upper), follow with c' = c (1 - c), c'' = c' (1 - 2 c), and d alike:

    ∂π/∂c = 1 - s for y = 1, -s for y = 0,     ∂π/∂d = s for y = 1, s - 1 for y = 0.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from irtjax.kernels.models import ItemParameters
from irtjax.types import Float, Int

LEAST_PROBABILITY = 1e-30
Derivatives = tuple[Float[jax.Array, "J B"], ...]


class Response(NamedTuple):
    """The parts, each (J, B), that derivatives of the log-probability of responses are made of.

    Attributes:
        observed: whether there is a response.
        right: 1 for a right answer, else 0.
        sign: 1 for a right answer, else -1.
        s: σ(sign η).
        not_s: 1 - s.
        span: (1, B) d - c.
        probability: π, of the response given.
    """

    observed: jax.Array
    right: jax.Array
    sign: jax.Array
    s: jax.Array
    not_s: jax.Array
    span: jax.Array
    probability: jax.Array


def response_parts(eta: Float[jax.Array, "J B"], items: ItemParameters, y: Int[jax.Array, "J B"]) -> Response:
    """Parts of π for responses y, 1 right, 0 wrong and negative missing, at logits η; slopes of items are not used."""
    observed, right = y >= 0, (y == 1).astype(eta.dtype)
    sign = 2 * right - 1
    s = jax.nn.sigmoid(sign * eta)
    not_s = jax.nn.sigmoid(-sign * eta)  # not 1 - s, which cancels
    c, not_d = jax.nn.sigmoid(items.lower)[None, :], jax.nn.sigmoid(-items.upper)[None, :]
    span = 1 - not_d - c
    # a curve as steep as a wall has responses of probability 0 in float32: they say no more than "very unlikely"
    probability = jnp.maximum(right * c + (1 - right) * not_d + span * s, LEAST_PROBABILITY)
    return Response(observed, right, sign, s, not_s, span, probability)


def log_response_derivatives(
    eta: Float[jax.Array, "J B"], items: ItemParameters, y: Int[jax.Array, "J B"]
) -> Derivatives:
    """Log-probability log π of responses and its first four derivatives in the logit η; 0 where missing.

    They follow from the ratios of the derivatives of π to π itself as cumulants follow from moments.
    """
    observed, _, sign, s, not_s, span, probability = response_parts(eta, items, y)
    w = s * not_s
    scale = span * w / probability
    first = sign * scale
    second = scale * (1 - 2 * s)
    third = sign * scale * (1 - 6 * w)
    fourth = scale * (1 - 2 * s) * (1 - 12 * w)
    square = first * first
    derivatives = (
        jnp.log(probability),
        first,
        second - square,
        third - 3 * first * second + 2 * first * square,
        fourth - 4 * first * third - 3 * second * second + 12 * square * second - 6 * square * square,
    )
    return tuple(jnp.where(observed, derivative, 0) for derivative in derivatives)


def log_logistic_derivatives(eta: Float[jax.Array, "J B"], y: Int[jax.Array, "J B"]) -> Derivatives:
    """The same without asymptotes: log π = log σ(±η), and at the price of two transcendental functions.

    With p = σ(η) and w = p (1 - p) the derivatives are y - p, -w, -w (1 - 2 p) and -w (1 - 6 w).
    """
    observed, answer = (y >= 0).astype(eta.dtype), jnp.maximum(y, 0).astype(eta.dtype)
    small = jnp.exp(-jnp.abs(eta))
    of_larger = 1 / (1 + small)
    p = jnp.where(eta > 0, of_larger, small * of_larger)
    weight = observed * small * of_larger * of_larger
    value = answer * eta - observed * (jnp.maximum(eta, 0) + jnp.log1p(small))
    return value, answer - observed * p, -weight, -weight * (1 - 2 * p), -weight * (1 - 6 * weight)
