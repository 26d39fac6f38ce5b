"""Log-likelihoods of items with categories or counts, with their gradients, in one pass over the responses.

As in `kernels.likelihood` the matrix is walked in blocks of items, so that no float (J, I) array ever exists. Arrays of
items have these along their last axis: a block is then a slice of rows that are contiguous.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from irtjax.kernels.formulation import formulation
from irtjax.kernels.loops import items_per_block
from irtjax.kernels.precision import in_full_precision
from irtjax.types import AnyArray, Float

BLOCK_RESPONSES = 2**19  # arrays of so many stay in caches, where passes over grades and shares read them again
NEVER = 1e4  # logits of what does not happen


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
        of_block: of abilities and the arrays of some items (`one_pass_grades`, `one_pass_counts`, `one_pass_shares`).
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
    if size == num_items and not formulation().in_caches:  # a loop of one turn would copy the responses
        return of_block(theta, items, responses)

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


def residual_and_value(
    logit: Float[AnyArray, "J I"], right: Float[AnyArray, "J I"], observed: Float[AnyArray, "J I"]
) -> tuple[Float[AnyArray, "J I"], Float[AnyArray, "J I"]]:
    """Residuals and log-likelihoods of so many right answers of those observed; one tanh as in `kernels.likelihood`."""
    half = jnp.tanh(0.5 * logit)
    residual = right - observed * (0.5 + 0.5 * half)
    return residual, right * logit - observed * (jnp.maximum(logit, 0) - jnp.log(0.5 + 0.5 * jnp.abs(half)))
