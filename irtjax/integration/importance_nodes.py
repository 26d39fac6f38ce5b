"""Nodes of each subject's own, around the mode of its posterior: for four dimensions and more.

A grid that all subjects share has too many nodes there. Each subject gets Sobol' points instead (Jank 2005), moved by a
shift of its own, so that their errors average out over the subjects. Three quarters are taken to a normal distribution
somewhat wider than the posterior, one quarter to the population, and all weighted by the density of the population over
that of this mixture. So no weight is large, wherever the items move the posteriors: with large ones, a fit would find
items that only a few nodes believe in (Hesterberg 1995). The nodes stay where they are within a phase, in which the
objective is a smooth function of the items.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtri

from irtjax.integration.e_step import e_step
from irtjax.integration.encode import AnyAnswers
from irtjax.integration.node_rule import Refinement, Tolerance
from irtjax.integration.nodes import Answers
from irtjax.integration.sparse_grid import SparseGrid
from irtjax.kernels.ability_modes import ability_mode
from irtjax.kernels.elimination import inverse
from irtjax.kernels.loops import SEARCHES, mapped
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.quadrature import Quadrature, sobol
from irtjax.populations.kinds import Populations
from irtjax.populations.normal import STANDARD
from irtjax.types import Float

STRETCH = 1.2  # times the posterior's expected standard deviation: its tails are heavier than normal ones
OF_POPULATION = 0.25  # share of the nodes
TINY = 1e-12  # a quantile that is finite
OWN_NARROWEST = 0.1  # standard deviation of a group, in units of the scale
OWN_STEEPEST = 10.0  # the slope at which an item tells own nodes no more than a step
MOST_CURVES = 2**25  # of own nodes of all subjects: 0.25 GB for each of several arrays
FEWEST_OWN, MOST_TO_START, MOST_OWN = 64, 256, 1024  # own nodes of a subject


@dataclasses.dataclass(frozen=True)
class ImportanceNodes:
    """So many nodes around each subject's posterior (`importance_nodes`)."""

    number: int
    way = "around"
    tolerance = Tolerance(2e-3, 2e-2)
    moves_with_posterior = (
        True  # they are laid anew for the last phase, and once: the likelihood depends on where a little
    )
    steepest = OWN_STEEPEST
    narrowest = OWN_NARROWEST
    weights_of_finer = 2

    def finer(self) -> "ImportanceNodes":
        """Twice as many."""
        return ImportanceNodes(2 * self.number)

    def wider(self, nodes: Float[np.ndarray, "Q D"], weights: Float[np.ndarray, "Q I"], slack: float) -> None:
        """They are where the posteriors are."""

    def lay_out(self, items: ItemParameters, population: Populations, answers: AnyAnswers) -> SparseGrid:
        """A window for each subject."""
        assert isinstance(answers, Answers)  # of sparse ones subjects share nodes
        return importance_nodes(items, answers, self.number)

    def refined(
        self, items: ItemParameters, population: Populations, answers: AnyAnswers, num_subjects: int
    ) -> Refinement:
        """These nodes with twice as many."""
        coarse, fine = (
            e_step(items, population, answers, rule.lay_out(items, population, answers)).log_likelihoods
            for rule in (self, self.finer())
        )
        curves = 2 * self.number * num_subjects * answers.num_items
        return Refinement(fine - coarse, 2 * self.number <= MOST_OWN and curves <= MOST_CURVES, fine)

    def summary(self, population: Populations) -> dict[str, object]:
        """Entries of `fit.json`."""
        return {"posteriors": "own nodes", "nodes": self.number}


def importance_nodes_to_start_with(num_subjects: int, num_items: int) -> ImportanceNodes | None:
    """As many as such a test can have; None where these are too few."""
    most = MOST_CURVES // (num_subjects * num_items)
    return ImportanceNodes(min(MOST_TO_START, 1 << (most.bit_length() - 1))) if most >= FEWEST_OWN else None


def importance_nodes(items: ItemParameters, answers: Answers, number: int) -> SparseGrid:
    """So many nodes for each subject; a window has one subject, and no end.

    Args:
        items: of I items in D dimensions, whose population is standard normal.
        answers: of J subjects.
        number: of nodes of each, a power of 2.
    """
    modes, roots = (np.asarray(leaf) for leaf in _normal_approximations(items, answers))
    num_subjects, dims = modes.shape
    shifts = np.random.default_rng(0).random((num_subjects, 1, dims))
    points = ndtri(np.clip((sobol(number, dims) + shifts) % 1, TINY, 1 - TINY))
    roots = STRETCH * roots
    around = modes[:, None, :] + points @ roots.transpose(0, 2, 1)
    nodes = np.where(np.arange(number)[:, None] < OF_POPULATION * number, points, around)
    log_population = -0.5 * (nodes**2).sum(axis=2)
    distances = (nodes - modes[:, None, :]) @ np.linalg.inv(roots).transpose(0, 2, 1)
    log_own = -0.5 * (distances**2).sum(axis=2) - np.log(np.einsum("jkk->jk", roots)).sum(axis=1)[:, None]
    log_mixture = np.logaddexp(np.log(OF_POPULATION) + log_population, np.log(1 - OF_POPULATION) + log_own)
    log_weights = log_population - log_mixture - np.log(number)
    return _windows(nodes, log_weights)


def part(grid: SparseGrid, rows: slice) -> SparseGrid:
    """The nodes of some of the subjects."""
    nodes, log_weights = grid.nodes
    return _windows(nodes.reshape(*grid.shape, -1)[rows], log_weights.reshape(grid.shape)[rows])


def _windows(nodes: Float[np.ndarray, "J Q D"], log_weights: Float[np.ndarray, "J Q"]) -> SparseGrid:
    subjects = np.arange(len(nodes))
    quadrature = Quadrature(nodes.reshape(-1, nodes.shape[2]), log_weights.ravel())
    return SparseGrid(quadrature, None, log_weights.shape, subjects, subjects[:, None], np.zeros((len(nodes), 1), bool))


@jax.jit
def _normal_approximations(
    items: ItemParameters, answers: Answers
) -> tuple[Float[jax.Array, "J D"], Float[jax.Array, "J D D"]]:
    """Modes of the posteriors of right/wrong answers, and lower roots of the inverse expected information there."""
    items = jax.tree.map(jnp.asarray, items)
    each = items.slope.size
    modes = mapped(lambda row: ability_mode(row, items, STANDARD).ability, answers.values, each, SEARCHES)
    modes = modes.reshape(len(modes), -1)  # of one dimension they are numbers
    found, observed = answers.model.moments(items, modes, asymptotes=True), answers.observed()
    weight = found.weights(jnp.ones(found.mean.shape) if observed is None else observed)[0][0]
    information = jnp.einsum("ji,ik,il->jkl", weight, items.slope, items.slope) + jnp.eye(modes.shape[1])[None]
    return modes, jnp.linalg.cholesky(inverse(information))
