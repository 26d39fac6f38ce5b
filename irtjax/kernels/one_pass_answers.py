"""Log-likelihoods of single responses that are not right or wrong, with their gradients, by the passes over matrices.

As in `kernels.answers` responses are held twice, in rows by subject and in rows by item, and spread over devices. A row
is a matrix of one subject, or of one item: the blocks that passes over matrices are made of (`one_pass`) say what it
comes to.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from irtjax.kernels.answers import ARGUMENTS
from irtjax.kernels.one_pass import Block, Sums
from irtjax.kernels.precision import in_full_precision
from irtjax.kernels.sharding import BY_SUBJECT, EVERYWHERE, SUBJECTS, on_mesh, sum_over
from irtjax.types import AnyArray, Float


class ScaledRows(NamedTuple):
    """Responses in rows by key, as many rows at a time as stay in cache.

    Attributes:
        places: (T, R, W) on the other side; any of padding.
        keys: (T, R) of each row, rising; any of a row that is all padding.
        cells: arrays (T, R, W): categories, successes or shares, negative of padding; then, of counts, trials.
    """

    places: AnyArray
    keys: AnyArray
    cells: tuple[AnyArray, ...]


class ScaledAnswers(NamedTuple):
    """Responses in rows by subject, and again in rows by item."""

    by_subject: ScaledRows
    by_item: ScaledRows


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 4))
def log_likelihood(
    of_block: Block,
    theta: Float[AnyArray, " J"],
    items: tuple[AnyArray, ...],
    answers: ScaledAnswers,
    mesh: jax.sharding.Mesh | None = None,
) -> Float[AnyArray, ""]:
    """The sum over responses.

    Args:
        of_block: as of `one_pass.log_likelihood`.
        theta: (J,) abilities; its dtype is that of the sums.
        items: arrays (..., I).
        answers: the responses; they have no gradients.
        mesh: as of `kernels.answers.log_likelihood_1pl`.

    Returns:
        A scalar, in nats.
    """
    return value_and_sums(of_block, theta, items, answers, mesh).value


def _forward(
    of_block: Block,
    theta: AnyArray,
    items: tuple[AnyArray, ...],
    answers: ScaledAnswers,
    mesh: jax.sharding.Mesh | None,
) -> tuple[AnyArray, tuple[AnyArray, tuple[AnyArray, ...]]]:
    found = value_and_sums(of_block, theta, items, answers, mesh)
    return found.value, (found.by_subject, found.by_item)


def _backward(
    of_block: Block,
    mesh: jax.sharding.Mesh | None,
    gradients: tuple[AnyArray, tuple[AnyArray, ...]],
    cotangent: AnyArray,
) -> tuple[Any, ...]:
    del of_block, mesh
    return *jax.tree.map(lambda gradient: cotangent * gradient, gradients), None


log_likelihood.defvjp(_forward, _backward)


@in_full_precision
def value_and_sums(
    of_block: Block,
    theta: AnyArray,
    items: tuple[AnyArray, ...],
    answers: ScaledAnswers,
    mesh: jax.sharding.Mesh | None = None,
) -> Sums:
    """`log_likelihood` and its gradients."""

    def of_subject(theta: AnyArray, items: Any, cells: Any) -> tuple[AnyArray, AnyArray]:
        found = of_block(theta[None], items, jax.tree.map(lambda leaf: leaf[None, :], cells))
        return found.value, found.by_subject[0]

    def of_item(items: Any, theta: AnyArray, cells: Any) -> tuple[AnyArray, ...]:
        of_one = jax.tree.map(lambda leaf: leaf[..., None], (items, cells))
        return tuple(leaf[..., 0] for leaf in of_block(theta, *of_one).by_item)

    def local(theta: AnyArray, items: tuple[AnyArray, ...], answers: ScaledAnswers) -> tuple[Any, ...]:
        def rows_of_subjects(part: ScaledRows) -> tuple[AnyArray, AnyArray]:
            own, other = _at(theta, part.keys), jax.tree.map(lambda leaf: _at(leaf, part.places), items)
            return jax.vmap(of_subject, in_axes=(0, -2, 0))(own, other, part.cells)

        def rows_of_items(part: ScaledRows) -> tuple[AnyArray, ...]:
            own, other = jax.tree.map(lambda leaf: _at(leaf, part.keys), items), _at(theta, part.places)
            return jax.vmap(of_item, in_axes=(-1, 0, 0))(own, other, part.cells)

        value, by_subject = jax.lax.map(rows_of_subjects, answers.by_subject)
        by_item = tuple(
            jnp.moveaxis(_sums(leaf, answers.by_item, of.shape[-1]), 0, -1)
            for leaf, of in zip(jax.lax.map(rows_of_items, answers.by_item), items, strict=True)
        )
        by_subject = _sums(by_subject, answers.by_subject, len(theta))
        return sum_over(SUBJECTS, mesh, value.sum()), by_subject, sum_over(SUBJECTS, mesh, by_item)

    return Sums(*on_mesh(local, mesh, ARGUMENTS, (EVERYWHERE, BY_SUBJECT, EVERYWHERE))(theta, items, answers))


def _at(leaf: AnyArray, index: AnyArray) -> jax.Array:
    return jnp.asarray(leaf).at[..., index].get(mode="promise_in_bounds")


def _sums(of_rows: Float[AnyArray, "T R ..."], rows: ScaledRows, number: int) -> Float[jax.Array, "K ..."]:
    """Sums of rows by key."""
    flat = of_rows.reshape(rows.keys.size, *of_rows.shape[2:])
    return jax.ops.segment_sum(flat, rows.keys.ravel(), number, indices_are_sorted=True)
