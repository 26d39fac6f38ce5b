"""Log-likelihoods of items with categories or counts, with their gradients, in one pass over the responses.

As in `kernels.likelihood` the matrix is walked in blocks of items, so that no float (J, I) array ever exists. Arrays of
items have these along their last axis: a block is then a slice of rows that are contiguous.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from irtjax.kernels.block_size import items_per_block
from irtjax.kernels.gammas import log_gamma_and_digamma
from irtjax.kernels.likelihood import BLOCK_RESPONSES
from irtjax.kernels.precision import in_full_precision
from irtjax.kernels.rising import log_rising
from irtjax.types import AnyArray, Float, Int

NEVER = 1e4  # logits of what does not happen
MOST_PRECISE = 40.0  # log φ, from which trials are independent


class Sums(NamedTuple):
    """What a block of items comes to.

    Attributes:
        value: log-likelihood, in nats.
        by_subject: (J,) its gradient by abilities.
        by_item: gradients by the arrays of the items.
    """

    value: AnyArray
    by_subject: AnyArray
    by_item: tuple[AnyArray, ...]


Block = Callable[[Any, tuple[Any, ...], tuple[Any, ...]], Sums]


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def log_likelihood(
    of_block: Block,
    theta: Float[AnyArray, " J"],
    items: tuple[AnyArray, ...],
    responses: tuple[AnyArray, ...],
) -> Float[AnyArray, ""]:
    """The sum over blocks of items.

    Args:
        of_block: one of the functions below, of abilities and the arrays of some items.
        theta: (J,) abilities; its dtype is that of the sums.
        items: arrays (..., I).
        responses: arrays (J, I), of integers, or of shares; they have no gradients.

    Returns:
        A scalar, in nats.
    """
    return value_and_sums(of_block, theta, items, responses).value


def _forward(
    of_block: Block, theta: AnyArray, items: tuple[AnyArray, ...], responses: tuple[AnyArray, ...]
) -> tuple[AnyArray, tuple[AnyArray, tuple[AnyArray, ...]]]:
    found = value_and_sums(of_block, theta, items, responses)
    return found.value, (found.by_subject, found.by_item)


def _backward(
    of_block: Block, gradients: tuple[AnyArray, tuple[AnyArray, ...]], cotangent: AnyArray
) -> tuple[Any, ...]:
    del of_block
    return *jax.tree.map(lambda gradient: cotangent * gradient, gradients), None


log_likelihood.defvjp(_forward, _backward)


@in_full_precision
def value_and_sums(
    of_block: Block, theta: AnyArray, items: tuple[AnyArray, ...], responses: tuple[AnyArray, ...]
) -> Sums:
    """`log_likelihood` and its gradients."""
    num_subjects, num_items = responses[0].shape
    size = items_per_block(num_subjects, num_items, BLOCK_RESPONSES)
    whole = num_items // size

    def at(start: jax.Array | int, size: int) -> Sums:
        def part(leaf: AnyArray) -> jax.Array:
            return jax.lax.dynamic_slice_in_dim(leaf, start, size, axis=leaf.ndim - 1)

        return of_block(theta, jax.tree.map(part, items), jax.tree.map(part, responses))

    def add(by_subject: jax.Array, k: jax.Array) -> tuple[Any, tuple[Any, ...]]:
        found = at(k * size, size)
        return by_subject + found.by_subject, (found.value, found.by_item)

    by_subject, (values, by_item) = jax.lax.scan(add, jnp.zeros_like(theta), jnp.arange(whole))
    by_item = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, -2).reshape(*leaf.shape[1:-1], whole * size), by_item)
    value = values.sum()
    if rest := num_items - whole * size:
        last = at(whole * size, rest)
        value, by_subject = value + last.value, by_subject + last.by_subject
        by_item = jax.tree.map(lambda *parts: jnp.concatenate(parts, axis=-1), by_item, last.by_item)
    return Sums(value, by_subject, by_item)


def graded(
    theta: Float[AnyArray, " J"],
    items: tuple[Float[AnyArray, " I"], Float[AnyArray, "K I"]],
    responses: tuple[Int[AnyArray, "J I"]],
) -> Sums:
    """Grades y = 0 … K of the graded response model, P(y ≥ k) = σ(u_k), u_k = a θ + d_k with d_1 > … > d_K.

        log P(y) = log σ(u_y) + log σ(-u_{y+1}) + log(1 - exp(d_{y+1} - d_y))

    is what right/wrong answers to K items say: of the k-th a right one where y = k, a wrong one where y = k - 1. The
    last term, which depends on no ability, is left out here (`item_models.one_pass` has it).

    Args:
        theta: (J,).
        items: a (I,); d (K, I), -`NEVER` beyond the thresholds of an item.
        responses: y (J, I), negative where missing.
    """
    (slope, places), (values,) = items, responses
    answer = values.astype(theta.dtype)
    value, total, rows = jnp.zeros((), theta.dtype), jnp.zeros((), theta.dtype), []
    ones, of_items, along = jnp.ones_like(theta), jnp.ones_like(slope), theta[:, None] * slope[None, :]
    for k in range(places.shape[0]):
        right = (answer == k + 1).astype(theta.dtype)
        observed = right + (answer == k).astype(theta.dtype)
        residual, of_each = _residual_and_value(along + places[k][None, :], right, observed)
        value = value + (ones @ of_each) @ of_items
        rows.append(ones @ residual)
        total = total + residual
    return Sums(value, total @ slope, (theta @ total, jnp.stack(rows)))


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
    safe = jnp.where(inside, y, 0.5).astype(x.dtype)
    log_y, log_rest = jnp.log(safe), jnp.log1p(-safe)
    by_low, value_low = _residual_and_value(x - low[None, :], between, none + between)
    by_high, value_high = _residual_and_value(x - high[None, :], whole, whole + between)
    phi = jnp.exp(log_phi)
    log_gamma_phi, digamma_phi = log_gamma_and_digamma(phi)
    log_s, log_t = jax.nn.log_sigmoid(x), jax.nn.log_sigmoid(-x)
    mean, rest = jnp.exp(log_s), jnp.exp(log_t)
    s, t = mean * phi[None, :], rest * phi[None, :]
    gammas = [log_gamma_and_digamma(1 + shape) for shape in (s, t)]
    of_both = s * log_y + t * log_rest - gammas[0][0] - gammas[1][0] + log_s + log_t
    height = between * (of_both + (log_gamma_phi + 2 * log_phi)[None, :])
    # s (log y - ψ(s)) and t (log(1 - y) - ψ(t)), where s ψ(s) = s ψ(1 + s) - 1
    pull_s = between * (s * (log_y - gammas[0][1]) + 1)
    pull_t = between * (t * (log_rest - gammas[1][1]) + 1)
    by_x = by_low + by_high + pull_s * rest - pull_t * mean
    by_log_phi = pull_s + pull_t + between * (phi * digamma_phi)[None, :]
    ones, of_items = jnp.ones_like(theta), jnp.ones_like(slope)
    value = (ones @ (height + value_low + value_high)) @ of_items
    by_item = theta @ by_x, ones @ by_x, ones @ by_log_phi, -(ones @ by_low), -(ones @ by_high)
    return Sums(value, by_x @ slope, by_item)


def categories(
    theta: Float[AnyArray, " J"],
    items: tuple[Float[AnyArray, "K I"], Float[AnyArray, "K I"]],
    responses: tuple[Int[AnyArray, "J I"]],
) -> Sums:
    """Categories y = 0 … K with P(y = k) ∝ exp η_k, η_0 = 0 and η_k = s_k θ + c_k.

    Args:
        theta: (J,).
        items: s (K, I) and c (K, I), 0 and -`NEVER` beyond the categories of an item.
        responses: y (J, I), negative where missing.
    """
    (slopes, intercepts), (values,) = items, responses
    held = jax.lax.optimization_barrier  # what is read several times
    answer = values.astype(theta.dtype)
    observed = jnp.minimum(answer + 1, 1)
    etas = [theta[:, None] * slopes[k][None, :] + intercepts[k][None, :] for k in range(len(slopes))]
    largest = held(functools.reduce(jnp.maximum, etas, jnp.zeros_like(etas[0])))
    powers = [held(jnp.exp(eta - largest)) for eta in etas]
    total = functools.reduce(jnp.add, powers, jnp.exp(-largest))
    share = held(observed / total)
    ones, of_items = jnp.ones_like(theta), jnp.ones_like(slopes[0])
    value = -(ones @ (observed * (largest + jnp.log(total)))) @ of_items
    by_subject, by_slopes, by_intercepts = jnp.zeros_like(theta), [], []
    for k, eta in enumerate(etas):
        chosen = (answer == k + 1).astype(theta.dtype)
        value = value + (ones @ (chosen * eta)) @ of_items
        residual = chosen - powers[k] * share
        by_subject = by_subject + residual @ slopes[k]
        by_slopes.append(theta @ residual)
        by_intercepts.append(ones @ residual)
    # where nobody asks for the value, XLA on CPUs would make one slow loop of all of this: it is asked for here
    return Sums(value, by_subject + 0.0 * value, (jnp.stack(by_slopes), jnp.stack(by_intercepts)))


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
    residual, value = _residual_and_value(theta[:, None] * slope[None, :] + intercept[None, :], right, observed)
    ones = jnp.ones_like(theta)
    return Sums((ones @ value) @ jnp.ones_like(slope), residual @ slope, (theta @ residual, ones @ residual))


def _residual_and_value(
    logit: Float[AnyArray, "J I"], right: Float[AnyArray, "J I"], observed: Float[AnyArray, "J I"]
) -> tuple[Float[AnyArray, "J I"], Float[AnyArray, "J I"]]:
    """Residuals and log-likelihoods of so many right answers of those observed; one tanh as in `kernels.likelihood`."""
    half = jnp.tanh(0.5 * logit)
    residual = right - observed * (0.5 + 0.5 * half)
    return residual, right * logit - observed * (jnp.maximum(logit, 0) - jnp.log(0.5 + 0.5 * jnp.abs(half)))
