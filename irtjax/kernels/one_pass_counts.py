"""Passes over counts: successes of trials that are independent, or agree more than chance (`one_pass`)."""

import jax
import jax.numpy as jnp

from irtjax.kernels.one_pass import Sums, residual_and_value
from irtjax.kernels.rising import log_rising
from irtjax.types import AnyArray, Float, Int

MOST_PRECISE = 40.0  # log φ, from which trials are independent


def trials(
    theta: Float[AnyArray, " J"],
    items: tuple[Float[AnyArray, " I"], Float[AnyArray, " I"]],
    responses: tuple[Int[AnyArray, "J I"], Int[AnyArray, "J I"]],
) -> Sums:
    """Successes k of n trials, each by σ(a θ + c), without log C(n, k).

    Args:
        theta: (J,).
        items: a (I,) and c (I,).
        responses: k (J, I), negative where missing, and n (J, I).
    """
    (slope, intercept), (successes, of_each) = items, responses
    right = jnp.maximum(successes.astype(theta.dtype), 0)
    observed = jnp.where(successes >= 0, of_each.astype(theta.dtype), 0)
    residual, value = residual_and_value(theta[:, None] * slope[None, :] + intercept[None, :], right, observed)
    ones = jnp.ones_like(theta)
    return Sums((ones @ value) @ jnp.ones_like(slope), residual @ slope, (theta @ residual, ones @ residual))


def agreeing_trials(
    theta: Float[AnyArray, " J"],
    items: tuple[Float[AnyArray, " I"], Float[AnyArray, " I"], Float[AnyArray, " I"]],
    responses: tuple[Int[AnyArray, "J I"], Int[AnyArray, "J I"]],
) -> Sums:
    """Counts k of n trials that agree more than chance (`item_models.beta_binomial`), without log C(n, k).

        log p = Σ_{j < k} log(P + j τ) + Σ_{j < n - k} log(1 - P + j τ) - Σ_{j < n} log(1 + j τ),

    where P = σ(a θ + d) and τ = 1/φ, each sum at once (`kernels.rising`); gradients are by automatic differentiation.

    Args:
        theta: (J,).
        items: a (I,); d (I,); log φ (I,).
        responses: k (J, I), negative where missing; n (J, I).
    """
    k, n = (leaf.astype(theta.dtype) for leaf in responses)
    there = k >= 0
    k, n = jnp.where(there, k, 0.0), jnp.where(there, n, 0.0)

    def value(theta: AnyArray, slope: AnyArray, intercept: AnyArray, log_phi: AnyArray) -> AnyArray:
        x = theta[:, None] * slope[None, :] + intercept[None, :]
        tau = jnp.broadcast_to(jnp.exp(-jnp.minimum(log_phi, MOST_PRECISE))[None, :], x.shape)
        right, wrong = (log_rising(jax.nn.log_sigmoid(part), tau, of) for part, of in ((x, k), (-x, n - k)))
        return (right + wrong - log_rising(jnp.zeros_like(x), tau, n)).sum()

    found, pull = jax.vjp(value, theta, *items)
    by_subject, *by_item = pull(jnp.ones_like(found))
    return Sums(found, by_subject, tuple(by_item))
