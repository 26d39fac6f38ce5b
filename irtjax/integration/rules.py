"""Which way abilities are integrated out: on nodes that subjects share, around each posterior, or by normal posteriors.

Two rules (`node_rule`) lay out nodes: a grid that all subjects share (`SharedNodes`), in up to three dimensions, and
nodes of each subject's own (`importance_nodes.ImportanceNodes`), in more.
"""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np

from irtjax import processes
from irtjax.arguments import whole_number
from irtjax.choices import INTEGRATION as WAYS
from irtjax.errors import InputError
from irtjax.integration.encode import AnyAnswers
from irtjax.integration.importance_nodes import importance_nodes_to_start_with
from irtjax.integration.node_rule import NodeRule, Refinement, Tolerance
from irtjax.integration.sparse_answers import SparseAnswers
from irtjax.integration.sparse_grid import TOGETHER, SparseGrid, active_tiles, everywhere, levels
from irtjax.item_models.protocol import Items
from irtjax.kernels.quadrature import BOUND, Quadrature, nodes_per_dimension, rectangular, spacing, steepest
from irtjax.populations.kinds import Populations
from irtjax.types import Float, Int

MOST_GIVEN = 10**6  # nodes in all dimensions, that a user may ask for
MOST_SHARED = 3  # dimensions in which subjects share nodes
NARROW = 0.1  # expected standard deviation of posteriors, in any dimension, below which they are normal enough

MOST_NODES = 1000  # per dimension
AT_ENDS = 1e-7  # of the posteriors of all subjects, at the outermost nodes; the population has 1e-9 there
ROUNDING = 1e-9
FURTHEST = 100.0  # standard deviations that nodes reach to
FEW_NODES = 300  # in all dimensions, at which all subjects are looked for
WORTH = 0.5  # of all nodes, from which on tiles are not worth it
MOST_DERIVATIVES = 2**27  # of curves at nodes: 1 GB
MOST_OF_EACH = 12_000  # of all nodes, at which one subject's posterior has weight
MOST_WEIGHTS = 2**26  # of all subjects at these: 0.5 GB
TOGETHER_SPARSE = 4096  # subjects of a tile that are taken at once where they answered few items


@dataclasses.dataclass(frozen=True)
class SharedNodes:
    """A grid in [-bound, bound] standard deviations of the population, `number` of nodes in each of `dims` dimensions.

    Where there are many, each subject is integrated only where its posterior has weight (`sparse_grid`).
    """

    number: int
    dims: int
    bound: float = BOUND
    way = "nodes"
    tolerance = Tolerance(1e-5, 5e-4)
    moves_with_posterior = False

    @property
    def steepest(self) -> float:
        """The slope that they can tell from a step."""
        return steepest(spacing(self.number, self.bound))

    @property
    def narrowest(self) -> float:
        """The standard deviation of a group that they tell from none: sums over them are then exact to 1e-8."""
        return spacing(self.number, self.bound)

    @property
    def weights_of_finer(self) -> int:
        """Nodes of the next rule for each of these."""
        return 2**self.dims

    def finer(self) -> "SharedNodes":
        """Nodes of half the spacing."""
        return dataclasses.replace(self, number=2 * self.number - 1)

    def wider(
        self, nodes: Float[np.ndarray, "Q D"], weights: Float[np.ndarray, "Q I"], slack: float
    ) -> "SharedNodes | None":
        """Nodes as far apart, twice as far out, where posteriors come to the ends of these; else None.

        The population has next to nothing there. But where items hardly tell subjects apart, as in a narrow population,
        the answers of one who had all or nothing right may say that the subject is there.
        """
        further = dataclasses.replace(self, number=2 * self.number - 1, bound=2 * self.bound)
        ends = np.any(np.abs(nodes) > self.bound - ROUNDING, axis=1)
        reached = (weights[ends].sum(axis=0) > slack * AT_ENDS * weights.sum(axis=0)).any()
        return further if reached and further.bound <= FURTHEST else None

    @property
    def coarsest(self) -> int:
        """Nodes per dimension that are always all looked at."""
        return round((nodes_per_dimension(self.dims) - 1) * self.bound / BOUND) + 1

    def lay_out(self, items: Items, population: Populations, answers: AnyAnswers) -> SparseGrid:
        """Where the subjects may be."""
        total = self.number**self.dims
        if total > FEW_NODES:
            *_, level = levels(items, population, answers, self.number, self.coarsest, self.bound)
            if isinstance(answers, SparseAnswers):
                found = active_tiles(level, TOGETHER_SPARSE)
                taken = found.num_taken(answers.num_subjects)
            else:
                found = active_tiles(level)
                taken = len(found.tile) * TOGETHER  # a block costs what a full one does
            cost, of_all = processes.total([taken * found.shape[1], answers.num_subjects * total])
            if cost < WORTH * of_all:
                return found
        return everywhere(_grid(self.number, self.bound, self.dims))

    def refined(self, items: Items, population: Populations, answers: AnyAnswers, num_subjects: int) -> Refinement:
        """These nodes with nodes of half the spacing."""
        finer, coarsest = self.finer().number, min(self.number, self.coarsest)
        *_, coarse, fine = levels(items, population, answers, finer, coarsest, self.bound)
        change = fine.log_likelihoods - coarse.log_likelihoods
        size, num_items = fine.grid.side**self.dims, answers.num_items
        of_each = len(fine.tile) / len(change) * size
        derivatives = len(np.unique(fine.tile)) * size * num_items * (3 * self.dims + 3)
        affordable = (
            finer <= MOST_NODES * self.bound / BOUND
            and of_each <= MOST_OF_EACH
            and of_each * num_subjects <= MOST_WEIGHTS
            and derivatives <= MOST_DERIVATIVES
        )
        return Refinement(change, affordable, fine.log_likelihoods)

    def summary(self, population: Populations) -> dict[str, object]:
        """Entries of `fit.json`."""
        return {
            "posteriors": "fixed nodes",
            "nodes": self.number**self.dims,
            "node_spacing": spacing(self.number, self.bound) * float(np.max(population.unit)),
        }


class Totals(NamedTuple):
    """What the choice goes by.

    Attributes:
        right: (I,) right answers to each item.
        observed: (I,) answers.
        num_subjects: J.
    """

    right: Int[np.ndarray, " I"]
    observed: Int[np.ndarray, " I"]
    num_subjects: int

    def expected_width(self, dims: int) -> float:
        """Posterior standard deviation of ability to expect with slopes of 1 and the mean number of responses.

        The items' information is shared by the dimensions.
        """
        p = self.right / self.observed
        return float((1 + (self.observed * p * (1 - p)).sum() / (self.num_subjects * dims)) ** -0.5)


def choose_rule(way: str, num_nodes: int | None, totals: Totals, dims: int) -> NodeRule | None:
    """The nodes to begin with; None for normal posteriors.

    Args:
        way: one of `WAYS`. "auto" takes nodes that subjects share where posteriors are expected to be wide, in up to
            three dimensions, nodes around each posterior in more, if the responses are few enough, and else normal
            posteriors.
        num_nodes: of a grid that subjects share, per dimension; None to choose.
        totals: of the responses.
        dims: D.

    Raises:
        InputError: an unknown way, one that cannot be had, or nodes that do not go with it.
    """
    if way not in WAYS:
        raise InputError(f"unknown `integration` {way!r}, expected one of {', '.join(WAYS)}")
    if num_nodes is not None:
        if way not in ("auto", "nodes"):
            raise InputError(f"`num_nodes` {num_nodes} with `integration` {way!r}: expected 'nodes'")
        most = round(MOST_GIVEN ** (1 / dims))
        if not 3 <= whole_number("num_nodes", num_nodes) <= num_nodes <= most:
            raise InputError(f"`num_nodes` {num_nodes}, expected 3 to {most:,} with `dims` {dims}")
        return SharedNodes(num_nodes, dims)
    width = totals.expected_width(dims)
    if way == "nodes" or (way == "auto" and dims <= MOST_SHARED and width >= NARROW):
        number = nodes_per_dimension(dims)
        # where posteriors are narrower than their distance, more nodes; three dimensions have many already
        return SharedNodes(2 * number - 1 if width < spacing(number) and dims < 3 else number, dims)
    if way == "normal" or width < NARROW:
        return None
    around = importance_nodes_to_start_with(totals.num_subjects, len(totals.right))
    if around is None and way == "around":
        size = f"{totals.num_subjects:,} subjects × {len(totals.right):,} items"
        raise InputError(f"`integration` 'around': too many responses ({size}) for nodes of each subject's own")
    return around


@functools.cache
def _grid(number: int, bound: float, dims: int) -> Quadrature:
    return rectangular(number, bound, dims)
