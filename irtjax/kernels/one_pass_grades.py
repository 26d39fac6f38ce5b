"""Passes over grades and categories: graded, partial credit, and categories without order (`one_pass`)."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from irtjax.kernels.formulation import formulation, kept
from irtjax.kernels.one_pass import NEVER, Sums, residual_and_value
from irtjax.types import AnyArray, Bool, Float, Int

LARGEST = 80.0  # exponents that float32 takes, with room for sums of their powers
CERTAIN = 17.0  # logits from which a category is as good as certain in float32
MANY = 2**17  # responses in a block from which a second program is worth its compilation


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
    if formulation().fuses and min(values.shape) > 1:  # rows of single responses are gathered, and not for each sum
        return _in_few_sums(theta, items, responses)
    answer = values.astype(theta.dtype)
    value, by_subject, residuals = jnp.zeros((), theta.dtype), jnp.zeros_like(theta), []
    ones, of_items, along = jnp.ones_like(theta), jnp.ones_like(slope), theta[:, None] * slope[None, :]
    for k in range(places.shape[0]):
        right = (answer == k + 1).astype(theta.dtype)
        observed = right + (answer == k).astype(theta.dtype)
        residual, of_each = residual_and_value(along + places[k][None, :], right, observed)
        value, by_subject = value + (ones @ of_each) @ of_items, by_subject + residual @ slope
        residuals.append(residual)
    by_slope = theta @ functools.reduce(jnp.add, residuals)
    return Sums(value, by_subject, (by_slope, jnp.stack([ones @ residual for residual in residuals])))


def _in_few_sums(theta: AnyArray, items: tuple[AnyArray, AnyArray], responses: tuple[AnyArray]) -> Sums:
    """As `graded`, by fewer sums: each of them computes anew what it reads. Slower on a CPU."""
    (slope, places), (values,) = items, responses
    answer = values.astype(theta.dtype)
    along, rows = theta[:, None] * slope[None, :], jnp.stack([jnp.ones_like(theta), theta])
    of_each, of_all, by_item = jnp.zeros_like(along), jnp.zeros_like(along), []
    for k, place in enumerate(places):
        right = jnp.equal(answer, k + 1).astype(theta.dtype)
        observed = right + jnp.equal(answer, k).astype(theta.dtype)
        residual, value = residual_and_value(along + place[None, :], right, observed)
        of_each, of_all = of_each + value, of_all + residual
        by_item.append(rows @ residual)
    by_place, by_slope = jnp.stack(by_item, axis=1)
    return Sums((rows[0] @ of_each) @ jnp.ones_like(slope), of_all @ slope, (by_slope.sum(axis=0), by_place))


class _Steps(NamedTuple):
    """Items of the partial credit model whose powers do not overflow.

    Attributes:
        weights: (K + 1, I) exp T_k; 0 beyond the categories of an item.
        limit: (I,) where |x| is held.
        fits: whether this changes no probability.
    """

    weights: AnyArray
    limit: AnyArray
    fits: Bool[AnyArray, ""]


def partial_credit(
    theta: Float[AnyArray, " J"],
    items: tuple[Float[AnyArray, " I"], Float[AnyArray, " I"], Float[AnyArray, "H I"], Float[AnyArray, " I"]],
    responses: tuple[Int[AnyArray, "J I"]],
) -> Sums:
    """Grades y = 0 … n of the generalised partial credit model, P(y = k) ∝ exp(k x + T_k), x = a θ + c, T_0 = T_n = 0.

    One exponential is enough, z = exp(-|x|), of which the probabilities are powers:

        P(y = k) = w_k z^k / Σ_l w_l z^l   where x < 0,     w_k z^(n-k) / Σ_l w_l z^(n-l)   elsewhere,   w_k = exp T_k.

    The sums are at least 1, and finite where T_k < 80. Items that have fewer categories than others take powers K - k
    too, which is as good while |x| may be held below 85 / (K - n). A block with an item for which either is not so, or
    with few responses, is left to `categories`.

    Args:
        theta: (J,).
        items: a (I,); c (I,); T_1 … T_(K-1) (K - 1, I), 0 from n on; n (I,).
        responses: y (J, I), negative where missing.
    """
    if responses[0].size < MANY:
        return _by_exponentials(theta, items, responses)
    steps = _steps(items[2], items[3])
    return jax.lax.cond(
        steps.fits,
        lambda: _by_powers(theta, items, responses, steps),
        lambda: _by_exponentials(theta, items, responses),
    )


def _steps(heights: Float[AnyArray, "H I"], top: Float[AnyArray, " I"]) -> _Steps:
    most = heights.shape[0] + 1
    k = jnp.arange(1, most, dtype=top.dtype)[:, None]
    none = jnp.zeros_like(top)[None]
    between = jnp.where(k < top[None], heights, 0.0)
    reach = jnp.concatenate([none, between / jnp.maximum(jnp.minimum(k, top[None] - k), 1.0)]).max(axis=0)
    limit = jnp.minimum(LARGEST, (LARGEST + 5) / jnp.maximum(most - top, 1.0))
    exponents = jnp.concatenate([none, between, none])
    weights = jnp.where(jnp.arange(most + 1)[:, None] <= top[None], jnp.exp(exponents), 0.0)
    fits = (exponents < LARGEST).all() & (reach + CERTAIN < limit).all()
    return _Steps(weights, limit, fits)


def _by_powers(
    theta: Float[AnyArray, " J"],
    items: tuple[AnyArray, ...],
    responses: tuple[Int[AnyArray, "J I"]],
    steps: _Steps,
) -> Sums:
    (slope, intercept, heights, top), (values,), weights = items, responses, steps.weights
    most = len(heights) + 1
    answer = values.astype(theta.dtype)
    observed, grade = jnp.minimum(answer + 1, 1), jnp.maximum(answer, 0)
    x = theta[:, None] * slope[None, :] + intercept[None, :]
    within = jnp.clip(x, -steps.limit[None], steps.limit[None])
    power = jnp.exp(-jnp.abs(within))
    signed = kept(jnp.where(within < 0, -power, power))
    below, power = signed < 0, jnp.abs(signed)
    of_power = [jnp.where(below, weights[k][None], weights[most - k][None]) for k in range(most + 1)]
    total = _polynomial(of_power, power)
    share = kept(observed / total)
    # of the exponents of the powers, which where x > 0 are K - k
    mean = share * _polynomial([k * weight for k, weight in enumerate(of_power)], power)
    residual = grade - jnp.where(below, mean, most * observed - mean)
    powers = [jnp.ones_like(power)]
    for _ in range(most):
        powers.append(powers[-1] * power)
    ones, of_items = jnp.ones_like(theta), jnp.ones_like(slope)
    value = grade * x - observed * (jnp.log(total) + jnp.where(below, 0.0, most * within + top[None] * (x - within)))
    by_height = []
    for k in range(1, most):
        chosen = (answer == k).astype(theta.dtype)
        value = value + chosen * heights[k - 1][None]
        by_height.append(ones @ (chosen - weights[k][None] * (share * jnp.where(below, powers[k], powers[most - k]))))
    rows = jnp.stack([jnp.where(k + 1 < top, row, 0.0) for k, row in enumerate(by_height)]) if by_height else heights
    by_item = theta @ residual, ones @ residual, rows, jnp.zeros_like(top)
    return Sums((ones @ value) @ of_items, residual @ slope, by_item)


def _polynomial(coefficients: Sequence[AnyArray], x: AnyArray) -> AnyArray:
    """Σ_k c_k x^k, by Horner's rule."""
    return functools.reduce(lambda found, coefficient: found * x + coefficient, reversed(coefficients))


def _by_exponentials(
    theta: Float[AnyArray, " J"], items: tuple[AnyArray, ...], responses: tuple[Int[AnyArray, "J I"]]
) -> Sums:
    """Whatever the steps are."""
    slope, intercept, heights, top = items
    k = jnp.arange(1, len(heights) + 2, dtype=theta.dtype)[:, None]
    own = k <= top[None]
    exponents = k * intercept[None] + jnp.concatenate([heights, jnp.zeros_like(intercept)[None]])
    lines = jnp.where(own, k * slope[None], 0.0), jnp.where(own, exponents, -NEVER)
    value, by_subject, (by_slopes, by_intercepts) = categories(theta, lines, responses)
    by_heights = jnp.where(k < top[None], by_intercepts, 0.0)[:-1]
    sums = (k * by_slopes).sum(axis=0), (k * by_intercepts).sum(axis=0)
    return Sums(value, by_subject, (*sums, by_heights, jnp.zeros_like(top)))


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
    answer = values.astype(theta.dtype)
    observed = jnp.minimum(answer + 1, 1)
    etas = [theta[:, None] * slopes[k][None, :] + intercepts[k][None, :] for k in range(len(slopes))]
    largest = kept(functools.reduce(jnp.maximum, etas, jnp.zeros_like(etas[0])))
    powers = [kept(jnp.exp(eta - largest)) for eta in etas]
    total = functools.reduce(jnp.add, powers, jnp.exp(-largest))
    share = kept(observed / total)
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
