"""Log-likelihood of a whole response matrix in the 1PL and 2PL, with its gradients, in one pass over the matrix.

No float (J, I) array ever exists: on a CPU the matrix is walked in blocks of items, a TPU's compiler fuses all into the
read of it, and a GPU has a kernel of its own (`kernels.formulation`). All sums are matrix products with vectors, which
XLA runs on CPUs at more than twice the speed of reductions.
"""

import functools

import jax
import jax.numpy as jnp

from irtjax.kernels import handwritten
from irtjax.kernels.formulation import formulation
from irtjax.kernels.loops import items_per_block
from irtjax.kernels.precision import in_full_precision
from irtjax.kernels.sharding import (
    BY_ITEM,
    BY_RESPONSE,
    BY_SUBJECT,
    EVERYWHERE,
    ITEMS,
    SUBJECTS,
    on_mesh,
    sum_over,
    varying,
)
from irtjax.types import AnyArray, Float, Int

BLOCK_RESPONSES = 2**20  # a float32 array of so many is 4 MB


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def log_likelihood_1pl(
    theta: Float[AnyArray, " J"],
    difficulty: Float[AnyArray, " I"],
    responses: Int[AnyArray, "_ _"],
    mesh: jax.sharding.Mesh | None = None,
) -> Float[AnyArray, ""]:
    """Log-likelihood of a response matrix in the 1PL (Rasch 1960), missing responses left out.

        log L = Σ_ji [ y_ji (θ_j - b_i) - log(1 + exp(θ_j - b_i)) ]   over observed (j, i)

    with gradients ∂/∂θ_j = Σ_i (y_ji - p_ji) and ∂/∂b_i = -Σ_j (y_ji - p_ji), computed in the same pass.

    Args:
        theta: (J,) abilities in logits; its dtype is that of the sums.
        difficulty: (I,) difficulties in logits.
        responses: (J, I) integers; 1 right, 0 wrong, negative missing.
        mesh: of the devices that the arguments are spread over, with axes "subjects" and "items" whose sizes divide J
            and I; None for one device.

    Returns:
        A scalar, in nats.

    Raises:
        ValueError: the shapes disagree.
    """
    return value_and_sums(theta, None, -difficulty, responses, mesh)[0]


def _forward_1pl(
    theta: AnyArray, difficulty: AnyArray, responses: AnyArray, mesh: jax.sharding.Mesh | None
) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    value, by_subject, by_item = value_and_sums(theta, None, -difficulty, responses, mesh)
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
    responses: Int[AnyArray, "_ _"],
    mesh: jax.sharding.Mesh | None = None,
) -> Float[AnyArray, ""]:
    """Log-likelihood of a response matrix in the 2PL (Birnbaum 1968), missing responses left out.

    As `log_likelihood_1pl` with the logit a_i (θ_j - b_i). With r = y - p the gradients are ∂/∂θ_j = Σ_i a_i r_ji,
    ∂/∂a_i = Σ_j r_ji (θ_j - b_i) and ∂/∂b_i = -a_i Σ_j r_ji.

    Args:
        theta: (J,) abilities.
        discrimination: (I,), of either sign.
        difficulty: (I,), on the scale of ability.
        responses: (J, I) integers; 1 right, 0 wrong, negative missing.
        mesh: as in `log_likelihood_1pl`.

    Returns:
        A scalar, in nats.

    Raises:
        ValueError: the shapes disagree.
    """
    return value_and_sums(theta, discrimination, -discrimination * difficulty, responses, mesh)[0]


def _forward_2pl(
    theta: AnyArray, discrimination: AnyArray, difficulty: AnyArray, responses: AnyArray, mesh: jax.sharding.Mesh | None
) -> tuple[jax.Array, tuple[AnyArray, ...]]:
    intercept = -discrimination * difficulty
    value, by_subject, by_item = value_and_sums(theta, discrimination, intercept, responses, mesh)
    residual, times_theta = by_item[:, 0], by_item[:, 1]
    return value, (by_subject, times_theta - difficulty * residual, -discrimination * residual)


log_likelihood_2pl.defvjp(_forward_2pl, _backward)


@in_full_precision
def value_and_sums(
    theta: AnyArray,
    slope: AnyArray | None,
    intercept: AnyArray,
    responses: AnyArray,
    mesh: jax.sharding.Mesh | None = None,
) -> tuple[Float[jax.Array, ""], Float[jax.Array, " J"], Float[jax.Array, "I _"]]:
    """The log-likelihood in logits slope_i θ_j + intercept_i, and the sums of residuals r = y - p that gradients need.

    Args:
        theta: (J,) abilities.
        slope: (I,), or None for 1.
        intercept: (I,).
        responses: (J, I), see `log_likelihood_1pl`.
        mesh: of devices, see `log_likelihood_1pl`; None for one.

    Returns:
        The log-likelihood; Σ_i slope_i r_ji of each subject; and of each item Σ_j r_ji and, with slopes, Σ_j r_ji θ_j.

    Raises:
        ValueError: the shapes disagree.
    """
    if responses.shape != theta.shape + intercept.shape:
        raise ValueError(
            f"responses have shape {responses.shape}, expected {theta.shape + intercept.shape} "
            "from theta (J,) and difficulty (I,)"
        )

    def local(
        theta: AnyArray, slope: AnyArray | None, intercept: AnyArray, responses: AnyArray
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        value, by_subject, by_item = _of_device(mesh, theta, slope, intercept, responses)
        value = sum_over(SUBJECTS, mesh, sum_over(ITEMS, mesh, value))
        return value, sum_over(ITEMS, mesh, by_subject), sum_over(SUBJECTS, mesh, by_item.T)

    return on_mesh(local, mesh, (BY_SUBJECT, BY_ITEM, BY_ITEM, BY_RESPONSE), (EVERYWHERE, BY_SUBJECT, BY_ITEM))(
        theta, slope, intercept, responses
    )


def _of_device(
    mesh: jax.sharding.Mesh | None, theta: AnyArray, slope: AnyArray | None, intercept: AnyArray, responses: AnyArray
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The three results of `value_and_sums` for what a device has, the last one transposed."""
    by_blocks = functools.partial(_in_blocks, mesh)
    if not (formulation().tiles and handwritten.available()):
        return by_blocks(theta, slope, intercept, responses)
    from irtjax.kernels import likelihood_tiles as tiles

    right = tiles.takes(theta, responses) and handwritten.is_right_here(
        tiles.value_and_sums, _block, tiles.small_problems
    )
    if not right:
        return by_blocks(theta, slope, intercept, responses)
    # a program may be traced for the GPU at hand, and run on its host
    return jax.lax.platform_dependent(theta, slope, intercept, responses, cuda=tiles.value_and_sums, default=by_blocks)


def _in_blocks(
    mesh: jax.sharding.Mesh | None, theta: AnyArray, slope: AnyArray | None, intercept: AnyArray, responses: AnyArray
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """As `_of_device`, by XLA, in blocks of items."""
    num_subjects, num_items = responses.shape
    block = items_per_block(num_subjects, num_items, BLOCK_RESPONSES)
    whole = num_items // block
    if block == num_items and not formulation().in_caches:  # a loop of one turn would copy the responses
        return _block(theta, slope, intercept, responses)

    def at(start: jax.Array | int, size: int) -> tuple[jax.Array, jax.Array, jax.Array]:
        part = functools.partial(jax.lax.dynamic_slice_in_dim, start_index=start, slice_size=size)
        return _block(theta, None if slope is None else part(slope), part(intercept), part(responses, axis=1))

    def add(by_subject: jax.Array, k: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        value, block_by_subject, by_item = at(k * block, block)
        return by_subject + block_by_subject, (value, by_item)

    zeros = varying(ITEMS, mesh, jnp.zeros_like(theta))
    by_subject, (values, by_item) = jax.lax.scan(add, zeros, jnp.arange(whole))
    by_item = by_item.transpose(1, 0, 2).reshape(-1, whole * block)
    value = values.sum()
    if rest := num_items - whole * block:
        rest_value, rest_by_subject, rest_by_item = at(whole * block, rest)
        value, by_subject = value + rest_value, by_subject + rest_by_subject
        by_item = jnp.concatenate([by_item, rest_by_item], axis=1)
    return value, by_subject, by_item


def _block(
    theta: AnyArray, slope: AnyArray | None, intercept: AnyArray, responses: AnyArray
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The three results of `value_and_sums` for a block of items, the last one transposed."""
    logit = (theta[:, None] if slope is None else theta[:, None] * slope[None, :]) + intercept[None, :]
    answer = responses.astype(theta.dtype)
    observed, right = jnp.minimum(answer + 1, 1), jnp.maximum(answer, 0)
    # σ(x) = (1 + tanh(x/2)) / 2 and log(1 + exp(-|x|)) = -log((1 + |tanh(x/2)|) / 2): one tanh serves both, no overflow
    half = jnp.tanh(0.5 * logit)
    residual = right - observed * (0.5 + 0.5 * half)
    value = right * logit - observed * (jnp.maximum(logit, 0) - jnp.log(0.5 + 0.5 * jnp.abs(half)))
    ones = jnp.ones_like(theta)
    of_items = jnp.ones_like(intercept)
    rows = [ones @ residual] if slope is None else [ones @ residual, theta @ residual]
    return (ones @ value) @ of_items, residual @ (of_items if slope is None else slope), jnp.stack(rows)
