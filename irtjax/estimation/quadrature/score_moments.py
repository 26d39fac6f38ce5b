"""Posterior means and covariances of the scores of parameters, over the nodes in each subject's window.

The score of an answer at a node is (T - n E T) ∂η: the residual depends on subject and item, and ∂η on the item alone.
The sum of E_j[s_j s_j'] therefore takes one matrix product per node, of the residuals of all pairs of items.
"""

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.integration.nodes import Answers
from irtjax.integration.sparse_grid import SparseGrid
from irtjax.types import AnyArray

ENTRIES = 2**23  # scores of subjects on items that are held at a time


def covariances(
    weights: AnyArray,
    grid: SparseGrid,
    answers: Answers,
    p: np.ndarray,
    own: np.ndarray,
    items: np.ndarray,
    common: np.ndarray,
) -> np.ndarray:
    """Posterior covariances (P, P) of the scores of all parameters, summed over subjects.

    Args:
        weights: (N, B, S).
        grid: where they are.
        answers: of J subjects.
        p: (R, I).
        own: (R, P - C) score, over the residual of the answer, of each parameter that one item has.
        items: (P - C,) which.
        common: (R, I, C) likewise of the parameters that items have in common.
    """
    p, own, common = (grid.in_tiles(array) for array in (p, own, common))
    mean = _means(weights, grid.rows, grid.tile, answers, p, own, items, common)
    if grid.rows is not None and grid.rows.shape[1] == 1:
        squares = _squares_of_one(weights, grid.rows, grid.tile, answers, p, own, items, common)
        return np.asarray(squares - mean.T @ mean)
    counts = np.bincount(grid.tile[np.any(weights, axis=(1, 2))], minlength=grid.shape[0])
    end = np.cumsum(counts)
    squares = _squares(weights, grid.rows, end - counts, end, answers, p, own, items, common)
    return np.asarray(squares - mean.T @ mean)


@jax.jit
def _squares(
    weights: jax.Array,
    rows: jax.Array,
    begin: jax.Array,
    end: jax.Array,
    answers: Answers,
    p: jax.Array,
    own: jax.Array,
    items: jax.Array,
    common: jax.Array,
) -> jax.Array:
    """Posterior means (P, P) of the products of scores, of blocks from `begin` to `end` of each tile."""
    (num_tiles, size, num_items, num_common), num_own = common.shape, own.shape[2]
    of_residuals = num_items if num_own else 0  # not needed where only parameters in common are free
    columns = jnp.concatenate([items, of_residuals + jnp.arange(num_common)])
    factors = jnp.concatenate([own, jnp.ones((num_tiles, size, num_common))], axis=2)
    both = of_residuals + num_common

    def block(n: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        tile, products = carry
        some = answers.rows(rows[n])
        statistics, observed = some.statistics(), some.observed()

        def node(q: jax.Array, products: jax.Array) -> jax.Array:
            p_here = p[tile, q][None, :]
            root = jnp.sqrt(weights[n, :, q])[:, None]
            residuals = root * (statistics - (p_here if observed is None else observed * p_here))
            of_common = residuals @ common[tile, q]
            scores = jnp.concatenate([residuals, of_common], axis=1) if num_own else of_common
            return products.at[q].add(scores.T @ scores)

        return tile, jax.lax.fori_loop(0, size, node, products)

    def of_tile(tile: jax.Array, squares: jax.Array) -> jax.Array:
        begun = tile, jnp.zeros((size, both, both))
        _, products = jax.lax.fori_loop(begin[tile], end[tile], block, begun)

        def node(q: jax.Array, squares: jax.Array) -> jax.Array:
            factor = factors[tile, q]
            return squares + factor[:, None] * factor[None, :] * products[q][columns][:, columns]

        return jax.lax.fori_loop(0, size, node, squares)

    parameters = num_own + num_common
    return jax.lax.fori_loop(0, num_tiles, of_tile, jnp.zeros((parameters, parameters)))


@jax.jit
def _squares_of_one(
    weights: jax.Array,
    rows: jax.Array,
    tile: jax.Array,
    answers: Answers,
    p: jax.Array,
    own: jax.Array,
    items: jax.Array,
    common: jax.Array,
) -> jax.Array:
    """The same where every block has one subject: one matrix product for all of its nodes."""

    def block(squares: jax.Array, at: tuple[jax.Array, ...]) -> tuple[jax.Array, None]:
        weights, rows, tile = at
        some = answers.rows(rows)
        statistics, observed = some.statistics(), some.observed()
        mean = p[tile] if observed is None else observed * p[tile]
        residuals = jnp.sqrt(weights[0])[:, None] * (statistics - mean)
        of_common = jnp.einsum("si,sic->sc", residuals, common[tile])
        scores = jnp.concatenate([residuals[:, items] * own[tile], of_common], axis=1)
        return squares + scores.T @ scores, None

    size = own.shape[2] + common.shape[3]
    return jax.lax.scan(block, jnp.zeros((size, size)), (weights, rows, tile))[0]


@jax.jit
def _means(
    weights: jax.Array,
    rows: jax.Array,
    tile: jax.Array,
    answers: Answers,
    p: jax.Array,
    own: jax.Array,
    items: jax.Array,
    common: jax.Array,
) -> jax.Array:
    """Posterior means (J, P) of the scores."""
    num_subjects = answers.num_subjects

    def block(means: jax.Array, at: tuple[jax.Array, ...]) -> tuple[jax.Array, None]:
        weights, rows, tile = at
        some = answers.rows(rows)
        statistics, observed = some.statistics(), some.observed()
        chosen = None if observed is None else observed[:, items]
        parts = [_mean_score(weights, statistics[:, items], chosen, p[tile][:, items], own[tile])]
        for k in range(common.shape[3]):
            score = _mean_score(weights, statistics, observed, p[tile], common[tile, :, :, k])
            parts.append(score.sum(axis=1, keepdims=True))
        return means.at[rows].add(jnp.concatenate(parts, axis=1), mode="drop"), None

    begun = jnp.zeros((num_subjects, own.shape[2] + common.shape[3]))
    return jax.lax.scan(block, begun, (weights, rows, tile))[0]


def _mean_score(
    weights: jax.Array, statistics: AnyArray, observed: AnyArray | None, p: jax.Array, score: jax.Array
) -> AnyArray:
    """Posterior mean (B, N), over S nodes, of the scores (S, N) of one parameter each of N items."""
    expected = weights @ (p * score)
    return statistics * (weights @ score) - (expected if observed is None else observed * expected)


def squared_means(
    weights: AnyArray, grid: SparseGrid, answers: Answers, p: np.ndarray, score: np.ndarray
) -> np.ndarray:
    """Squares (I, K, K) of posterior mean scores (R, I, K), summed over subjects; some items at a time."""
    num_subjects, num_items, size = answers.num_subjects, answers.num_items, score.shape[2]
    p, score = grid.in_tiles(p), grid.in_tiles(score)
    block = min(num_items, max(1, ENTRIES // (num_subjects * size)))
    result = np.empty((num_items, size, size))
    for at in range(0, num_items, block):
        start = min(at, num_items - block)  # blocks of one size, so that one program does
        part = slice(start, start + block)
        result[part] = _squares_of_block(
            weights, grid.rows, grid.tile, answers, p[:, :, part], score[:, :, part], start
        )
    return result


@jax.jit
def _squares_of_block(
    weights: jax.Array,
    rows: jax.Array,
    tile: jax.Array,
    answers: Answers,
    p: jax.Array,
    score: jax.Array,
    start: jax.Array | int,
) -> jax.Array:
    part = jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, start, p.shape[2], axis=-1), answers)
    size = score.shape[3]
    own = score.reshape(*score.shape[:2], -1)  # all parameters of an item, then those of the next
    items = jnp.repeat(jnp.arange(p.shape[2]), size)
    means = _means(weights, rows, tile, part, p, own, items, jnp.zeros((*p.shape, 0)))
    means = means.reshape(len(means), -1, size)
    return jnp.einsum("jik,jil->ikl", means, means)
