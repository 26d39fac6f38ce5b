"""Posteriors of ability over nodes that subjects share, and what the items need to know of them.

Arrays with a row per subject stay on the device, in one compiled function of matrix products.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax import processes
from irtjax.integration.nodes import Answers, curves, place_nodes
from irtjax.integration.sparse_grid import LEAST, TILE, SparseGrid, in_blocks
from irtjax.kernels.models import ItemParameters
from irtjax.populations.normal import Population
from irtjax.types import AnyArray, Float, Int

MANY = 256  # subjects that are taken at once where each node costs much


class NodePosteriors(NamedTuple):
    """What the subjects' answers say of their abilities.

    Attributes:
        weights: (N, B, S) posterior of the subjects of each block over the places of its tile.
        right: (R, I) expected number of right answers at each node.
        observed: (R, I) likewise of answers, or (R, 1) where all were observed.
        log_likelihoods: (J,) of each subject's answers, in nats.
        boundary_mass: shares of all posteriors in tiles at the rim of their grid.
    """

    weights: AnyArray
    right: Float[np.ndarray, "R I"]
    observed: Float[np.ndarray, "R I"]
    log_likelihoods: jax.Array
    boundary_mass: float


def node_posteriors(
    items: ItemParameters, population: Population, answers: Answers, grid: SparseGrid
) -> NodePosteriors:
    """Posteriors over the nodes, and what the items need to know of the subjects (Bock and Aitkin 1981).

    Sums over subjects are over those of all processes. What tiles leave out of a likelihood only makes it smaller.
    """
    p, q = curves(items, place_nodes(population, grid.nodes))
    log_p, log_q = grid.in_tiles(np.log(p)), grid.in_tiles(np.log(q))
    log_weights = grid.in_tiles(grid.nodes.log_weights, -np.inf)
    arguments = log_p, log_q, log_weights, answers
    if grid.rows is None:
        weights, *counts, log_likelihoods = _everywhere(*arguments)
        boundary_mass = 0.0
    else:
        weights, *counts, log_likelihoods, boundary_mass = _in_windows(*arguments, grid.rows, grid.tile, grid.rim)
    counts = [grid.out_of_tiles(np.asarray(leaf)) for leaf in counts]
    right, observed, boundary_mass = processes.total([*counts, boundary_mass])
    return NodePosteriors(weights, right, observed, log_likelihoods, float(boundary_mass))


def moments(
    found: NodePosteriors, population: Population, grid: SparseGrid
) -> tuple[Float[np.ndarray, "J D"], Float[np.ndarray, "J D"]]:
    """Means and standard deviations (J, D) of the posteriors."""
    nodes = place_nodes(population, grid.nodes)
    powers = grid.in_tiles(np.concatenate([nodes, nodes**2], axis=1))
    sums = np.zeros((len(found.log_likelihoods) + 1, powers.shape[2]))
    for weights, rows, tile in zip(np.asarray(found.weights), *_blocks(grid, len(sums) - 1), strict=True):
        np.add.at(sums, rows, weights @ powers[tile])
    mean, square = np.split(sums[:-1], 2, axis=1)
    return mean, np.sqrt(np.maximum(square - mean**2, 0))


def condensed(found: NodePosteriors, grid: SparseGrid) -> tuple[NodePosteriors, SparseGrid]:
    """The same posteriors in the fewest tiles, for sums that cost much at each node."""
    num_subjects, (num_nodes, dims) = len(found.log_likelihoods), grid.nodes.nodes.shape
    weights, (rows, tile) = np.asarray(found.weights), _blocks(grid, num_subjects)
    if grid.rows is None and dims == 1:
        num_tiles = -(-num_nodes // TILE)
        padded = np.pad(weights[0], ((0, 0), (0, num_tiles * TILE - num_nodes)))
        weights = np.moveaxis(padded.reshape(num_subjects, num_tiles, TILE), 1, 0)
        rows, tile = np.tile(rows, (num_tiles, 1)), np.arange(num_tiles)
        grid = grid._replace(shape=(num_tiles, TILE), place=np.arange(num_nodes))
    kept = weights.sum(axis=2) > LEAST
    tiles, shape, at = in_blocks(np.broadcast_to(tile[:, None], rows.shape)[kept], MANY)
    subjects, dense = np.full(shape, num_subjects), np.zeros((*shape, weights.shape[2]))
    subjects.ravel()[at] = rows[kept]
    dense.reshape(-1, weights.shape[2])[at] = weights[kept]
    return found._replace(weights=dense), grid._replace(rows=subjects, tile=tiles, rim=None)


def _blocks(grid: SparseGrid, num_subjects: int) -> tuple[Int[np.ndarray, "N B"], Int[np.ndarray, " N"]]:
    return (np.arange(num_subjects)[None] if grid.rows is None else grid.rows), grid.tile


@jax.jit
def _everywhere(log_p: jax.Array, log_q: jax.Array, log_weights: jax.Array, answers: Answers) -> tuple[AnyArray, ...]:
    """As `node_posteriors`, given logarithms of curves (1, Q, I) and of the weights of nodes (1, Q)."""
    values = _joint(log_p[0], log_q[0], log_weights[0], answers)
    largest = values.max(axis=1)
    weights = jnp.exp(values - largest[:, None])
    total = weights.sum(axis=1)
    weights /= total[:, None]
    right, observed = _counts(weights, answers)
    return weights[None], right[None], observed[None], largest + jnp.log(total)


@jax.jit
def _in_windows(
    log_p: jax.Array,
    log_q: jax.Array,
    log_weights: jax.Array,
    answers: Answers,
    rows: jax.Array,
    tile: jax.Array,
    rim: jax.Array,
) -> tuple[jax.Array, ...]:
    """As `node_posteriors`, given logarithms of curves (T, S, I) and of the weights of nodes (T, S)."""
    num_subjects = answers.right.shape[0]

    def joint(at: tuple[jax.Array, jax.Array]) -> AnyArray:
        rows, tile = at
        return _joint(log_p[tile], log_q[tile], log_weights[tile], answers_of(answers, rows))

    values = jax.lax.map(joint, (rows, tile))
    flat, bins = rows.ravel(), num_subjects + 1  # the last of which is for places without a subject
    largest = jax.ops.segment_max(values.max(axis=2).ravel(), flat, bins)
    weights = jnp.exp(values - largest[rows][:, :, None])
    parts = weights.sum(axis=2)
    total = jax.ops.segment_sum(parts.ravel(), flat, bins)
    share = jnp.where(rows < num_subjects, 1 / total[rows], 0.0)
    weights *= share[:, :, None]

    def add(sums: tuple[jax.Array, jax.Array], at: tuple[jax.Array, ...]) -> tuple[tuple[jax.Array, jax.Array], None]:
        weights, rows, tile = at
        return jax.tree.map(
            lambda sums, one: sums.at[tile].add(one), sums, _counts(weights, answers_of(answers, rows))
        ), None

    begun = jnp.zeros_like(log_p), jnp.zeros_like(log_p[:, :, :1] if answers.observed is None else log_p)
    (right, observed), _ = jax.lax.scan(add, begun, (weights, rows, tile))
    log_likelihoods = (largest + jnp.log(total))[:num_subjects]
    return weights, right, observed, log_likelihoods, jnp.where(rim, parts * share, 0.0).sum()


def _joint(log_p: jax.Array, log_q: jax.Array, log_weights: jax.Array, answers: Answers) -> AnyArray:
    """Logarithm (J, S) of the likelihood times the weight of each node."""
    right, observed = answers
    wrong = log_q.sum(axis=1)[None, :] if observed is None else observed @ log_q.T
    return right @ (log_p - log_q).T + wrong + log_weights[None, :]


def _counts(weights: jax.Array, answers: Answers) -> tuple[AnyArray, AnyArray]:
    """Expected right answers, and answers, at each node."""
    right, observed = answers
    return weights.T @ right, weights.sum(axis=0)[:, None] if observed is None else weights.T @ observed


def answers_of(answers: Answers, rows: jax.Array) -> Answers:
    """Those of some subjects; none, where there is no such subject."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf).at[rows].get(mode="fill", fill_value=0), answers)
