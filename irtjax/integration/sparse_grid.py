"""The nodes at which each subject's posterior has any weight.

All subjects share a grid of nodes, so that the items' curves are computed once. On tests of a hundred items a posterior
covers a small part of the grid. The grid is therefore cut into tiles, and each subject is looked for in a few of them.
Which ones is found from coarse grids to fine.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from irtjax import processes
from irtjax.integration.encode import AnyAnswers
from irtjax.integration.nodes import Answers, natural, place_nodes
from irtjax.item_models.protocol import Items
from irtjax.kernels.quadrature import BOUND, Quadrature, nodes_per_dimension
from irtjax.populations.kinds import Populations
from irtjax.types import Bool, Float, Int

TILE = 16  # nodes, about
TOGETHER = 128  # subjects of a tile that are taken at once
LEAST_SHARE = 1e-12  # share of a posterior for which a tile belongs to its window
LEAST_COARSE = 1e-100  # the same on nodes that are coarser than those asked for
NOTABLE = 1e-8  # share with which a tile's neighbours belong to it too
MOST_BOUNDARY_MASS = 1e-6  # of a posterior in tiles at the rim, on average, beyond which tiles are chosen anew
CURVES = 2**21  # probabilities that are computed at once
FEW = 2**22  # statistics of responses, of which the numbers that are multiplied are held: 64 MB at most

BLAS = ThreadpoolController()


class SparseGrid(NamedTuple):
    """Tiles of nodes, and blocks of subjects that may be in a tile.

    Attributes:
        nodes: R nodes (of a standard normal population) that any subject may be at, tile by tile.
        place: (R,) where they are in T tiles of S places, of which some may be empty; None where none is.
        shape: T, S.
        tile: (N,) of each block.
        rows: (N, B) its subjects; J in places without one. None for all of them in one block.
        rim: (N, B) whether the tile has a neighbour that is not in the subject's window. None where no window ends.
    """

    nodes: Quadrature
    place: Int[np.ndarray, " R"] | None
    shape: tuple[int, int]
    tile: Int[np.ndarray, " N"]
    rows: Int[np.ndarray, "N B"] | None = None
    rim: Bool[np.ndarray, "N B"] | None = None

    def num_weights(self, num_subjects: int) -> int:
        """Of the posteriors of so many subjects."""
        return self.shape[1] * (num_subjects if self.rows is None else self.rows.size)

    def num_taken(self, num_subjects: int) -> int:
        """Pairs of a subject and a tile that it may be in."""
        return num_subjects if self.rows is None else int((self.rows < num_subjects).sum())

    def in_tiles(self, array: Float[np.ndarray, "R ..."], empty: float = 0.0) -> Float[np.ndarray, "T S ..."]:
        """An array with a row per node, (T, S, ...)."""
        if self.place is not None:
            array, given = np.full((math.prod(self.shape), *array.shape[1:]), empty), array
            array[self.place] = given
        return array.reshape(*self.shape, *array.shape[1:])

    def out_of_tiles(self, array: Float[np.ndarray, "T S ..."]) -> Float[np.ndarray, "R ..."]:
        """Inverse of `in_tiles`."""
        flat = array.reshape(-1, *array.shape[2:])
        return flat if self.place is None else flat[self.place]


class Level(NamedTuple):
    """Where posteriors are on one grid.

    Attributes:
        grid: the nodes.
        log_likelihoods: (J,) of each subject's answers, in nats; up to the constant of a `LatentRegression`.
        subject: (M,) of each pair of a subject and a tile that its posterior is in.
        tile: (M,) in increasing order.
        share: (M,) of the posterior.
    """

    grid: "Grid"
    log_likelihoods: Float[np.ndarray, " J"]
    subject: Int[np.ndarray, " M"]
    tile: Int[np.ndarray, " M"]
    share: Float[np.ndarray, " M"]


class Grid(NamedTuple):
    """Equally spaced nodes in D dimensions (`quadrature.rectangular`), in square tiles.

    Attributes:
        number: of nodes per dimension.
        side: of a tile, in nodes.
        dims: D.
        bound: where they end, in standard deviations of the population.
    """

    number: int
    side: int
    dims: int
    bound: float = BOUND

    @property
    def across(self) -> tuple[int, ...]:
        """Tiles in each dimension."""
        return (-(-self.number // self.side),) * self.dims

    def inside(self, tiles: Int[np.ndarray, " T"]) -> tuple[Int[np.ndarray, "T S D"], Bool[np.ndarray, "T S"]]:
        """The nodes of tiles, by their index in each dimension, and which of them the grid has."""
        corner = np.stack(np.unravel_index(tiles, self.across), axis=-1) * self.side
        offset = np.stack(np.unravel_index(np.arange(self.side**self.dims), (self.side,) * self.dims), axis=-1)
        index = corner[:, None] + offset[None]
        return index, np.all(index < self.number, axis=2)

    def nodes(self, index: Int[np.ndarray, "R D"]) -> Quadrature:
        """Nodes by their index in each dimension."""
        line = np.linspace(-self.bound, self.bound, self.number)
        log_weight = -0.5 * line**2
        log_weight -= np.logaddexp.reduce(log_weight)
        return Quadrature(line[index], log_weight[index].sum(axis=1))


def everywhere(nodes: Quadrature) -> SparseGrid:
    """One tile of all nodes, with all subjects in it."""
    return SparseGrid(nodes, None, (1, len(nodes.nodes)), np.zeros(1, int))


def levels(
    items: Items,
    population: Populations,
    answers: AnyAnswers,
    number: int,
    coarsest: int | None = None,
    bound: float = BOUND,
) -> Iterator[Level]:
    """Where posteriors are, from coarse nodes to fine: each level halves the spacing of the one before.

    On the coarsest every tile is tried, on the others those within a tile that had a tiny share of the posterior, or
    within a neighbour of it: a posterior that is narrower than the coarse spacing may lie between its nodes.

    Args:
        items: of I items.
        population: that the nodes stand for.
        answers: of J subjects.
        number: nodes per dimension of the last level.
        coarsest: of the first, if halves of the last come near it; the usual number of nodes if None.
        bound: where the nodes end, in standard deviations of the population.
    """
    dims = items.slope.shape[1]
    numbers, coarsest = [number], coarsest or nodes_per_dimension(dims)
    while numbers[-1] > coarsest and numbers[-1] % 2:
        numbers.append((numbers[-1] + 1) // 2)
    answers = answers.on_host()
    num_subjects = answers.num_subjects
    side = max(2, round(TILE ** (1 / dims)))
    subject, places, shares = np.zeros(0, int), np.zeros(0, int), np.zeros(0)
    for number in reversed(numbers):
        grid = Grid(number, side, dims, bound)
        if number == numbers[-1]:
            all_tiles = math.prod(grid.across)
            subject, places = np.tile(np.arange(num_subjects), all_tiles), np.repeat(np.arange(all_tiles), num_subjects)
        else:
            coarse = Grid((number + 1) // 2, side, dims, bound)
            subject, places, _ = _with_neighbours(coarse, num_subjects, subject, places, shares > NOTABLE)
            subject, places = _children(subject, places, coarse, grid)
        parts = _log_likelihoods(items, population, answers, grid, subject, places)
        largest = np.full(num_subjects, -np.inf)
        np.maximum.at(largest, subject, parts)
        whole = largest + np.log(np.bincount(subject, np.exp(parts - largest[subject]), num_subjects))
        shares = np.exp(parts - whole[subject])
        kept = shares > (LEAST_SHARE if number == numbers[0] else LEAST_COARSE)
        subject, places, shares = subject[kept], places[kept], shares[kept]
        yield Level(grid, whole, subject, places, shares)


def active_tiles(level: Level, together: int = TOGETHER) -> SparseGrid:
    """The tiles that posteriors of a level are in, and those beside them; so many subjects of a tile in a block."""
    grid, num_subjects = level.grid, len(level.log_likelihoods)
    notable = level.share > NOTABLE
    subject, all_tiles, member = _with_neighbours(grid, num_subjects, level.subject, level.tile, notable)
    at_rim = np.zeros(len(subject), bool)
    for exists, neighbour in _neighbours(all_tiles, grid.across):
        at_rim |= exists & ~member[subject, neighbour]
    used = np.unique(processes.gather(np.unique(all_tiles)))  # nodes are the same on all processes
    tile = np.searchsorted(used, all_tiles)
    index, inside = grid.inside(used)
    tiles, shape, at = in_blocks(tile, together)
    rows, rim = np.full(shape, num_subjects), np.zeros(shape, bool)
    rows.ravel()[at], rim.ravel()[at] = subject, at_rim
    num_tiles = min(rounded(len(used)), math.prod(grid.across))
    return SparseGrid(grid.nodes(index[inside]), np.flatnonzero(inside), (num_tiles, inside.shape[1]), tiles, rows, rim)


def in_blocks(
    tile: Int[np.ndarray, " M"], together: int
) -> tuple[Int[np.ndarray, " N"], tuple[int, int], Int[np.ndarray, " M"]]:
    """Blocks of pairs that have a tile in common.

    Args:
        tile: of each pair, in increasing order.
        together: pairs in a block at most.

    Returns:
        The tile of each block; numbers N of blocks and B of places in each; and where in these each pair is. Numbers
        are rounded up, so that few programs are compiled.
    """
    used, begin, counts = np.unique(tile, return_index=True, return_counts=True)
    together = min(together, rounded(int(counts.max())))
    blocks = -(-counts // together)
    tiles = np.zeros(rounded(int(blocks.sum())), int)
    tiles[: blocks.sum()] = np.repeat(used, blocks)
    first = np.repeat((np.cumsum(blocks) - blocks) * together - begin, counts)
    return tiles, (len(tiles), together), first + np.arange(len(tile))


def _with_neighbours(
    grid: Grid,
    num_subjects: int,
    subject: Int[np.ndarray, " M"],
    tile: Int[np.ndarray, " M"],
    notable: Bool[np.ndarray, " M"],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of subjects and tiles with the neighbours of notable ones, and whether each pair is among them (J, T)."""
    member = np.zeros((num_subjects, math.prod(grid.across)), bool)
    member[subject, tile] = True
    for exists, neighbour in _neighbours(tile[notable], grid.across):
        member[subject[notable][exists], neighbour[exists]] = True
    tiles, subjects = np.nonzero(member.T)
    return subjects, tiles, member


def _neighbours(
    tiles: Int[np.ndarray, " M"], across: tuple[int, ...]
) -> Iterator[tuple[Bool[np.ndarray, " M"], Int[np.ndarray, " M"]]]:
    """Along each axis, both ways: whether there is a neighbour, and which."""
    index = np.stack(np.unravel_index(tiles, across))
    for axis in range(len(across)):
        for step in (-1, 1):
            beside = index.copy()
            beside[axis] += step
            exists = (beside[axis] >= 0) & (beside[axis] < across[axis])
            yield exists, np.ravel_multi_index(tuple(beside), across, mode="clip")


def _children(
    subject: Int[np.ndarray, " M"], tile: Int[np.ndarray, " M"], coarse: Grid, fine: Grid
) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of subjects and tiles on a grid of half the spacing."""
    index = 2 * np.stack(np.unravel_index(tile, coarse.across))
    found = []
    for offset in np.ndindex((2,) * coarse.dims):
        child = index + np.array(offset)[:, None]
        exists = (child < np.array(fine.across)[:, None]).all(axis=0)
        found.append((subject[exists], np.ravel_multi_index(tuple(child[:, exists]), fine.across)))
    subjects, tiles = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(tiles, kind="stable")
    return subjects[order], tiles[order]


@BLAS.wrap(limits=1, user_api="blas")
def _log_likelihoods(
    items: Items,
    population: Populations,
    answers: AnyAnswers,
    grid: Grid,
    subject: Int[np.ndarray, " M"],
    tile: Int[np.ndarray, " M"],
) -> Float[np.ndarray, " M"]:
    """What each tile adds to a subject's likelihood (M,), in nats.

    The products are small and many. More than one thread would spend its time waiting for the others.
    """
    result = np.empty(len(subject))
    # made for each tile anew, the numbers that are multiplied would take most of the time
    given: Any = answers
    if isinstance(answers, Answers):
        columns = answers.model.statistics(answers.values[:1]).shape[1]
        given = answers.numbers() if answers.num_subjects * columns <= FEW else answers
    used, begin, counts = np.unique(tile, return_index=True, return_counts=True)
    step = max(1, CURVES // (grid.side**grid.dims * answers.num_items))
    for first in range(0, len(used), step):
        part = slice(first, first + step)
        index, inside = grid.inside(used[part])
        nodes = grid.nodes(np.minimum(index, grid.number - 1).reshape(-1, grid.dims))
        found = natural(answers.model, items, place_nodes(population, nodes))
        eta, log_normalizer = (leaf.reshape(*inside.shape, -1) for leaf in found)
        log_weights = population.log_weights(*nodes)
        log_weights = log_weights.reshape(*inside.shape, *log_weights.shape[1:])
        log_weights = np.where(inside.reshape(*inside.shape, *(log_weights.ndim - 2) * (1,)), log_weights, -np.inf)
        of_tiles = eta, log_normalizer, log_weights, begin[part], counts[part]
        for eta_here, normalizer, log_weight, start, count in zip(*of_tiles, strict=True):
            some = given.rows(subject[start : start + count])
            joint = some.log_likelihoods(eta_here, normalizer) + some.weighed(log_weight)
            largest = joint.max(axis=1)
            result[start : start + count] = largest + np.log(np.exp(joint - largest[:, None]).sum(axis=1))
    return result


def rounded(number: int) -> int:
    """At most a quarter more, and one of few numbers."""
    unit = 2 ** max(0, (number - 1).bit_length() - 3)
    return -(-number // unit) * unit
