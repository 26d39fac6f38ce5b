"""What observed information has of the populations of several groups, beside that of the items."""

from collections.abc import Callable

import numpy as np

from irtjax import processes
from irtjax.estimation.problem import Layout, Specification, layout
from irtjax.integration.e_step import Expected
from irtjax.integration.encode import AnyAnswers
from irtjax.integration.nodes import place_nodes
from irtjax.integration.sparse_grid import SparseGrid
from irtjax.item_models.protocol import Items
from irtjax.populations.groups import Groups
from irtjax.types import Float, Int


def complete(groups: Groups, expected: Expected, answers: AnyAnswers, places: Layout) -> Float[np.ndarray, "C C"]:
    """Information of complete data about means and log standard deviations of groups: -∂²log N(θ; μ, σ²).

    It is 1/σ², 2 E(θ - μ)/σ² for both, and 2 E(θ - μ)²/σ², summed over the subjects of all processes; among the
    parameters that items share.
    """
    size = places.size - places.num_own
    found = np.zeros((size + 1, size + 1))  # the last of which is for what is fixed
    of_mean, of_sd = (np.where(at >= 0, at - places.num_own, size) for at in (places.mean, places.log_sd))
    member = np.asarray(answers.member)[:, 0]
    number = np.bincount(member, minlength=len(groups.mean))[:, None]
    gradient, _ = groups.score(expected.moments, member)
    by_mean, by_log_sd = gradient.reshape(2, *groups.mean.shape)
    found[of_mean, of_mean] = number / groups.sd**2
    found[of_sd, of_sd] = 2 * (by_log_sd + number)
    found[of_mean, of_sd] = found[of_sd, of_mean] = 2 * by_mean
    return processes.total(found[:-1, :-1])


def with_scores(
    population: Groups, grid: SparseGrid, places: Layout, mean: np.ndarray, common: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """E T and ∂η of the items and, last, of the membership in each group (`score_moments`)."""
    nodes, num_groups = place_nodes(population, grid.nodes), len(population.mean)
    z = (nodes[:, None, :] - population.mean) / population.sd
    of_groups = np.zeros((len(nodes), num_groups, common.shape[2] + 1))  # the last of which is for what is fixed
    of_mean, of_log_sd = (np.where(at >= 0, at - places.num_own, -1) for at in (places.mean, places.log_sd))
    for group in range(num_groups):
        of_groups[:, group, of_mean[group]] = z[:, group] / population.sd[group]
        of_groups[:, group, of_log_sd[group]] = z[:, group] ** 2 - 1
    none = np.zeros((len(nodes), num_groups))
    return np.concatenate([mean, none], axis=1), np.concatenate([common, of_groups[:, :, :-1]], axis=1)


def covariances(
    between: Callable[[Int[np.ndarray, " m"]], Float[np.ndarray, "m m"]], items: Items, specification: Specification
) -> Float[np.ndarray, "M M"]:
    """Covariances of means, log standard deviations and the logarithm of a shared slope (`driver.Estimate`).

    Args:
        between: covariances of parameters at some places.
        items: the estimate.
        specification: what is free.
    """
    places, slope = layout(specification), 1.0
    at = np.append(places.population, -1)
    if specification.has_shared:
        at[-1] = places.items[np.argmax(specification.shared), 0]
        slope = float(np.asarray(items.slope)[np.argmax(specification.shared), 0])
    factor = np.append(np.ones(at.size - 1), 1 / slope)
    result = np.zeros((at.size, at.size))
    result[np.ix_(at >= 0, at >= 0)] = between(at[at >= 0])
    return factor[:, None] * factor[None, :] * result
