"""Sums of log-likelihood terms over a whole response matrix, expected under normal posteriors of ability.

An item sees a subject's ability only through the logit η = slope·θ + intercept. With θ ~ N(m, Σ) it is normal with mean
μ and variance v = slope' Σ slope, and to second order

    E f(η) = f(μ) + v/2 f''(μ),     error v²/8 f''''(μ),

which is what Gauss-Hermite nodes around each subject's own mode give, at the price of one node. By Stein's lemma
E f(η) θ = m E f(η) + Σ slope E f'(η). On a test of n items v is about 4/n: the more items, the better.

All passes walk blocks of items, and sum by matrix products: on CPUs these are twice as fast as reductions.
"""

import functools
import operator

import jax
import jax.numpy as jnp

from irtjax.integration.normal_posterior import Posterior
from irtjax.integration.normal_terms import ability_rows, score_2pl, terms_2pl, terms_with_asymptotes
from irtjax.kernels.log_response import Derivatives, log_logistic_derivatives, log_response_derivatives
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.precision import in_full_precision
from irtjax.kernels.sharding import BY_ITEM, BY_SUBJECT, ITEMS, SUBJECTS, on_mesh, sum_over, varying
from irtjax.responses.blocks import BY_BLOCK
from irtjax.types import AnyArray, Float, Int


@in_full_precision
def item_sums(
    items: ItemParameters,
    posterior: Posterior,
    blocks: Int[jax.Array, "N J B"],
    *,
    asymptotes: bool,
    mesh: jax.sharding.Mesh | None = None,
) -> tuple[Float[jax.Array, "I K"], Float[jax.Array, "I K K"], Float[jax.Array, "I K K"]]:
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
    terms = terms_with_asymptotes if asymptotes else terms_2pl

    def local(items: ItemParameters, posterior: Posterior, blocks: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        rows = ability_rows(posterior)

        def block(_: None, at: tuple[ItemParameters, jax.Array]) -> tuple[None, tuple[jax.Array, ...]]:
            part, y = at
            mu, v = _logit(part, posterior)
            return None, terms(part, mu, v, y, rows)

        _, sums = jax.lax.scan(block, None, (_by_block(items, blocks), blocks))
        return sum_over(SUBJECTS, mesh, jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), sums))

    return on_mesh(local, mesh, (BY_ITEM, BY_SUBJECT, BY_BLOCK), BY_ITEM)(items, posterior, blocks)


@in_full_precision
def subject_sums(
    items: ItemParameters,
    posterior: Posterior,
    blocks: Int[jax.Array, "N J B"],
    *,
    asymptotes: bool,
    mesh: jax.sharding.Mesh | None = None,
) -> tuple[Float[jax.Array, "J D"], Float[jax.Array, "J D D"]]:
    """Expected gradient (J, D) of the log-likelihood in each ability, and its curvature (J, D, D) at the mean."""
    dims = items.slope.shape[1]

    def local(items: ItemParameters, posterior: Posterior, blocks: jax.Array) -> tuple[jax.Array, jax.Array]:
        def block(
            carry: tuple[jax.Array, jax.Array], at: tuple[ItemParameters, jax.Array]
        ) -> tuple[tuple[jax.Array, jax.Array], None]:
            part, y = at
            mu, v = _logit(part, posterior)
            if asymptotes:
                _, first, second, third, _ = log_response_derivatives(mu, part, y)
                score, weight = first + 0.5 * v * third, -second
            else:
                score, weight = score_2pl(mu, v, y)
            squares = (part.slope[:, :, None] * part.slope[:, None, :]).reshape(-1, dims * dims)
            return (carry[0] + score @ part.slope, carry[1] + weight @ squares), None

        zeros = jnp.zeros_like(posterior.mean), jnp.zeros_like(posterior.covariance.reshape(-1, dims * dims))
        zeros = varying(ITEMS, mesh, zeros)
        (gradient, curvature), _ = jax.lax.scan(block, zeros, (_by_block(items, blocks), blocks))
        gradient, curvature = sum_over(ITEMS, mesh, (gradient, curvature))
        return gradient, curvature.reshape(-1, dims, dims)

    return on_mesh(local, mesh, (BY_ITEM, BY_SUBJECT, BY_BLOCK), BY_SUBJECT)(items, posterior, blocks)


@in_full_precision
def missing_information(
    items: ItemParameters,
    posterior: Posterior,
    blocks: Int[jax.Array, "N J B"],
    *,
    asymptotes: bool,
    mesh: jax.sharding.Mesh | None = None,
) -> Float[jax.Array, "I K K"]:
    """What not knowing the abilities exactly takes from each item's information in slopes and intercept.

    The information of complete data less that of the observed is the posterior variance of the score (Louis 1982).
    Here ∂ score/∂θ, a matrix, times the covariance of θ on either side, summed over subjects.

    Returns:
        (I, D + 1, D + 1), of first order in the covariances.
    """
    dims = items.slope.shape[1]

    def local(items: ItemParameters, posterior: Posterior, blocks: jax.Array) -> jax.Array:
        m, covariance = posterior
        flat = covariance.reshape(-1, dims * dims)
        crossed = (m[:, :, None] * flat[:, None, :]).reshape(-1, dims**3)  # m_k Σ_nd
        extended = jnp.concatenate([m, jnp.ones_like(m[:, :1])], axis=1)
        products = (extended[:, :, None] * extended[:, None, :]).reshape(-1, (dims + 1) ** 2)

        def block(_: None, at: tuple[ItemParameters, jax.Array]) -> tuple[None, jax.Array]:
            part, y = at
            mu, v = _logit(part, posterior)
            first, second = _derivatives(mu, part, y, asymptotes)[1:3]
            size = part.intercept.shape[0]
            result = _sums(products, second * second * v).reshape(size, dims + 1, dims + 1)
            both = _sums(jnp.concatenate([crossed, flat], axis=1), first * second)
            by_crossed, by_flat = both[:, : dims**3], both[:, dims**3 :]
            mixed = jnp.einsum("bknd,bd->bkn", by_crossed.reshape(size, dims, dims, dims), part.slope)
            mixed_with_one = jnp.einsum("bnd,bd->bn", by_flat.reshape(size, dims, dims), part.slope)
            squared = _sums(flat, first * first).reshape(size, dims, dims)
            result = result.at[:, :dims, :dims].add(mixed + mixed.transpose(0, 2, 1) + squared)
            return None, result.at[:, dims, :dims].add(mixed_with_one).at[:, :dims, dims].add(mixed_with_one)

        _, sums = jax.lax.scan(block, None, (_by_block(items, blocks), blocks))
        return sum_over(SUBJECTS, mesh, sums.reshape(-1, *sums.shape[2:]))

    return on_mesh(local, mesh, (BY_ITEM, BY_SUBJECT, BY_BLOCK), BY_ITEM)(items, posterior, blocks)


@in_full_precision
def item_gains(
    candidates: ItemParameters,
    items: ItemParameters,
    posterior: Posterior,
    blocks: Int[jax.Array, "N J B"],
    *,
    mesh: jax.sharding.Mesh | None = None,
) -> Float[jax.Array, "I S"]:
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

    def local(candidates: ItemParameters, items: ItemParameters, posterior: Posterior, blocks: jax.Array) -> jax.Array:
        def block(_: None, at: tuple[ItemParameters, ItemParameters, jax.Array]) -> tuple[None, jax.Array]:
            tried, part, y = at
            before = expected_value(part, posterior, y)
            tried = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 1, 0), tried)
            gains = jax.lax.map(
                lambda one: jnp.ones_like(before[:, 0]) @ (expected_value(one, posterior, y) - before), tried
            )
            return None, gains.T

        _, gains = jax.lax.scan(block, None, (_by_block(candidates, blocks), _by_block(items, blocks), blocks))
        return sum_over(SUBJECTS, mesh, gains.reshape(-1, gains.shape[-1]))

    def expected_value(part: ItemParameters, posterior: Posterior, y: jax.Array) -> jax.Array:
        mu, v = _logit(part, posterior)
        value, _, second, *_ = log_response_derivatives(mu, part, y)
        return value + 0.5 * v * second

    specs = (BY_ITEM, BY_ITEM, BY_SUBJECT, BY_BLOCK)
    return on_mesh(local, mesh, specs, BY_ITEM)(candidates, items, posterior, blocks)


@in_full_precision
def subject_expansion(
    items: ItemParameters,
    posterior: Posterior,
    blocks: Int[jax.Array, "N J B"],
    *,
    asymptotes: bool,
    mesh: jax.sharding.Mesh | None = None,
) -> tuple[Float[jax.Array, "N J"], Float[jax.Array, "J cubes"]]:
    """What the marginal likelihood needs of the log-likelihood of each subject, expanded at the posterior mean.

    Returns:
        By block, so that the caller can add in float64: the value and an eighth of the fourth-order term contracted
        with the covariance twice (N, J); then, summed, the third derivatives (J, D³).
    """
    dims = items.slope.shape[1]

    def local(items: ItemParameters, posterior: Posterior, blocks: jax.Array) -> tuple[jax.Array, jax.Array]:
        def block(carry: jax.Array, at: tuple[ItemParameters, jax.Array]) -> tuple[jax.Array, jax.Array]:
            part, y = at
            mu, v = _logit(part, posterior)
            value, _, _, third, fourth = _derivatives(mu, part, y, asymptotes)
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


def _sums(columns: AnyArray, terms: jax.Array) -> jax.Array:
    """Sums over subjects (B, K) of terms (J, B) times columns (J, K): one row after the other is fastest on CPUs."""
    return jnp.stack([row @ terms for row in columns.T], axis=1)


def _derivatives(eta: jax.Array, items: ItemParameters, y: jax.Array, asymptotes: bool) -> Derivatives:
    return log_response_derivatives(eta, items, y) if asymptotes else log_logistic_derivatives(eta, y)


def _logit(items: ItemParameters, posterior: Posterior) -> tuple[jax.Array, jax.Array]:
    """Mean and variance (J, B) of each subject's logit on each item."""
    m, covariance = posterior
    a = items.slope
    dims = range(a.shape[1])
    mu = sum((m[:, k, None] * a[None, :, k] for k in dims), items.intercept[None, :])
    variances = (covariance[:, k, n, None] * (a[:, k] * a[:, n])[None, :] for k in dims for n in dims)
    return jnp.asarray(mu), jnp.asarray(functools.reduce(operator.add, variances))


def _by_block(items: ItemParameters, blocks: jax.Array) -> ItemParameters:
    return jax.tree.map(lambda leaf: leaf.reshape(blocks.shape[0], blocks.shape[2], *leaf.shape[1:]), items)
