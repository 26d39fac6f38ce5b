"""Posteriors of ability over nodes, and what the items need to know of them.

Subjects are taken in blocks, so that neither their responses as numbers nor their posteriors are ever all in memory.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax import processes
from irtjax.integration import sparse_e_step
from irtjax.integration.curves import Curves
from irtjax.integration.encode import AnyAnswers
from irtjax.integration.nodes import Answers, natural, place_nodes
from irtjax.integration.sparse_answers import SparseAnswers
from irtjax.integration.sparse_grid import LEAST_SHARE, TILE, SparseGrid, in_blocks
from irtjax.item_models.protocol import Items
from irtjax.kernels.loops import added, at_once, mapped
from irtjax.populations.kinds import Populations
from irtjax.populations.latent_regression import LatentRegression
from irtjax.types import AnyArray, Float

MANY = 256  # subjects that are taken at once where each node costs much
BLOCK_WEIGHTS = 2**19  # posteriors over nodes that are held at a time: 4 MB


class Expected(NamedTuple):
    """What the subjects' answers say of their abilities, and the posteriors of the items.

    Attributes:
        statistics: (R, M) expected at each node, sums over subjects; of right/wrong items numbers of right answers.
        observed: (R, I) expected answers at each node, or (R, 1) where all were observed once.
        log_likelihoods: (J,) of each subject's answers, in nats.
        moments: (J, 2 D) means of the posteriors, and of squares.
        boundary_mass: shares of all posteriors in tiles at the rim of those they are looked for in.
        weights: (N, B, S) posterior of the subjects of each block over the places of its tile; None unless asked for.
    """

    statistics: Float[np.ndarray, "R M"]
    observed: Float[np.ndarray, "R I"]
    log_likelihoods: Float[np.ndarray, " J"]
    moments: Float[np.ndarray, "J two_D"]
    boundary_mass: float
    weights: Any

    @property
    def mean(self) -> Float[np.ndarray, "J D"]:
        """Of the posteriors."""
        return np.split(self.moments, 2, axis=1)[0]

    @property
    def sd(self) -> Float[np.ndarray, "J D"]:
        """Standard deviations of the posteriors."""
        mean, square = np.split(self.moments, 2, axis=1)
        return np.sqrt(np.maximum(square - mean**2, 0))


def e_step(
    items: Items,
    population: Populations,
    answers: AnyAnswers,
    grid: SparseGrid,
    *,
    weights: bool = False,
) -> Expected:
    """Posteriors over the nodes, and what the items need to know of the subjects (Bock and Aitkin 1981).

    Sums over subjects are over those of all processes. What tiles leave out of a likelihood only makes it smaller.

    Args:
        items: of I items.
        population: that the nodes stand for.
        answers: of J subjects.
        grid: the nodes, and where subjects may be.
        weights: whether the posteriors themselves are wanted.
    """
    nodes = place_nodes(population, grid.nodes)
    eta, log_normalizer = (grid.in_tiles(np.asarray(leaf)) for leaf in natural(answers.model, items, nodes))
    log_weights = grid.in_tiles(population.log_weights(*grid.nodes), -np.inf)
    powers = grid.in_tiles(np.concatenate([nodes, nodes**2], axis=1))
    curves = Curves(eta, log_normalizer, log_weights, powers)
    boundary_mass: AnyArray | float = 0.0
    if isinstance(answers, SparseAnswers):
        sums, log_likelihoods, moments, kept, boundary_mass = _by_the_answer(curves, answers, grid, weights)
    elif grid.rows is None:
        sums, log_likelihoods, moments, kept = _everywhere(curves, answers, _block(answers, grid), weights)
    else:
        sums, log_likelihoods, moments, kept, boundary_mass = _in_tiles(curves, answers, grid.rows, grid.tile, grid.rim)
    sums = [grid.out_of_tiles(np.asarray(leaf)) for leaf in sums]
    statistics, observed, boundary_mass = processes.total([*sums, boundary_mass])
    log_likelihoods = np.asarray(log_likelihoods)
    if isinstance(population, LatentRegression):
        log_likelihoods = log_likelihoods + population.constants(np.asarray(answers.predictors))
    of_subjects = log_likelihoods, np.asarray(moments)
    return Expected(statistics, observed, *of_subjects, float(boundary_mass), kept if weights else None)


def condensed(found: Expected, grid: SparseGrid) -> tuple[Expected, SparseGrid]:
    """The same posteriors in the fewest tiles, for sums that cost much at each node."""
    num_subjects, (num_nodes, dims) = len(found.log_likelihoods), grid.nodes.nodes.shape
    weights, tile = np.asarray(found.weights), grid.tile
    rows = np.arange(num_subjects)[None] if grid.rows is None else grid.rows
    if grid.rows is None and dims == 1:
        num_tiles = -(-num_nodes // TILE)
        padded = np.pad(weights[0], ((0, 0), (0, num_tiles * TILE - num_nodes)))
        weights = np.moveaxis(padded.reshape(num_subjects, num_tiles, TILE), 1, 0)
        rows, tile = np.tile(rows, (num_tiles, 1)), np.arange(num_tiles)
        grid = grid._replace(shape=(num_tiles, TILE), place=np.arange(num_nodes))
    kept = weights.sum(axis=2) > LEAST_SHARE
    tiles, shape, at = in_blocks(np.broadcast_to(tile[:, None], rows.shape)[kept], MANY)
    subjects, dense = np.full(shape, num_subjects), np.zeros((*shape, weights.shape[2]))
    subjects.ravel()[at] = rows[kept]
    dense.reshape(-1, weights.shape[2])[at] = weights[kept]
    return found._replace(weights=dense), grid._replace(rows=subjects, tile=tiles, rim=None)


def _by_the_answer(curves: Curves, answers: SparseAnswers, grid: SparseGrid, keep: bool) -> tuple[Any, ...]:
    """As `e_step`, of sparse responses."""
    if grid.rows is not None:
        assert grid.rim is not None
        *sums, log_likelihoods, moments, kept, boundary_mass = sparse_e_step.in_tiles(
            curves, answers, grid.rows, grid.tile, grid.rim
        )
        return sums, log_likelihoods, moments, kept, boundary_mass
    *sums, log_likelihoods, moments, kept = sparse_e_step.everywhere(curves.tile(0), answers, keep)
    return [leaf[None] for leaf in sums], log_likelihoods, moments, None if kept is None else kept[None], 0.0


def _block(answers: Answers, grid: SparseGrid) -> int:
    """Subjects that are taken at once on all nodes: as many in each block, so that padding costs nothing."""
    each = len(grid.nodes.nodes)
    most = at_once(max(64, BLOCK_WEIGHTS // each), each + answers.num_items)
    return -(-answers.num_subjects // -(-answers.num_subjects // most))


def _everywhere(curves: Curves, answers: Answers, block: int, keep: bool) -> tuple[Any, ...]:
    """As `e_step`, where every subject may be at every node: one tile, and block after block of subjects."""
    num_subjects, width = answers.num_subjects, 1 if answers.complete and answers.trials is None else answers.num_items
    sums = [np.zeros(curves.eta.shape[1:]), np.zeros((curves.eta.shape[1], width))]
    curves, of_blocks = curves.tile(0), []
    for begin in range(0, num_subjects, block):
        sums, of_block = _add_block(sums, curves, answers, begin, block, keep)
        new = min(block, num_subjects - begin)
        of_blocks.append(jax.tree.map(lambda leaf, new=new: np.asarray(leaf)[-new:], of_block))
    log_likelihoods, moments, *weights = map(np.concatenate, zip(*of_blocks, strict=True))
    return [np.asarray(leaf)[None] for leaf in sums], log_likelihoods, moments, weights[0][None] if keep else None


@functools.partial(jax.jit, static_argnums=(4, 5), donate_argnums=0)
def _add_block(
    sums: list[AnyArray], curves: Curves, answers: Answers, begin: AnyArray | int, size: int, keep: bool
) -> tuple[list[AnyArray], tuple[AnyArray, ...]]:
    """Adds what a block of subjects expects; the last block reaches back to subjects that others have had."""
    start = jnp.minimum(begin, answers.num_subjects - size)
    some = jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, start, size), answers)
    joint = curves.joint(some)
    largest = joint.max(axis=1)
    weights = jnp.exp(joint - largest[:, None])
    total = weights.sum(axis=1)
    new = start + jnp.arange(size) >= begin
    weights *= jnp.where(new, 1 / total, 0.0)[:, None]
    of_subjects = largest + jnp.log(total), weights @ curves.powers
    sums = jax.tree.map(jnp.add, sums, list(some.expected(weights)))
    return sums, (*of_subjects, weights) if keep else of_subjects


@jax.jit
def _in_tiles(curves: Curves, answers: Answers, rows: jax.Array, tile: jax.Array, rim: jax.Array) -> tuple[Any, ...]:
    """As `e_step`, in blocks of subjects that may be in a tile."""
    num_subjects = answers.num_subjects

    each = rows.shape[1] * max(curves.eta.shape[1:])  # numbers that a block takes

    def joint(at: tuple[jax.Array, jax.Array]) -> AnyArray:
        rows, tile = at
        return curves.tile(tile).joint(answers.rows(rows))

    values = mapped(joint, (rows, tile), each)
    flat, bins = rows.ravel(), num_subjects + 1  # the last of which is for places without a subject
    largest = jax.ops.segment_max(values.max(axis=2).ravel(), flat, bins)
    weights = jnp.exp(values - largest[rows][:, :, None])
    parts = weights.sum(axis=2)
    total = jax.ops.segment_sum(parts.ravel(), flat, bins)
    share = jnp.where(rows < num_subjects, 1 / total[rows], 0.0)
    weights *= share[:, :, None]

    def part(block: Any) -> tuple[Any, AnyArray]:
        weights, rows, tile = block
        return list(answers.rows(rows).expected(weights)), weights @ curves.powers[tile]

    def add(sums: Any, block: Any, found: Any) -> Any:
        (*counts, moments), (_, rows, tile), (more, of_subjects) = sums, block, found
        counts = jax.tree.map(lambda sums, one: sums.at[tile].add(one), counts, more)
        return (*counts, moments.at[rows].add(of_subjects, mode="drop"))

    shape = curves.log_weights.shape[:2]
    width = 1 if answers.complete and answers.trials is None else answers.num_items
    begun = (
        jnp.zeros_like(curves.eta),
        jnp.zeros((*shape, width), curves.eta.dtype),
        jnp.zeros((num_subjects, curves.powers.shape[2]), curves.eta.dtype),
    )
    *sums, moments = added(part, add, begun, (weights, rows, tile), each)
    log_likelihoods = (largest + jnp.log(total))[:num_subjects]
    return list(sums), log_likelihoods, moments, weights, jnp.where(rim, parts * share, 0.0).sum()
