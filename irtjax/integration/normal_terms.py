"""What a block of responses says of its items: gradient and information, expected under normal posteriors of ability.

Every function here sees B items at once, and J subjects through the mean μ and the variance v (J, B) of their logits.
Sums over subjects are products with matrices of `AbilityRows`.
"""

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from irtjax.integration.normal_posterior import Posterior
from irtjax.kernels.log_response import LEAST_PROBABILITY, log_response_derivatives, response_parts
from irtjax.kernels.models import ItemParameters
from irtjax.types import AnyArray


class AbilityRows(NamedTuple):
    """Functions of ability whose sums over subjects make gradients and information of D slopes and an intercept.

    Attributes:
        linear: (D + 1, J) m_1 … m_D and 1.
        all: (…, J) these, then m_k m_l + Σ_kl, then Σ_kl, of all pairs k ≤ l.
    """

    linear: jax.Array
    all: jax.Array


def pairs_of(dims: int) -> list[tuple[int, int]]:
    """All pairs k ≤ l of dimensions."""
    return list(itertools.combinations_with_replacement(range(dims), 2))


def ability_rows(posterior: Posterior) -> AbilityRows:
    """The rows that all blocks have in common."""
    m, covariance = posterior
    pairs = pairs_of(m.shape[1])
    one = jnp.ones_like(m[:, :1])
    second = jnp.stack([covariance[:, k, n] for k, n in pairs], axis=1)
    products = jnp.stack([m[:, k] * m[:, n] for k, n in pairs], axis=1) + second
    return AbilityRows(*(jnp.concatenate(rows, axis=1).T for rows in ((m, one), (m, one, products, second))))


def score_2pl(mu: jax.Array, v: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Expected derivative y - p of the log-likelihood in the logit, and the weight p (1 - p) at the mean: (J, B)."""
    p = 0.5 + 0.5 * jnp.tanh(0.5 * mu)  # the logistic function; tanh is the cheapest form of it
    answer = y.astype(mu.dtype)
    observed = jnp.minimum(answer + 1, 1)
    weight = observed * (p - p * p)
    return jnp.maximum(answer, 0) - observed * p - 0.5 * v * weight * (1 - 2 * p), weight


def terms_2pl(
    items: ItemParameters, mu: jax.Array, v: jax.Array, y: jax.Array, rows: AbilityRows
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Gradient (B, D + 1), and expected and observed information (B, D + 1, D + 1), which are equal."""
    pairs = pairs_of(items.slope.shape[1])
    score, weight = score_2pl(mu, v, y)
    by_score, by_weight = (
        jnp.stack([row @ x for row in rows]) for rows, x in ((rows.linear, score), (rows.all, weight))
    )
    gradient = _add_stein(by_score.T, by_weight[-len(pairs) :], items.slope, pairs)
    information = _matrix(by_weight[: -len(pairs)], pairs)
    return gradient, information, information


def terms_with_asymptotes(
    items: ItemParameters, mu: jax.Array, v: jax.Array, y: jax.Array, rows: AbilityRows
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Gradient (B, D + 3), expected and observed information (B, D + 3, D + 3) of items with asymptotes."""
    pairs = pairs_of(items.slope.shape[1])
    linear, all_rows = rows
    _, first, second, third, _ = log_response_derivatives(mu, items, y)
    observed, right, sign, s, not_s, span, probability = response_parts(mu, items, y)
    w = s * not_s
    relative_slope, relative_bend = sign * span * w / probability, span * w * (1 - 2 * s) / probability  # π'/π, π''/π
    c = jax.nn.sigmoid(items.lower) * jax.nn.sigmoid(-items.lower)
    d = jax.nn.sigmoid(items.upper) * jax.nn.sigmoid(-items.upper)
    one = linear[-1]

    def expected_ratio(u: jax.Array, direction: float) -> jax.Array:
        """E u/π to second order, where u = ∂π/∂c or ∂π/∂d, so that u' = direction · sign · w in the logit."""
        by_eta, by_eta_2 = direction * sign * w, direction * w * (1 - 2 * s)
        curvature = by_eta_2 - 2 * by_eta * relative_slope - u * relative_bend + 2 * u * relative_slope * relative_slope
        return jnp.where(observed, (u + 0.5 * v * curvature) / probability, 0)

    u_lower, u_upper = jnp.where(right > 0, not_s, -s), jnp.where(right > 0, s, -not_s)  # ∂π/∂c and ∂π/∂d
    by_lower, by_upper = c * (one @ expected_ratio(u_lower, -1.0)), d * (one @ expected_ratio(u_upper, 1.0))
    by_score = (linear @ (first + 0.5 * v * third)).T
    gradient = _add_stein(by_score, all_rows[-len(pairs) :] @ -second, items.slope, pairs)
    gradient = jnp.concatenate([gradient, by_lower[:, None], by_upper[:, None]], axis=1)

    # expected information is that of a coin that falls right with probability P
    up, down = jnp.where(right > 0, s, not_s), jnp.where(right > 0, not_s, s)
    p, q = jax.nn.sigmoid(items.lower)[None, :] + span * up, jax.nn.sigmoid(-items.upper)[None, :] + span * down
    coin = jnp.where(observed, 1 / jnp.maximum(p * q, LEAST_PROBABILITY), 0)
    by_eta, by_c, by_d = span * w, c[None, :] * down, d[None, :] * up
    expected_information = _assembled(
        rows,
        pairs,
        coin * by_eta**2,
        coin * by_eta * by_c,
        coin * by_eta * by_d,
        (coin * by_c**2, coin * by_c * by_d, coin * by_d**2),
    )
    # observed information is π_x π_y / π² - π_xy / π, with ∂ log π / ∂lower and ∂ log π / ∂upper
    log_by_lower, log_by_upper = (
        jnp.where(observed, ratio / probability, 0) for ratio in (c[None, :] * u_lower, d[None, :] * u_upper)
    )
    turn = jnp.where(observed, sign * w / probability, 0)
    observed_information = _assembled(
        rows,
        pairs,
        -second,
        first * log_by_lower + c[None, :] * turn,
        first * log_by_upper - d[None, :] * turn,
        (
            log_by_lower**2 - jnp.tanh(-0.5 * items.lower)[None, :] * log_by_lower,
            log_by_lower * log_by_upper,
            log_by_upper**2 - jnp.tanh(-0.5 * items.upper)[None, :] * log_by_upper,
        ),
    )
    return gradient, expected_information, observed_information


def _assembled(
    rows: AbilityRows,
    pairs: list[tuple[int, int]],
    ability: jax.Array,
    to_lower: jax.Array,
    to_upper: jax.Array,
    corner: tuple[jax.Array, jax.Array, jax.Array],
) -> jax.Array:
    """Information from (J, B) weights for η by η, η by lower and upper, and the three among asymptotes."""
    linear, all_rows = rows
    cross = jnp.stack([linear @ to_lower, linear @ to_upper], axis=-1).transpose(1, 0, 2)
    by_lower, by_both, by_upper = (linear[-1] @ weight for weight in corner)
    square = jnp.stack([jnp.stack([by_lower, by_both], axis=-1), jnp.stack([by_both, by_upper], axis=-1)], axis=-2)
    top = jnp.concatenate([_matrix(all_rows[: -len(pairs)] @ ability, pairs), cross], axis=2)
    return jnp.concatenate([top, jnp.concatenate([cross.transpose(0, 2, 1), square], axis=2)], axis=1)


def _add_stein(by_score: jax.Array, by_weight: jax.Array, slope: AnyArray, pairs: list[tuple[int, int]]) -> jax.Array:
    """Adds Σ slope E f', summed over subjects, to the gradient (B, D + 1) in slopes and intercept; f' is -weight."""
    for (k, n), total in zip(pairs, by_weight, strict=True):
        by_score = by_score.at[:, k].add(-slope[:, n] * total)
        if k != n:
            by_score = by_score.at[:, n].add(-slope[:, k] * total)
    return by_score


def _matrix(rows: jax.Array, pairs: list[tuple[int, int]]) -> jax.Array:
    """Information (B, D + 1, D + 1) of slopes and intercept from sums with m_1 … m_D, 1 and m_k m_l."""
    dims = rows.shape[0] - len(pairs) - 1
    entries = {pair: rows[dims + 1 + at] for at, pair in enumerate(pairs)}
    entries |= {(k, dims): rows[k] for k in range(dims + 1)}
    lines = [[entries[min(k, n), max(k, n)] for n in range(dims + 1)] for k in range(dims + 1)]
    return jnp.stack([jnp.stack(line, axis=-1) for line in lines], axis=-2)
