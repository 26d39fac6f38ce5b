"""Log-likelihood of a response matrix that is read part by part, from files for example, with its gradients.

As `kernels.likelihood`, one pass gives the value and all gradients; the program asks the host for each part as it comes
to it, so that no more than a part is in memory.
"""

import functools
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.kernels.likelihood import value_and_sums
from irtjax.types import AnyArray, Float

PART_RESPONSES = 2**24  # read at a time


class Reader(Protocol):
    """Reads responses (J, n) int8: all subjects, and items from one position up to another."""

    def read(self, subjects: range, items: range) -> np.ndarray:
        """Some subjects and items."""


class Parts(NamedTuple):
    """A response matrix (J, I) that is read part by part; hashable, as programs are compiled for it.

    Attributes:
        reader: reads it.
        shape: J and I.
    """

    reader: Reader
    shape: tuple[int, int]

    @property
    def width(self) -> int:
        """Items of a part."""
        return max(1, min(self.shape[1], PART_RESPONSES // self.shape[0]))


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def log_likelihood_of_parts(
    theta: Float[AnyArray, " J"], slope: Float[AnyArray, " I"], intercept: Float[AnyArray, " I"], parts: Parts
) -> Float[AnyArray, ""]:
    """Log-likelihood Σ log P(y_ji), P(right) = σ(slope_i θ_j + intercept_i), missing responses left out.

    Args:
        theta: (J,) abilities in logits; its dtype is that of the sums.
        slope: (I,).
        intercept: (I,) in logits.
        parts: the responses.

    Returns:
        A scalar, in nats.
    """
    return _forward(theta, slope, intercept, parts)[0]


def _forward(
    theta: AnyArray, slope: AnyArray, intercept: AnyArray, parts: Parts
) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    (num_subjects, num_items), width = parts.shape, parts.width

    def of_part(start: jax.Array | int, size: int) -> tuple[jax.Array, jax.Array, jax.Array]:
        def read(start: np.ndarray) -> np.ndarray:
            return np.ascontiguousarray(parts.reader.read(range(num_subjects), range(int(start), int(start) + size)))

        kind = jax.ShapeDtypeStruct((num_subjects, size), np.int8)
        responses = jax.pure_callback(read, kind, jnp.asarray(start), vmap_method="sequential")
        own_slope, own_intercept = (jax.lax.dynamic_slice_in_dim(leaf, start, size) for leaf in (slope, intercept))
        return value_and_sums(theta, own_slope, own_intercept, responses)

    def add(carry: tuple[jax.Array, jax.Array], k: jax.Array) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        value, by_subject, by_item = of_part(k * width, width)
        return (carry[0] + value, carry[1] + by_subject), by_item

    whole = num_items // width
    begun = jnp.zeros((), theta.dtype), jnp.zeros_like(theta)
    (value, by_subject), by_item = jax.lax.scan(add, begun, jnp.arange(whole))
    by_item = by_item.reshape(-1, 2)
    if rest := num_items - whole * width:
        rest_value, rest_by_subject, rest_by_item = of_part(whole * width, rest)
        value, by_subject = value + rest_value, by_subject + rest_by_subject
        by_item = jnp.concatenate([by_item, rest_by_item])
    return value, (by_subject, by_item[:, 1], by_item[:, 0])


def _backward(parts: Parts, gradients: tuple[jax.Array, ...], cotangent: jax.Array) -> tuple[jax.Array, ...]:
    del parts
    return tuple(cotangent * gradient for gradient in gradients)


log_likelihood_of_parts.defvjp(_forward, _backward)
