"""Item response functions: the probability of a right answer, its log-likelihood and its information.

Notation: ability θ (theta), difficulty b, all in logits; `p` is the probability of a right answer.
"""

import jax
import jax.numpy as jnp

BLOCK = 256  # items a block: at a thousand subjects one block of float32 logits is 1 MB and stays in cache


def probability_1pl(theta: jax.Array, difficulty: jax.Array) -> jax.Array:
    """Probability of a right answer in the one-parameter logistic model (Rasch 1960).

        p = σ(θ - b)

    Args:
        theta: abilities in logits, any shape that broadcasts against `difficulty`.
        difficulty: difficulties in logits.

    Returns:
        Probabilities, of the broadcast shape.
    """
    return jax.nn.sigmoid(theta - difficulty)


def information_1pl(theta: jax.Array, difficulty: jax.Array) -> jax.Array:
    """Fisher information of one response about θ in the 1PL: p (1 - p); shapes as in `probability_1pl`."""
    p = probability_1pl(theta, difficulty)
    return p * (1 - p)


@jax.custom_vjp
def log_likelihood_1pl(theta: jax.Array, difficulty: jax.Array, responses: jax.Array) -> jax.Array:
    """Log-likelihood of a response matrix in the 1PL, missing responses left out.

        log L = Σ_ji [ y_ji (θ_j - b_i) - log(1 + exp(θ_j - b_i)) ]   over observed (j, i)

    with gradients ∂/∂θ_j = Σ_i (y_ji - p_ji) and ∂/∂b_i = -Σ_j (y_ji - p_ji), computed in the same pass.
    The matrix is walked in blocks of items, so that no float (J, I) array ever exists.

    Args:
        theta: (J,) abilities in logits; its dtype is that of the sums.
        difficulty: (I,) difficulties in logits.
        responses: (J, I) integers; 1 right, 0 wrong, negative missing.

    Returns:
        A scalar, in nats.

    Raises:
        ValueError: the shapes disagree.
    """
    value, _, _ = _value_and_sums(theta, difficulty, responses)
    return value


def _forward(theta, difficulty, responses):
    value, by_subject, by_item = _value_and_sums(theta, difficulty, responses)
    return value, (by_subject, by_item)


def _backward(sums, cotangent):
    by_subject, by_item = sums
    return cotangent * by_subject, -cotangent * by_item, None


log_likelihood_1pl.defvjp(_forward, _backward)


def _value_and_sums(theta, difficulty, responses):
    """The log-likelihood, and the residuals y - p summed over items (J,) and over subjects (I,)."""
    if responses.shape != theta.shape + difficulty.shape:
        raise ValueError(
            f"responses have shape {responses.shape}, expected {theta.shape + difficulty.shape} "
            "from theta (J,) and difficulty (I,)"
        )
    num_items = difficulty.shape[0]
    block = min(BLOCK, num_items)
    whole = num_items // block

    def at(k):
        y = jax.lax.dynamic_slice_in_dim(responses, k * block, block, axis=1)
        return _block(theta, jax.lax.dynamic_slice_in_dim(difficulty, k * block, block), y)

    def add(carry, k):
        value, by_subject = carry
        block_value, block_by_subject, by_item = at(k)
        return (value + block_value, by_subject + block_by_subject), by_item

    start = (jnp.zeros((), theta.dtype), jnp.zeros_like(theta))
    (value, by_subject), by_item = jax.lax.scan(add, start, jnp.arange(whole))
    rest_value, rest_by_subject, rest_by_item = _block(
        theta, difficulty[whole * block :], responses[:, whole * block :]
    )
    by_item = jnp.concatenate([by_item.reshape(-1), rest_by_item])
    return value + rest_value, by_subject + rest_by_subject, by_item


def _block(theta, difficulty, y):
    logit = theta[:, None] - difficulty[None, :]
    small = jnp.exp(-jnp.abs(logit))  # in (0, 1]: nothing overflows
    p = jnp.where(logit >= 0, 1.0, small) / (1 + small)
    right = (y == 1).astype(theta.dtype)
    observed = (y >= 0).astype(theta.dtype)
    # log(1 + small) loses only what is below one rounding unit of the sum, and is cheaper than log1p
    value = right * logit - observed * (jnp.maximum(logit, 0) + jnp.log(1 + small))
    residual = right - observed * p
    return value.sum(), residual.sum(1), residual.sum(0)
