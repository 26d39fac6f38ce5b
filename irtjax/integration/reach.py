"""Nodes that reach as far out as the posteriors of a fit, and stand as close as the narrowest of them asks for."""

import numpy as np

from irtjax.integration.sparse_grid import SparseGrid, everywhere
from irtjax.kernels.quadrature import BOUND, rectangular
from irtjax.populations.normal import Population
from irtjax.types import Float

PER_SD = 3  # nodes in a standard deviation of the narrowest posterior
FEWEST_NODES, MOST_NODES = 241, 4001


def reaching(
    ability: Float[np.ndarray, " J"], ability_se: Float[np.ndarray, " J"], population: Population
) -> SparseGrid:
    """Nodes in one dimension, in standard deviations of the population.

    Args:
        ability: means of the posteriors, which may be far outside of a narrow population.
        ability_se: their standard deviations.
        population: of the subjects.
    """
    mean, sd = (float(np.asarray(x).ravel()[0]) for x in population)
    bound = max(BOUND, float((np.abs(ability - mean) + BOUND * ability_se).max()) / sd)
    narrowest = max(float(ability_se.min()) / sd, 2 * bound * PER_SD / MOST_NODES)
    number = max(FEWEST_NODES, int(np.ceil(2 * bound * PER_SD / narrowest)) // 2 * 2 + 1)
    return everywhere(rectangular(number, bound))
