"""Posterior means and covariances of the scores of parameters, over the nodes in each subject's window.

The score of an answer at a node is (T - n E T) ∂η: the residual depends on subject and item, and ∂η on the item alone.
That of a group's population is a function of the node alone, for its members: an item whose residual is 1 or 0.
The sum of E_j[s_j s_j'] therefore takes one matrix product per node, of the residuals of all pairs of items. Where
items have several statistics there are about as many residuals as scores, and the product is of the scores.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.estimation.quadrature import sparse_moments
from irtjax.integration.encode import AnyAnswers
from irtjax.integration.nodes import Answers
from irtjax.integration.sparse_answers import SparseAnswers
from irtjax.integration.sparse_grid import SparseGrid
from irtjax.item_models.protocol import per_statistic
from irtjax.kernels.formulation import for_accelerator
from irtjax.kernels.loops import added, at_once
from irtjax.types import AnyArray

ENTRIES = 2**23  # scores of subjects on items that are held at a time
TOGETHER = 32  # subjects of a tile whose scores are multiplied at once
UNROLLED = 8  # statistics of an item up to which sums over these are written out


class Blocks(NamedTuple):
    """Posterior weights (N, B, S) of blocks of subjects at the places of a tile; subjects (N, B) and tiles (N,)."""

    weights: AnyArray
    rows: AnyArray
    tile: AnyArray

    @staticmethod
    def on(grid: SparseGrid, weights: AnyArray) -> "Blocks":
        """Those of a grid whose subjects are in blocks."""
        assert grid.rows is not None
        return Blocks(weights, grid.rows, grid.tile)


class Scores(NamedTuple):
    """What scores at nodes are made of, for T tiles of S places; or for R nodes, until they are put into tiles.

    Attributes:
        mean: (T, S, M) E T of one trial; (T, S, M + G) where there are groups, 0 of these.
        own: (T, S, N, L) ∂η by each parameter that one item has, of the L statistics of that item.
        columns: (N, L) which these are.
        common: (T, S, M, C) ∂η by the parameters that items have in common.
    """

    mean: AnyArray
    own: AnyArray
    columns: AnyArray
    common: AnyArray

    @property
    def size(self) -> int:
        """P = N + C."""
        return self.own.shape[-2] + self.common.shape[-1]

    def in_tiles(self, grid: SparseGrid) -> "Scores":
        """Those of nodes, in the tiles of their grid."""
        mean, own, common = (grid.in_tiles(np.asarray(leaf)) for leaf in (self.mean, self.own, self.common))
        return Scores(mean, own, self.columns, common)


def covariances(weights: AnyArray, grid: SparseGrid, answers: AnyAnswers, at_nodes: Scores) -> np.ndarray:
    """Posterior covariances (P, P) of the scores of all parameters, summed over subjects.

    Args:
        weights: (N, B, S).
        grid: where they are.
        answers: of J subjects.
        at_nodes: of R nodes.
    """
    if isinstance(answers, SparseAnswers):
        return sparse_moments.covariances(np.asarray(weights[0]), answers, at_nodes)
    scores = at_nodes.in_tiles(grid)
    blocks = Blocks.on(grid, weights)
    mean = np.asarray(_means(blocks, answers, scores))
    # on accelerators products cost little, and starting a kernel for each node of each block much
    if blocks.rows.shape[1] == 1 or scores.own.shape[3] > 1 or for_accelerator():
        return np.asarray(_squares_of_scores(blocks, answers, scores)) - mean.T @ mean
    counts = np.bincount(grid.tile[np.any(weights, axis=(1, 2))], minlength=grid.shape[0])
    end = np.cumsum(counts)
    return np.asarray(_squares(blocks, end - counts, end, answers, scores)) - mean.T @ mean


def _told(some: Answers, size: int) -> tuple[AnyArray, AnyArray | None]:
    """T and n of each of so many statistics, those of populations last; n is None where all are 1."""
    statistics, observed = some.statistics(), some.observed()
    if observed is not None:
        observed = per_statistic(observed, statistics.shape[1] // observed.shape[1])
    more = size - statistics.shape[1]
    of_population = some.of_population(more) if more > 0 else None
    if of_population is not None:
        statistics = jnp.concatenate([statistics, of_population.astype(statistics.dtype)], axis=1)
        if observed is not None:
            observed = jnp.concatenate([observed, jnp.ones((len(observed), more), observed.dtype)], axis=1)
    return statistics, observed


def _residuals(some: Answers, mean: AnyArray) -> AnyArray:
    """T - n E T, where E T (M,) is that of one node, or (S, M) those of all nodes of one subject."""
    statistics, observed = _told(some, mean.shape[-1])
    return statistics - (mean if observed is None else observed * mean)


def _over_statistics(part: Callable[[AnyArray, AnyArray], AnyArray], own: AnyArray, columns: AnyArray) -> AnyArray:
    """Σ_k part(∂η (S, N) by the k-th statistic of each of N parameters, where that is (N,)); L may be hundreds."""
    if own.shape[2] <= UNROLLED:
        return functools.reduce(jnp.add, [part(own[:, :, k], columns[:, k]) for k in range(own.shape[2])])
    of_each = jnp.moveaxis(own, 2, 0), columns.T
    begun = jnp.zeros_like(part(own[:, :, 0], columns[:, 0]))
    return jax.lax.scan(lambda total, at: (total + part(*at), None), begun, of_each)[0]


@jax.jit
def _squares(blocks: Blocks, begin: jax.Array, end: jax.Array, answers: Answers, scores: Scores) -> jax.Array:
    """Posterior means (P, P) of the products of scores, of blocks from `begin` to `end` of each tile; L is 1."""
    (num_tiles, size, num_columns, num_common), num_own = scores.common.shape, scores.own.shape[2]
    of_residuals = num_columns if num_own else 0  # not needed where only parameters in common are free
    # a parameter that items have in common is a column of its own
    columns = jnp.concatenate([scores.columns[:, 0], of_residuals + jnp.arange(num_common)])
    factors = jnp.concatenate([scores.own[..., 0], jnp.ones((num_tiles, size, num_common))], axis=2)
    both = of_residuals + num_common

    def block(n: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        tile, products = carry
        some = answers.rows(blocks.rows[n])

        def node(q: jax.Array, products: jax.Array) -> jax.Array:
            root = jnp.sqrt(blocks.weights[n, :, q])[:, None]
            residuals = root * _residuals(some, scores.mean[tile, q][None, :])
            of_common = residuals @ scores.common[tile, q]
            both = jnp.concatenate([residuals, of_common], axis=1) if num_own else of_common
            return products.at[q].add(both.T @ both)

        return tile, jax.lax.fori_loop(0, size, node, products)

    def of_tile(tile: jax.Array, squares: jax.Array) -> jax.Array:
        begun = tile, jnp.zeros((size, both, both))
        _, products = jax.lax.fori_loop(begin[tile], end[tile], block, begun)

        def node(q: jax.Array, squares: jax.Array) -> jax.Array:
            factor = factors[tile, q]
            return squares + factor[:, None] * factor[None, :] * products[q][columns][:, columns]

        return jax.lax.fori_loop(0, size, node, squares)

    return jax.lax.fori_loop(0, num_tiles, of_tile, jnp.zeros((scores.size, scores.size)))


@jax.jit
def _squares_of_scores(blocks: Blocks, answers: Answers, scores: Scores) -> jax.Array:
    """The same where the scores themselves are no more than the residuals: one matrix product for a block.

    Blocks of one subject, who has nodes of its own; or several statistics of an item, of which the parameters are
    hardly more; or blocks on an accelerator.
    """
    (number, most), size = blocks.rows.shape, blocks.weights.shape[2]
    each = size * (scores.mean.shape[-1] + scores.size)  # numbers that a subject takes
    parts = -(-most // at_once(TOGETHER, each))
    extra = -most % parts

    def scores_of(at: Blocks) -> AnyArray:
        root, (num_rows, num_nodes) = jnp.sqrt(at.weights)[:, :, None], at.weights.shape
        answered = answers.rows(jnp.repeat(at.rows, num_nodes))
        mean = jnp.broadcast_to(scores.mean[at.tile][None], (num_rows, *scores.mean.shape[1:]))
        residuals = _residuals(answered, mean.reshape(num_rows * num_nodes, -1))
        residuals = root * residuals.reshape(mean.shape)
        own = scores.own[at.tile]
        of_own = _over_statistics(lambda by, columns: residuals[:, :, columns] * by[None], own, scores.columns)
        of_common = jnp.einsum("bsi,sic->bsc", residuals, scores.common[at.tile])
        return jnp.concatenate([of_own, of_common], axis=2).reshape(num_rows * num_nodes, -1)

    def add(squares: jax.Array, _: Blocks, both: jax.Array) -> jax.Array:
        both = both.reshape(-1, scores.size)
        return squares + both.T @ both

    rows = jnp.pad(blocks.rows, ((0, 0), (0, extra)), constant_values=answers.num_subjects)
    weights = jnp.pad(blocks.weights, ((0, 0), (0, extra), (0, 0)))
    in_parts = Blocks(
        weights.reshape(number * parts, -1, size), rows.reshape(number * parts, -1), jnp.repeat(blocks.tile, parts)
    )
    return added(scores_of, add, jnp.zeros((scores.size,) * 2), in_parts, in_parts.rows.shape[1] * each)


@jax.jit
def _means(blocks: Blocks, answers: Answers, scores: Scores) -> jax.Array:
    """Posterior means (J, P) of the scores."""

    def part(at: Blocks) -> AnyArray:
        some, mean = answers.rows(at.rows), scores.mean[at.tile]
        statistics, observed = _told(some, mean.shape[-1])

        def mean_score(by: AnyArray, columns: AnyArray | slice) -> AnyArray:
            """Of one parameter each in N statistics, with ∂η (S, N): (B, N)."""
            expected = at.weights @ (mean[:, columns] * by)
            of_mean = expected if observed is None else observed[:, columns] * expected
            return statistics[:, columns] * (at.weights @ by) - of_mean

        own = scores.own[at.tile]
        parts = [_over_statistics(mean_score, own, scores.columns)]
        for k in range(scores.common.shape[3]):
            parts.append(mean_score(scores.common[at.tile, :, :, k], slice(None)).sum(axis=1, keepdims=True))
        return jnp.concatenate(parts, axis=1)

    def add(means: jax.Array, at: Blocks, found: jax.Array) -> jax.Array:
        return means.at[at.rows].add(found, mode="drop")

    each = blocks.rows.shape[1] * (scores.mean.shape[-1] + scores.size)
    return added(part, add, jnp.zeros((answers.num_subjects, scores.size)), blocks, each)


def squared_means(
    weights: AnyArray, grid: SparseGrid, answers: AnyAnswers, mean: np.ndarray, by: np.ndarray
) -> np.ndarray:
    """Squares (I, K, K) of posterior mean scores, ∂η being (R, M, K), summed over subjects; some items at a time."""
    if isinstance(answers, SparseAnswers):
        return sparse_moments.squared_means(np.asarray(weights[0]), answers, mean, by)
    num_subjects, num_items, size = answers.num_subjects, answers.num_items, by.shape[2]
    per_item = mean.shape[1] // num_items
    blocks, mean, by = Blocks.on(grid, weights), grid.in_tiles(mean), grid.in_tiles(by)
    number = min(num_items, max(1, ENTRIES // (num_subjects * size * per_item)))
    result = np.empty((num_items, size, size))
    for at in range(0, num_items, number):
        start = min(at, num_items - number)  # blocks of one size, so that one program does
        part, columns = slice(start, start + number), slice(per_item * start, per_item * (start + number))
        some = answers.of_items(part)
        result[part] = _squares_of_items(blocks, some, mean[:, :, columns], by[:, :, columns])
    return result


@jax.jit
def _squares_of_items(blocks: Blocks, answers: Answers, mean: jax.Array, by: jax.Array) -> jax.Array:
    (num_tiles, num_places, _, size), num_items = by.shape, answers.num_items
    # all parameters of an item in its statistics, then those of the next
    own = by.reshape(num_tiles, num_places, num_items, -1, size).swapaxes(3, 4)
    per_item = own.shape[4]
    columns = jnp.repeat(jnp.arange(num_items * per_item).reshape(num_items, per_item), size, axis=0)
    scores = Scores(mean, own.reshape(num_tiles, num_places, -1, per_item), columns, jnp.zeros((*mean.shape, 0)))
    means = _means(blocks, answers, scores)
    means = means.reshape(len(means), -1, size)
    return jnp.einsum("jik,jil->ikl", means, means)


def products(weights: AnyArray, grid: SparseGrid, answers: AnyAnswers) -> np.ndarray:
    """Products (R, I, S + 1, S + 1) of the statistics and the trials of each item, as the posteriors expect them."""
    if isinstance(answers, SparseAnswers):
        return sparse_moments.products(np.asarray(weights[0]), answers)
    return grid.out_of_tiles(np.asarray(_products(Blocks.on(grid, weights), grid.shape, answers)))


@functools.partial(jax.jit, static_argnums=1)
def _products(blocks: Blocks, shape: tuple[int, int], answers: Answers) -> jax.Array:
    def part(at: Blocks) -> AnyArray:
        some = answers.rows(at.rows)
        observed = some.observed()
        observed = jnp.ones((at.rows.shape[0], answers.num_items)) if observed is None else observed
        statistics = some.statistics().reshape(*observed.shape, -1)
        both = jnp.concatenate([statistics, observed[:, :, None]], axis=2)
        return jnp.einsum("bs,bia,bic->siac", at.weights, both, both)

    def add(sums: jax.Array, at: Blocks, found: jax.Array) -> jax.Array:
        return sums.at[at.tile].add(found)

    size = answers.model.statistics(answers.values[:1]).shape[1] // answers.num_items + 1
    each = answers.num_items * size * max(blocks.rows.shape[1], shape[1] * size)
    return added(part, add, jnp.zeros((*shape, answers.num_items, size, size)), blocks, each)
