"""What observed information has of a latent regression, beside that of the items (as `group_information`).

Up to what is the same at all nodes of a subject, and has no covariance with anything, the score of γ is x θ/σ², and
that of log σ is θ²/σ² - 2 m θ/σ² with m = x'γ: sums over a subject's predictors, and a 1, of functions of the node.
"""

import numpy as np

from irtjax import processes
from irtjax.estimation.problem import Layout
from irtjax.integration.e_step import Expected
from irtjax.integration.encode import AnyAnswers
from irtjax.integration.nodes import place_nodes
from irtjax.integration.sparse_grid import SparseGrid
from irtjax.populations.latent_regression import LatentRegression
from irtjax.types import Float


def complete(
    population: LatentRegression, expected: Expected, answers: AnyAnswers, places: Layout
) -> Float[np.ndarray, "C C"]:
    """Information of complete data about γ and log σ: Σ x x'/σ², 2 Σ x E ε/σ² for both, and 2 Σ E ε²/σ².

    Among the parameters that items share.
    """
    size = places.size - places.num_own
    found = np.zeros((size + 1, size + 1))  # the last of which is for what is fixed
    of_mean, of_sd = (np.where(at >= 0, at - places.num_own, size) for at in (places.mean, places.log_sd))
    x = np.asarray(answers.predictors)
    first, second = np.split(population.of_scale(expected.moments, x), 2, axis=1)
    for dimension, variance in enumerate(population.sd**2):
        at, at_sd = of_mean[:, dimension], of_sd[dimension]
        found[np.ix_(at, at)] = x.T @ x / variance
        found[at, at_sd] = found[at_sd, at] = 2 * x.T @ first[:, dimension] / variance
        found[at_sd, at_sd] = 2 * second[:, dimension].sum() / variance
    return processes.total(found[:-1, :-1])


def with_scores(
    population: LatentRegression, grid: SparseGrid, places: Layout, mean: np.ndarray, common: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """E T and ∂η of the items and, last, of each predictor and of 1 (`score_moments`)."""
    nodes, number = place_nodes(population, grid.nodes), len(population.mean)
    found = np.zeros((len(nodes), number + 1, common.shape[2] + 1))  # the last of which is for what is fixed
    of_mean, of_log_sd = (np.where(at >= 0, at - places.num_own, -1) for at in (places.mean, places.log_sd))
    by_mean = nodes / population.sd**2
    for dimension in range(nodes.shape[1]):
        found[:, range(number), of_mean[:, dimension]] = by_mean[:, dimension, None]
        by_log_sd = -2 * by_mean[:, dimension, None] * population.mean[:, dimension]
        found[:, :number, of_log_sd[dimension]] = by_log_sd
        found[:, number, of_log_sd[dimension]] = by_mean[:, dimension] * nodes[:, dimension]
    none = np.zeros((len(nodes), number + 1))
    return np.concatenate([mean, none], axis=1), np.concatenate([common, found[:, :, :-1]], axis=1)
