"""Which nodes abilities are integrated on, and whether they are fine enough.

Two rules: a grid that all subjects share (`SharedNodes`), in up to three dimensions, and nodes of each subject's own
(`ImportanceNodes`), in more.
"""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np

from irtjax import processes
from irtjax.integration.e_step import e_step
from irtjax.integration.importance_nodes import importance_nodes
from irtjax.integration.nodes import Answers
from irtjax.integration.sparse_grid import TOGETHER, SparseGrid, active_tiles, everywhere, levels
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.quadrature import Quadrature, nodes_per_dimension, rectangular, spacing, steepest
from irtjax.populations.normal import Population
from irtjax.types import Float

MOST_NODES = 1000  # per dimension
FEW_NODES = 300  # in all dimensions, at which all subjects are looked for
WORTH = 0.5  # of all nodes, from which on tiles are not worth it
MOST_DERIVATIVES = 2**27  # of curves at nodes: 1 GB
MOST_OF_EACH = 12_000  # of all nodes, that one subject is looked for at
MOST_WEIGHTS = 2**26  # of all subjects at these: 0.5 GB
OWN_STEEPEST = 10.0  # the slope at which an item tells own nodes no more than a step
MOST_CURVES = 2**25  # of own nodes of all subjects: 0.25 GB for each of several arrays
FEWEST_OWN, MOST_TO_START, MOST_OWN = 64, 256, 1024  # own nodes of a subject


class Tolerance(NamedTuple):
    """By how much finer nodes may change log-likelihoods, in nats.

    Attributes:
        mean: that of all subjects, for each of them.
        of_each: that of one subject, on average: errors of opposite sign are there to be exploited.
    """

    mean: float
    of_each: float


class Refinement(NamedTuple):
    """What finer nodes would change.

    Attributes:
        change: (J,) of the log-likelihood of each subject, in nats.
        affordable: whether a fit can be made on them.
        log_likelihoods: (J,) by them.
    """

    change: Float[np.ndarray, " J"]
    affordable: bool
    log_likelihoods: Float[np.ndarray, " J"]


@dataclasses.dataclass(frozen=True)
class SharedNodes:
    """A grid in [-6, 6] standard deviations of the population, `number` of nodes in each of `dims` dimensions.

    Where there are many, each subject is looked for at a few of them only (`sparse_grid`).
    """

    number: int
    dims: int
    tolerance = Tolerance(1e-5, 5e-4)
    moves_with_posterior = False

    @property
    def steepest(self) -> float:
        """The slope that they can tell from a step."""
        return steepest(spacing(self.number))

    @property
    def weights_of_finer(self) -> int:
        """Nodes of the next rule for each of these."""
        return 2**self.dims

    def finer(self) -> "SharedNodes":
        """Nodes of half the spacing."""
        return dataclasses.replace(self, number=2 * self.number - 1)

    def lay_out(self, items: ItemParameters, population: Population, answers: Answers) -> SparseGrid:
        """Where the subjects may be."""
        total = self.number**self.dims
        if total > FEW_NODES:
            *_, level = levels(items, population, answers, self.number)
            found = active_tiles(level)
            # a block costs what a full one does
            cost, of_all = processes.total([len(found.tile) * TOGETHER * found.shape[1], answers.num_subjects * total])
            if cost < WORTH * of_all:
                return found
        return everywhere(_grid(self.number, self.dims))

    def compare(self, items: ItemParameters, population: Population, answers: Answers, num_subjects: int) -> Refinement:
        """These nodes with nodes of half the spacing."""
        finer, coarsest = self.finer().number, min(self.number, nodes_per_dimension(self.dims))
        *_, coarse, fine = levels(items, population, answers, finer, coarsest)
        change = fine.log_likelihoods - coarse.log_likelihoods
        size, num_items = fine.grid.side**self.dims, answers.num_items
        of_each = len(fine.tile) / len(change) * size
        derivatives = len(np.unique(fine.tile)) * size * num_items * (3 * self.dims + 3)
        affordable = (
            finer <= MOST_NODES
            and of_each <= MOST_OF_EACH
            and of_each * num_subjects <= MOST_WEIGHTS
            and derivatives <= MOST_DERIVATIVES
        )
        return Refinement(change, affordable, fine.log_likelihoods)

    def summary(self, population: Population) -> dict[str, object]:
        """Entries of `fit.json`."""
        return {
            "posteriors": "fixed nodes",
            "nodes": self.number**self.dims,
            "node_spacing": spacing(self.number) * float(np.max(population.sd)),
        }


@dataclasses.dataclass(frozen=True)
class ImportanceNodes:
    """So many nodes around each subject's posterior (`importance_nodes`)."""

    number: int
    tolerance = Tolerance(2e-3, 2e-2)
    moves_with_posterior = (
        True  # they are laid anew for the last phase, and once: the likelihood depends on where a little
    )
    steepest = OWN_STEEPEST
    weights_of_finer = 2

    def finer(self) -> "ImportanceNodes":
        """Twice as many."""
        return ImportanceNodes(2 * self.number)

    def lay_out(self, items: ItemParameters, population: Population, answers: Answers) -> SparseGrid:
        """A window for each subject."""
        return importance_nodes(items, answers, self.number)

    def compare(self, items: ItemParameters, population: Population, answers: Answers, num_subjects: int) -> Refinement:
        """These nodes with twice as many."""
        coarse, fine = (
            e_step(items, population, answers, rule.lay_out(items, population, answers)).log_likelihoods
            for rule in (self, self.finer())
        )
        curves = 2 * self.number * num_subjects * answers.num_items
        return Refinement(fine - coarse, 2 * self.number <= MOST_OWN and curves <= MOST_CURVES, fine)

    def summary(self, population: Population) -> dict[str, object]:
        """Entries of `fit.json`."""
        return {"posteriors": "own nodes", "nodes": self.number}


NodeRule = SharedNodes | ImportanceNodes


def importance_nodes_to_start_with(num_subjects: int, num_items: int) -> ImportanceNodes | None:
    """As many as such a test can have; None where these are too few."""
    most = MOST_CURVES // (num_subjects * num_items)
    return ImportanceNodes(min(MOST_TO_START, 1 << (most.bit_length() - 1))) if most >= FEWEST_OWN else None


@functools.cache
def _grid(number: int, dims: int) -> Quadrature:
    return rectangular(number, dims=dims)
