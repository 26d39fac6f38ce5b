"""Log-likelihood of single answers in the 1PL and 2PL, with its gradients, by gathers and sums of rows.

Answers are held twice: subject by subject, and item by item. Either way those of one subject (or item), the *key*, fill
rows of one width, the last of them with padding. A row needs the parameters of its key once, gathers those of the other
side, and is summed; the sums of rows, a fraction of the answers, are then added up by key. So nothing is scattered
answer by answer, which a CPU does on one core, one after the other.

An answer is 4 bytes on each side: 4 × (position on the other side) + 2 + (1 if right); padding is 0.

On several devices each has some of the subjects, and the rows of their answers, by subject and by item. Subjects are
numbered within their device. Items are on all devices, and sums of items are added up over these.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from irtjax.kernels.precision import in_full_precision
from irtjax.kernels.sharding import BY_SUBJECT, EVERYWHERE, SUBJECTS, on_mesh, sum_over
from irtjax.types import AnyArray, Float, Int

IN_CACHE, ON_DEVICE = 2**17, 2**24  # answers that are worked on at a time: float32 arrays of 0.5 MB, and of 64 MB
ARGUMENTS = BY_SUBJECT, EVERYWHERE, BY_SUBJECT  # on a mesh: abilities, arrays of items, answers


class Rows(NamedTuple):
    """Answers in rows by key, as many rows at a time as stay in cache.

    Attributes:
        codes: (T, R, W) of answers, and 0 for padding; those of devices one after the other along T.
        keys: (T, R) of each row, rising on a device; any of a row that is all padding.
    """

    codes: AnyArray
    keys: AnyArray


class Answers(NamedTuple):
    """Answers in rows by subject, and again in rows by item."""

    by_subject: Rows
    by_item: Rows


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def log_likelihood_1pl(
    theta: Float[AnyArray, " J"],
    difficulty: Float[AnyArray, " I"],
    answers: Answers,
    mesh: jax.sharding.Mesh | None = None,
) -> Float[AnyArray, ""]:
    """Log-likelihood of single answers in the 1PL; formula and gradients as `kernels.likelihood.log_likelihood_1pl`.

    Args:
        theta: (J,) abilities in logits.
        difficulty: (I,) difficulties in logits.
        answers: of subjects to items.
        mesh: of devices in a column of subjects (`sharding.along_subjects`), over which abilities and answers are
            spread, as many subjects on each; None for one device.

    Returns:
        A scalar, in nats.
    """
    return value_and_sums(theta, None, -difficulty, answers, mesh)[0]


def _forward_1pl(
    theta: AnyArray, difficulty: AnyArray, answers: Answers, mesh: jax.sharding.Mesh | None
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    value, by_subject, by_item = value_and_sums(theta, None, -difficulty, answers, mesh)
    return value, (by_subject, -by_item[:, 0])


def _backward(
    mesh: jax.sharding.Mesh | None, gradients: tuple[jax.Array, ...], cotangent: jax.Array
) -> tuple[jax.Array | None, ...]:
    del mesh
    return *(cotangent * gradient for gradient in gradients), None


log_likelihood_1pl.defvjp(_forward_1pl, _backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(4,))
def log_likelihood_2pl(
    theta: Float[AnyArray, " J"],
    discrimination: Float[AnyArray, " I"],
    difficulty: Float[AnyArray, " I"],
    answers: Answers,
    mesh: jax.sharding.Mesh | None = None,
) -> Float[AnyArray, ""]:
    """Log-likelihood of single answers in the 2PL; formula and gradients as `kernels.likelihood.log_likelihood_2pl`.

    Args:
        theta: (J,) abilities.
        discrimination: (I,), of either sign.
        difficulty: (I,), on the scale of ability.
        answers: of subjects to items.
        mesh: as in `log_likelihood_1pl`.

    Returns:
        A scalar, in nats.
    """
    return value_and_sums(theta, discrimination, -discrimination * difficulty, answers, mesh)[0]


def _forward_2pl(
    theta: AnyArray, discrimination: AnyArray, difficulty: AnyArray, answers: Answers, mesh: jax.sharding.Mesh | None
) -> tuple[jax.Array, tuple[AnyArray, ...]]:
    value, by_subject, by_item = value_and_sums(theta, discrimination, -discrimination * difficulty, answers, mesh)
    residual, times_theta = by_item[:, 0], by_item[:, 1]
    return value, (by_subject, times_theta - difficulty * residual, -discrimination * residual)


log_likelihood_2pl.defvjp(_forward_2pl, _backward)


def value_and_sums(
    theta: AnyArray,
    slope: AnyArray | None,
    intercept: AnyArray,
    answers: Answers,
    mesh: jax.sharding.Mesh | None = None,
) -> tuple[Float[jax.Array, ""], Float[jax.Array, " J"], Float[jax.Array, "I _"]]:
    """The log-likelihood in logits slope_i θ_j + intercept_i, and the sums of residuals r = y - p that gradients need.

    Args:
        theta: (J,) abilities.
        slope: (I,), or None for 1.
        intercept: (I,).
        answers: of subjects to items.
        mesh: as in `log_likelihood_1pl`.

    Returns:
        The log-likelihood; Σ_i slope_i r_ji of each subject; and of each item Σ_j r_ji and, with slopes, Σ_j r_ji θ_j.
    """

    def of_subject(theta: AnyArray, item: Any, right: AnyArray, there: AnyArray) -> tuple[AnyArray, ...]:
        slope, intercept = item
        value, residual = _terms(_logit(theta, slope, intercept), right, there)
        return value, residual if slope is None else residual * slope

    def of_item(item: Any, theta: AnyArray, right: AnyArray, there: AnyArray) -> tuple[AnyArray, ...]:
        slope, intercept = item
        _, residual = _terms(_logit(theta, slope, intercept), right, there)
        return (residual,) if slope is None else (residual, residual * theta)

    def local(theta: AnyArray, items: Any, answers: Answers) -> tuple[jax.Array, ...]:
        value, by_subject = sums_by_key(of_subject, theta, items, answers.by_subject)
        by_item = jnp.stack(sums_by_key(of_item, items, theta, answers.by_item), axis=1)
        return sum_over(SUBJECTS, mesh, value.sum()), by_subject, sum_over(SUBJECTS, mesh, by_item)

    return on_mesh(local, mesh, ARGUMENTS, (EVERYWHERE, BY_SUBJECT, EVERYWHERE))(theta, (slope, intercept), answers)


@functools.partial(jax.jit, static_argnames="mesh")
def information(
    theta: Float[AnyArray, " J"],
    slope: Float[AnyArray, " I"],
    intercept: Float[AnyArray, " I"],
    answers: Answers,
    mesh: jax.sharding.Mesh | None = None,
) -> tuple[Float[jax.Array, " J"], Float[jax.Array, "I 3"]]:
    """Fisher information of single answers about abilities, and about slopes and intercepts of the items.

    Returns:
        Σ_i a² w of each subject with w = p (1 - p), and Σ_j w (1, θ, θ²) of each item.
    """

    def weight(slope: AnyArray, intercept: AnyArray, theta: AnyArray, there: AnyArray) -> AnyArray:
        return there * 0.25 * (1 - jnp.tanh(0.5 * _logit(theta, slope, intercept)) ** 2)

    def of_subject(theta: AnyArray, item: Any, _: AnyArray, there: AnyArray) -> tuple[AnyArray, ...]:
        return (item[0] ** 2 * weight(item[0], item[1], theta, there),)

    def of_item(item: Any, theta: AnyArray, _: AnyArray, there: AnyArray) -> tuple[AnyArray, ...]:
        w = weight(item[0], item[1], theta, there)
        return w, w * theta, w * theta**2

    def local(theta: AnyArray, items: Any, answers: Answers) -> tuple[jax.Array, jax.Array]:
        (by_subject,) = sums_by_key(of_subject, theta, items, answers.by_subject)
        by_item = jnp.stack(sums_by_key(of_item, items, theta, answers.by_item), axis=1)
        return by_subject, sum_over(SUBJECTS, mesh, by_item)

    return on_mesh(local, mesh, ARGUMENTS, (BY_SUBJECT, EVERYWHERE))(theta, (slope, intercept), answers)


@in_full_precision
def sums_by_key(function: Callable, own: Any, other: Any, rows: Rows) -> tuple[jax.Array, ...]:
    """Sums over the answers of each key.

    Args:
        function: (own, other, right, there) to a tuple of arrays like `there`: parameters of the key (n, 1), those of
            the other side of each answer (n, W), whether it is right, and whether it is an answer (1) or padding (0).
        own: tree of arrays (K,), parameters of the keys.
        other: the same of the other side.
        rows: the answers.

    Returns:
        For each array of the function its sums (K,).
    """
    num_keys = len(jax.tree.leaves(own)[0])

    def of_rows(part: Rows) -> tuple[jax.Array, ...]:
        codes, kind = part.codes, jax.tree.leaves(own)[0].dtype
        of_keys = jax.tree.map(lambda leaf: _at(leaf, part.keys)[:, None], own)
        of_answers = jax.tree.map(lambda leaf: _at(leaf, codes >> 2), other)
        found = function(of_keys, of_answers, (codes & 1).astype(kind), (codes >> 1 & 1).astype(kind))
        ones = jnp.ones(codes.shape[1], kind)
        return tuple(leaf @ ones for leaf in found)  # a product is summed at twice the speed of a reduction

    return tuple(
        jax.ops.segment_sum(leaf.ravel(), rows.keys.ravel(), num_keys, indices_are_sorted=True)
        for leaf in jax.lax.map(of_rows, rows)
    )


def answers_at_once() -> int:
    """Answers that are worked on at a time: on a CPU, as many as stay in cache."""
    return IN_CACHE if jax.default_backend() == "cpu" else ON_DEVICE


def _at(leaf: AnyArray, index: Int[AnyArray, "..."]) -> jax.Array:
    return jnp.asarray(leaf).at[index].get(mode="promise_in_bounds")


def _logit(theta: AnyArray, slope: AnyArray | None, intercept: AnyArray) -> AnyArray:
    return (theta if slope is None else slope * theta) + intercept


def _terms(logit: AnyArray, right: AnyArray, there: AnyArray) -> tuple[AnyArray, AnyArray]:
    """What answers add to the log-likelihood, and residuals; one tanh serves both, as in `kernels.likelihood`."""
    half = jnp.tanh(0.5 * logit)
    value = right * logit - there * (jnp.maximum(logit, 0) - jnp.log(0.5 + 0.5 * jnp.abs(half)))
    return value, right - there * (0.5 + 0.5 * half)
