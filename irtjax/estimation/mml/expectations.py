"""Sums of log-likelihood terms over a whole response matrix, expected under normal posteriors of ability.

An item sees a subject's ability only through the logit η = slope·θ + intercept. With θ ~ N(m, Σ) it is normal with mean
μ and variance v = slope' Σ slope, and to second order

    E f(η) = f(μ) + v/2 f''(μ),     error v²/8 f''''(μ),

which is what Gauss-Hermite nodes around each subject's own mode give, at the price of one node. By Stein's lemma
E f(η) θ = m E f(η) + Σ slope E f'(η). On a test of n items v is about 4/n: the more items, the better.

All passes walk blocks of items, and sum by matrix products: on CPUs these are twice as fast as reductions.
"""

import functools
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from irtjax.estimation.mml.blocks import BY_BLOCK
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.sharding import BY_ITEM, BY_SUBJECT, ITEMS, SUBJECTS, on_mesh, sum_over, varying


class Posterior(NamedTuple):
    """Normal distributions of ability: means (J, D) and covariances (J, D, D)."""

    mean: jax.Array
    covariance: jax.Array


def item_sums(items: ItemParameters, posterior: Posterior, blocks: jax.Array, *, asymptotes: bool, mesh=None):
    """Gradient of the expected log-likelihood in the parameters of each item, expected and observed information.

    Args:
        items: of I = N B items.
        posterior: of J subjects.
        blocks: responses, (N, J, B) int8.
        asymptotes: whether any item has one; without, their derivatives are left out and K is D + 1, not D + 3.
        mesh: of the devices that the arguments are spread over.

    Returns:
        (I, K) and twice (I, K, K), in the order slopes, intercept, lower, upper. Without asymptotes the two are equal.
    """
    dims = items.slope.shape[1]
    pairs = list(itertools.combinations_with_replacement(range(dims), 2))

    def local(items, posterior, blocks):
        m, covariance = posterior
        one = jnp.ones_like(m[:, :1])
        second = jnp.stack([covariance[:, k, n] for k, n in pairs], axis=1)
        products = jnp.stack([m[:, k] * m[:, n] for k, n in pairs], axis=1) + second
        linear, all_rows = (jnp.concatenate(rows, axis=1).T for rows in ((m, one), (m, one, products, second)))

        def block(_, at):
            part, y = at
            mu, v = _logit(part, posterior)
            if asymptotes:
                return None, _with_asymptotes(part, mu, v, y, linear, all_rows, pairs)
            score, weight = _score_2pl(mu, v, y)
            by_score, by_weight = (
                jnp.stack([row @ x for row in rows]) for rows, x in ((linear, score), (all_rows, weight))
            )
            gradient = _add_stein(by_score.T, by_weight[-len(pairs) :], part.slope, pairs)
            information = _matrix(by_weight[: -len(pairs)], pairs)
            return None, (gradient, information, information)

        _, sums = jax.lax.scan(block, None, (_by_block(items, blocks), blocks))
        return sum_over(SUBJECTS, mesh, jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), sums))

    return on_mesh(local, mesh, (BY_ITEM, BY_SUBJECT, BY_BLOCK), BY_ITEM)(items, posterior, blocks)


def subject_sums(items: ItemParameters, posterior: Posterior, blocks: jax.Array, *, asymptotes: bool, mesh=None):
    """Expected gradient (J, D) of the log-likelihood in each ability, and its curvature (J, D, D) at the mean."""
    dims = items.slope.shape[1]

    def local(items, posterior, blocks):
        def block(carry, at):
            part, y = at
            mu, v = _logit(part, posterior)
            if asymptotes:
                orders = log_response_orders(mu, part, y)
                score, weight = orders[1] + 0.5 * v * orders[3], -orders[2]
            else:
                score, weight = _score_2pl(mu, v, y)
            squares = (part.slope[:, :, None] * part.slope[:, None, :]).reshape(-1, dims * dims)
            return (carry[0] + score @ part.slope, carry[1] + weight @ squares), None

        zeros = jnp.zeros_like(posterior.mean), jnp.zeros_like(posterior.covariance.reshape(-1, dims * dims))
        zeros = varying(ITEMS, mesh, zeros)
        (gradient, curvature), _ = jax.lax.scan(block, zeros, (_by_block(items, blocks), blocks))
        gradient, curvature = sum_over(ITEMS, mesh, (gradient, curvature))
        return gradient, curvature.reshape(-1, dims, dims)

    return on_mesh(local, mesh, (BY_ITEM, BY_SUBJECT, BY_BLOCK), BY_SUBJECT)(items, posterior, blocks)


def missing_information(items: ItemParameters, posterior: Posterior, blocks: jax.Array, *, mesh=None) -> jax.Array:
    """What not knowing the abilities exactly takes from each item's information in slopes and intercept.

    The information of complete data less that of the observed is the posterior variance of the score (Louis 1982).
    Here ∂ score/∂θ, a matrix, times the covariance of θ on either side, summed over subjects.

    Returns:
        (I, D + 1, D + 1), of first order in the covariances.
    """
    dims = items.slope.shape[1]

    def local(items, posterior, blocks):
        m, covariance = posterior
        flat = covariance.reshape(-1, dims * dims)
        crossed = (m[:, :, None] * flat[:, None, :]).reshape(-1, dims**3)  # m_k Σ_nd
        extended = jnp.concatenate([m, jnp.ones_like(m[:, :1])], axis=1)
        products = (extended[:, :, None] * extended[:, None, :]).reshape(-1, (dims + 1) ** 2)

        def block(_, at):
            part, y = at
            mu, v = _logit(part, posterior)
            _, first, second, _, _ = log_response_orders(mu, part, y)
            size = part.intercept.shape[0]
            result = ((second * second * v).T @ products).reshape(size, dims + 1, dims + 1)
            by_both = first * second
            mixed = jnp.einsum("bknd,bd->bkn", (by_both.T @ crossed).reshape(size, dims, dims, dims), part.slope)
            mixed_with_one = jnp.einsum("bnd,bd->bn", (by_both.T @ flat).reshape(size, dims, dims), part.slope)
            squared = ((first * first).T @ flat).reshape(size, dims, dims)
            result = result.at[:, :dims, :dims].add(mixed + mixed.transpose(0, 2, 1) + squared)
            return None, result.at[:, dims, :dims].add(mixed_with_one).at[:, :dims, dims].add(mixed_with_one)

        _, sums = jax.lax.scan(block, None, (_by_block(items, blocks), blocks))
        return sum_over(SUBJECTS, mesh, sums.reshape(-1, *sums.shape[2:]))

    return on_mesh(local, mesh, (BY_ITEM, BY_SUBJECT, BY_BLOCK), BY_ITEM)(items, posterior, blocks)


def item_gains(
    candidates: ItemParameters, items: ItemParameters, posterior: Posterior, blocks: jax.Array, *, mesh=None
) -> jax.Array:
    """How much higher (I, S) the expected log-likelihood of each item is with each of S candidates than with `items`.

    Differences are taken response by response: those of sums over thousands of subjects would be lost in the rounding
    of float32.

    Args:
        candidates: leaves (I, S, …).
        items: where they start from.
        posterior: of J subjects.
        blocks: responses.
        mesh: of the devices that the arguments are spread over.
    """

    def local(candidates, items, posterior, blocks):
        def block(_, at):
            tried, part, y = at
            before = expected(part, posterior, y)
            tried = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 1, 0), tried)
            gains = jax.lax.map(lambda one: jnp.ones_like(before[:, 0]) @ (expected(one, posterior, y) - before), tried)
            return None, gains.T

        _, gains = jax.lax.scan(block, None, (_by_block(candidates, blocks), _by_block(items, blocks), blocks))
        return sum_over(SUBJECTS, mesh, gains.reshape(-1, gains.shape[-1]))

    def expected(part, posterior, y):
        mu, v = _logit(part, posterior)
        orders = log_response_orders(mu, part, y)
        return orders[0] + 0.5 * v * orders[2]

    specs = (BY_ITEM, BY_ITEM, BY_SUBJECT, BY_BLOCK)
    return on_mesh(local, mesh, specs, BY_ITEM)(candidates, items, posterior, blocks)


def subject_expansion(items: ItemParameters, posterior: Posterior, blocks: jax.Array, *, mesh=None):
    """What the marginal likelihood needs of the log-likelihood of each subject, expanded at the posterior mean.

    Returns:
        By block, so that the caller can add in float64: the value and an eighth of the fourth-order term contracted
        with the covariance twice (N, J); then, summed, the third derivatives (J, D³).
    """
    dims = items.slope.shape[1]

    def local(items, posterior, blocks):
        def block(carry, at):
            part, y = at
            mu, v = _logit(part, posterior)
            value, _, _, third, fourth = log_response_orders(mu, part, y)
            cubes = functools.reduce(
                lambda tensor, _: (tensor[:, :, None] * part.slope[:, None, :]).reshape(tensor.shape[0], -1),
                range(2),
                part.slope,
            )
            return carry + third @ cubes, (value + v * v * fourth / 8) @ jnp.ones_like(part.intercept)

        zeros = varying(ITEMS, mesh, jnp.zeros((*posterior.mean.shape[:1], dims**3), posterior.mean.dtype))
        if mesh is not None:
            zeros = varying(SUBJECTS, mesh, zeros)
        third, values = jax.lax.scan(block, zeros, (_by_block(items, blocks), blocks))
        return values, sum_over(ITEMS, mesh, third)

    return on_mesh(local, mesh, (BY_ITEM, BY_SUBJECT, BY_BLOCK), (BY_BLOCK, BY_SUBJECT))(items, posterior, blocks)


def log_response_orders(eta: jax.Array, items: ItemParameters, y: jax.Array) -> tuple[jax.Array, ...]:
    """Log-probability of responses (J, B) and its first four derivatives in the logit η; 0 where missing.

    The probability of the response given is π = base + (d - c) s, with s = σ(±η) and base c for a right answer, 1 - d
    for a wrong one. Its derivatives are polynomials in s, and those of log π follow from the ratios π^(k)/π as
    cumulants follow from moments.
    """
    observed, _, sign, s, not_s, span, probability = _response(eta, items, y)
    w = s * not_s
    scale = span * w / probability
    first = sign * scale
    second = scale * (1 - 2 * s)
    third = sign * scale * (1 - 6 * w)
    fourth = scale * (1 - 2 * s) * (1 - 12 * w)
    square = first * first
    orders = (
        jnp.log(probability),
        first,
        second - square,
        third - 3 * first * second + 2 * first * square,
        fourth - 4 * first * third - 3 * second * second + 12 * square * second - 6 * square * square,
    )
    return tuple(jnp.where(observed, order, 0) for order in orders)


def _response(eta, items, y):
    observed, right = y >= 0, (y == 1).astype(eta.dtype)
    sign = 2 * right - 1
    s = jax.nn.sigmoid(sign * eta)
    not_s = jax.nn.sigmoid(-sign * eta)  # not 1 - s, which cancels
    c, not_d = jax.nn.sigmoid(items.lower)[None, :], jax.nn.sigmoid(-items.upper)[None, :]
    span = 1 - not_d - c
    # a curve as steep as a wall has responses of probability 0 in float32: they say no more than "very unlikely"
    probability = jnp.maximum(right * c + (1 - right) * not_d + span * s, 1e-30)
    return observed, right, sign, s, not_s, span, probability


def _logit(items: ItemParameters, posterior: Posterior) -> tuple[jax.Array, jax.Array]:
    """Mean and variance (J, B) of each subject's logit on each item."""
    m, covariance = posterior
    a = items.slope
    dims = range(a.shape[1])
    mu = sum((m[:, k, None] * a[None, :, k] for k in dims), items.intercept[None, :])
    v = sum(covariance[:, k, n, None] * (a[:, k] * a[:, n])[None, :] for k in dims for n in dims)
    return mu, v


def _score_2pl(mu: jax.Array, v: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Expected derivative y - p of the log-likelihood in the logit, and the weight p (1 - p) at the mean."""
    p = 0.5 + 0.5 * jnp.tanh(0.5 * mu)  # the logistic function; tanh is the cheapest form of it
    answer = y.astype(mu.dtype)
    observed = jnp.minimum(answer + 1, 1)
    weight = observed * (p - p * p)
    return jnp.maximum(answer, 0) - observed * p - 0.5 * v * weight * (1 - 2 * p), weight


def _with_asymptotes(items, mu, v, y, linear, all_rows, pairs):
    """Gradient (B, D + 3), expected and observed information (B, D + 3, D + 3) of items with asymptotes."""
    _, first, second, third, _ = log_response_orders(mu, items, y)
    observed, right, sign, s, not_s, span, probability = _response(mu, items, y)
    w = s * not_s
    q1, q2 = sign * span * w / probability, span * w * (1 - 2 * s) / probability
    c = jax.nn.sigmoid(items.lower) * jax.nn.sigmoid(-items.lower)
    d = jax.nn.sigmoid(items.upper) * jax.nn.sigmoid(-items.upper)
    one = linear[-1]

    def expected(u, direction):
        """Of u/π, a ratio of functions of the logit: u' is direction · sign · w."""
        by_eta, by_eta_2 = direction * sign * w, direction * w * (1 - 2 * s)
        curvature = by_eta_2 - 2 * by_eta * q1 - u * q2 + 2 * u * q1 * q1
        return jnp.where(observed, (u + 0.5 * v * curvature) / probability, 0)

    u_lower, u_upper = jnp.where(right > 0, not_s, -s), jnp.where(right > 0, s, -not_s)
    by_lower, by_upper = c * (one @ expected(u_lower, -1.0)), d * (one @ expected(u_upper, 1.0))
    by_score = (linear @ (first + 0.5 * v * third)).T
    gradient = _add_stein(by_score, all_rows[-len(pairs) :] @ -second, items.slope, pairs)
    gradient = jnp.concatenate([gradient, by_lower[:, None], by_upper[:, None]], axis=1)

    def assemble(ability, to_lower, to_upper, corner):
        """Information from (J, B) weights for η by η, η by lower and upper, and the three among asymptotes."""
        cross = jnp.stack([linear @ to_lower, linear @ to_upper], axis=-1).transpose(1, 0, 2)
        by_lower, by_both, by_upper = (one @ weight for weight in corner)
        corner = jnp.stack([jnp.stack([by_lower, by_both], axis=-1), jnp.stack([by_both, by_upper], axis=-1)], axis=-2)
        top = jnp.concatenate([_matrix(all_rows[: -len(pairs)] @ ability, pairs), cross], axis=2)
        return jnp.concatenate([top, jnp.concatenate([cross.transpose(0, 2, 1), corner], axis=2)], axis=1)

    # expected information is that of a coin that falls right with probability P
    up, down = jnp.where(right > 0, s, not_s), jnp.where(right > 0, not_s, s)
    p, q = jax.nn.sigmoid(items.lower)[None, :] + span * up, jax.nn.sigmoid(-items.upper)[None, :] + span * down
    coin = jnp.where(observed, 1 / jnp.maximum(p * q, 1e-30), 0)
    by_eta, by_c, by_d = span * w, c[None, :] * down, d[None, :] * up
    expected_information = assemble(
        coin * by_eta**2,
        coin * by_eta * by_c,
        coin * by_eta * by_d,
        (coin * by_c**2, coin * by_c * by_d, coin * by_d**2),
    )
    # observed information π_x π_y / π² - π_xy / π
    l_c, l_d = (jnp.where(observed, ratio / probability, 0) for ratio in (c[None, :] * u_lower, d[None, :] * u_upper))
    turn = jnp.where(observed, sign * w / probability, 0)
    observed_information = assemble(
        -second,
        first * l_c + c[None, :] * turn,
        first * l_d - d[None, :] * turn,
        (
            l_c**2 - jnp.tanh(-0.5 * items.lower)[None, :] * l_c,
            l_c * l_d,
            l_d**2 - jnp.tanh(-0.5 * items.upper)[None, :] * l_d,
        ),
    )
    return gradient, expected_information, observed_information


def _add_stein(by_score, by_weight, slope, pairs):
    """Adds Σ slope E f', summed over subjects, to the gradient (B, D + 1) in slopes and intercept; f' is -weight."""
    for (k, n), total in zip(pairs, by_weight, strict=True):
        by_score = by_score.at[:, k].add(-slope[:, n] * total)
        if k != n:
            by_score = by_score.at[:, n].add(-slope[:, k] * total)
    return by_score


def _matrix(rows, pairs):
    """Information (B, D + 1, D + 1) of slopes and intercept from sums with m_1 … m_D, 1 and m_k m_l."""
    dims = rows.shape[0] - len(pairs) - 1
    entries = {pair: rows[dims + 1 + at] for at, pair in enumerate(pairs)}
    entries |= {(k, dims): rows[k] for k in range(dims + 1)}
    lines = [[entries[min(k, n), max(k, n)] for n in range(dims + 1)] for k in range(dims + 1)]
    return jnp.stack([jnp.stack(line, axis=-1) for line in lines], axis=-2)


def _by_block(items: ItemParameters, blocks: jax.Array) -> ItemParameters:
    return jax.tree.map(lambda leaf: leaf.reshape(blocks.shape[0], blocks.shape[2], *leaf.shape[1:]), items)
