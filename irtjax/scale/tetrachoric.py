"""Tetrachoric correlations: those of normal variables, when responses show only whether each exceeds a threshold."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr, ndtri

from irtjax.types import AnyArray, Float, Int

FEW, MANY = 16, 48  # nodes of Gauss-Legendre quadrature
MODERATE = 0.8  # correlation up to which `FEW` nodes are exact to nine digits
LARGEST = 0.9999  # beyond it the density is almost a line
MAX_STEPS = 60
TOLERANCE = 1e-8
CONTINUITY = 0.5
BLOCK = 2**14  # pairs at a time

Carry = tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]  # ρ, its bounds, the last step, number of steps


def bivariate_normal_cdf(
    h: Float[AnyArray, "*N"], k: Float[AnyArray, "*N"], correlation: Float[AnyArray, "*N"], num_nodes: int = MANY
) -> Float[jax.Array, "*N"]:
    """P(X ≤ h, Y ≤ k) of two standard normal variables with correlation ρ, |ρ| < 1.

        Φ(h) Φ(k) + (1/2π) ∫_0^{asin ρ} exp(-(h² + k² - 2hk sin t) / (2 cos² t)) dt

    (Drezner and Wesolowsky 1990, eq. 3), by Gauss-Legendre quadrature.
    """
    last = (1,) * h.ndim + (num_nodes,)
    nodes, weights = (array.reshape(last) for array in np.polynomial.legendre.leggauss(num_nodes))
    angle = jnp.arcsin(correlation)[..., None]
    t = angle * (nodes + 1) / 2
    h_, k_ = h[..., None], k[..., None]
    integrand = jnp.exp(-(h_**2 + k_**2 - 2 * h_ * k_ * jnp.sin(t)) / (2 * jnp.cos(t) ** 2))
    return ndtr(h) * ndtr(k) + (integrand * weights * angle / 2).sum(-1) / (2 * jnp.pi)


def pair_tables(values: Int[np.ndarray, "J I"]) -> Float[np.ndarray, "I I 2 2"]:
    """Contingency table of each pair of items: at (i, j, u, v) the number of subjects with answers u to i and v to j.

    Args:
        values: responses; subjects with one of the two answers missing do not count for that pair.
    """
    right, wrong = ((values == answer).astype(float) for answer in (1, 0))
    return np.stack(
        [np.stack([wrong.T @ wrong, wrong.T @ right], -1), np.stack([right.T @ wrong, right.T @ right], -1)], -2
    )


def phi(tables: Float[np.ndarray, "*N 2 2"]) -> Float[np.ndarray, "*N"]:
    """Correlations of two binary variables, from contingency tables; 0 where one of them does not vary."""
    n = tables.sum((-2, -1))
    with np.errstate(divide="ignore", invalid="ignore"):  # nobody answered both
        first, second = tables[..., 1, :].sum(-1) / n, tables[..., :, 1].sum(-1) / n
        covariance = tables[..., 1, 1] / n - first * second
    spread = np.sqrt(first * (1 - first) * second * (1 - second))
    return np.divide(covariance, spread, out=np.zeros_like(n, dtype=float), where=spread > 0)


def tetrachoric(values: Int[np.ndarray, "J I"]) -> Float[np.ndarray, "I I"]:
    """Matrix of tetrachoric correlations (Pearson 1900), by maximum likelihood given the margins of each table.

    A table of two by two has as many free cells as there are parameters, one correlation and two thresholds. So the
    maximum is where Φ₂(τ₁, τ₂; ρ) equals the share of subjects with both items wrong. An empty cell counts as
    `CONTINUITY` subjects (Olsson's correction, as in R's psych). The matrix need not be positive semidefinite.

    Args:
        values: responses; each item has right and wrong answers.

    Returns:
        Correlations; NaN for a pair of items that no subject answered both of.
    """
    first, second = np.triu_indices(values.shape[1], 1)
    tables = pair_tables(values)[first, second]
    found = _in_blocks(tables, FEW)
    strong = np.abs(found) > MODERATE
    if strong.any():
        found[strong] = _in_blocks(tables[strong], MANY)
    found[tables.sum(axis=(1, 2)) == 0] = np.nan
    matrix = np.eye(values.shape[1])
    matrix[first, second] = matrix[second, first] = found
    return matrix


def _in_blocks(tables: np.ndarray, num_nodes: int) -> np.ndarray:
    """ρ (K,) of tables (K, 2, 2), in blocks of one shape, so that few programs are compiled."""
    size = min(BLOCK, 2 ** int(np.ceil(np.log2(max(len(tables), 1)))))
    filled = np.concatenate([tables, np.ones((-len(tables) % size, 2, 2))])
    with jax.enable_x64(True):
        found = [np.asarray(_correlations(block, num_nodes)) for block in filled.reshape(-1, size, 2, 2)]
    return np.concatenate([np.zeros(0), *found])[: len(tables)]


@functools.partial(jax.jit, static_argnums=1)
def _correlations(tables: jax.Array, num_nodes: int) -> jax.Array:
    """ρ (K,) of tables (K, 2, 2), by safeguarded Newton steps: the derivative of the probability is the density."""
    tables = jnp.where(tables == 0, CONTINUITY, tables)
    shares = tables / tables.sum((1, 2), keepdims=True)
    wanted, h, k = shares[:, 0, 0], ndtri(shares[:, 0].sum(1)), ndtri(shares[:, :, 0].sum(1))

    def density(rho: jax.Array) -> jax.Array:
        gap = 1 - rho**2
        return jnp.exp(-(h**2 + k**2 - 2 * rho * h * k) / (2 * gap)) / (2 * jnp.pi * jnp.sqrt(gap))

    def step(carry: Carry) -> Carry:
        rho, low, high, _, count = carry
        excess = bivariate_normal_cdf(h, k, rho, num_nodes) - wanted
        low, high = jnp.where(excess < 0, rho, low), jnp.where(excess < 0, high, rho)
        newton = rho - excess / jnp.maximum(density(rho), 1e-300)
        following = jnp.where((newton > low) & (newton < high), newton, (low + high) / 2)
        return following, low, high, jnp.abs(following - rho).max(), count + 1

    def moving(carry: Carry) -> jax.Array:
        return (carry[3] > TOLERANCE) & (carry[4] < MAX_STEPS)

    root_odds = jnp.sqrt(tables[:, 0, 0] * tables[:, 1, 1] / (tables[:, 0, 1] * tables[:, 1, 0]))
    near = jnp.clip(jnp.cos(jnp.pi / (1 + root_odds)), -0.98, 0.98)  # an approximation (Pearson's Q3)
    low = jnp.full_like(h, -LARGEST)
    start = (near, low, -low, jnp.asarray(1.0, h.dtype), jnp.zeros((), jnp.int32))
    return jax.lax.while_loop(moving, step, start)[0]


def positive_definite(matrix: Float[np.ndarray, "I I"]) -> Float[np.ndarray, "I I"]:
    """A positive definite correlation matrix close to a given one, which is returned unchanged if it is such.

    Eigenvalues below 1e-12 become 1e-10, and the diagonal is scaled back to 1 (`cor.smooth` of R's psych, Revelle).
    """
    eigenvalues, vectors = np.linalg.eigh(matrix)
    if eigenvalues[0] >= 1e-12:
        return matrix
    raised = (vectors * np.where(eigenvalues < 1e-12, 1e-10, eigenvalues)) @ vectors.T
    scale = np.sqrt(np.diag(raised))
    return raised / scale[:, None] / scale[None, :]
