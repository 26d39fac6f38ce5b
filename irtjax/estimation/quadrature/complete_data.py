"""The information of complete data, abilities included: answers at nodes, as many as the posteriors expect."""

from typing import Any, NamedTuple

import numpy as np

from irtjax.estimation.problem import as_array
from irtjax.integration.e_step import Expected
from irtjax.integration.encode import AnyAnswers
from irtjax.integration.nodes import moments, place_nodes
from irtjax.integration.sparse_grid import SparseGrid
from irtjax.item_models.protocol import Items
from irtjax.populations.kinds import Populations
from irtjax.populations.normal import Population


class Part(NamedTuple):
    """Some of the subjects at the estimate: their answers, their posteriors with weights, and where these are."""

    answers: AnyAnswers
    expected: Expected
    grid: SparseGrid


class Complete(NamedTuple):
    """Complete data: answers at nodes, as many as the posterior expects.

    Parameters are slopes, intercept, L others, and means and log standard deviations (D each) of the population: P in
    all, 3 D + 1 + L.

    Attributes:
        mean: (Q, M) E T of one trial.
        by: (Q, M, P) ∂η.
        information: (I, P, P).
    """

    mean: np.ndarray
    by: np.ndarray
    information: np.ndarray


def complete_at(items: Items, population: Populations, part: Part) -> Complete:
    """Complete data of some subjects."""
    model, expected, grid = part.answers.model, part.expected, part.grid
    nodes, slope = place_nodes(population, grid.nodes), np.asarray(items.slope)
    dims = slope.shape[1]
    distance = nodes - np.asarray(population.mean)[None, :] if isinstance(population, Population) else nodes
    first, num_others = dims + 1, as_array(items).shape[1] - dims - 1
    found = moments(model, items, nodes, asymptotes=items.has_others())
    observed = np.broadcast_to(expected.observed, (len(nodes), len(slope)))
    residual = found.residual(expected.statistics, observed)
    coordinate = _derivatives_of_predictor(slope, nodes, distance, num_others)
    of_columns = np.repeat(coordinate, found.per_item, axis=1)
    by_x, *by_others = found.derivatives()
    by: np.ndarray = of_columns.copy() if by_x is None else np.asarray(by_x)[:, :, None] * of_columns
    for k, one in enumerate(by_others, first):
        by[:, :, k] = one
    weights: list[list[Any]] = found.weights(observed)
    if by_x is not None:
        curvature = np.asarray(model.curvature(items, nodes, residual))
        weights = [[one - curvature[:, :, k, n] for n, one in enumerate(row)] for k, row in enumerate(weights)]
    information = _of_parameters(weights, coordinate, first)
    information -= _of_the_population(np.asarray(found.scores(residual)[0]), slope, distance, num_others)
    return Complete(np.asarray(found.mean), by, information)


def _of_parameters(weights: list[list[Any]], coordinate: np.ndarray, first: int) -> np.ndarray:
    """Sums (I, P, P) over nodes of weights (Q, I) of pairs of predictor and others, `first` of which has that place."""
    (of_x, *_), *rows = weights
    information = np.einsum("qik,qil->ikl", of_x[:, :, None] * coordinate, coordinate)
    for k, (cross, *own) in enumerate(rows, first):
        mixed = np.einsum("qi,qik->ik", cross, coordinate)
        information[:, k] += mixed
        information[:, :, k] += mixed
        for n, one in enumerate(own, first):
            total = one.sum(axis=0)
            information[:, k, n] += total
            if n < k:
                information[:, n, k] += total
    return information


def _derivatives_of_predictor(
    slope: np.ndarray, nodes: np.ndarray, distance: np.ndarray, num_others: int
) -> np.ndarray:
    """Derivatives (Q, I, P) of slope·θ + intercept in all parameters; 0 for the others."""
    num_nodes, dims = nodes.shape
    by_parameter = np.zeros((num_nodes, len(slope), 3 * dims + 1 + num_others))
    by_parameter[:, :, :dims], by_parameter[:, :, dims] = nodes[:, None, :], 1
    # a node is mean + sd · z, and its derivative in log sd the distance from the mean
    by_parameter[:, :, -2 * dims : -dims] = slope[None]
    by_parameter[:, :, -dims:] = slope[None] * distance[:, None, :]
    return by_parameter


def _of_the_population(residual: np.ndarray, slope: np.ndarray, distance: np.ndarray, num_others: int) -> np.ndarray:
    """Sums (I, P, P) of residuals (Q, I), in the predictor, times its second derivatives.

    It is linear in all but mean and log sd of the population, which multiply the slopes.
    """
    dims = slope.shape[1]
    mean, log_sd = dims + 1 + num_others, 2 * dims + 1 + num_others
    sums: np.ndarray = np.zeros((len(slope), *2 * (log_sd + dims,)))
    of_mean, of_log_sd = residual.sum(axis=0), residual.T @ distance
    for k in range(dims):
        for column, value in ((mean + k, of_mean), (log_sd + k, of_log_sd[:, k])):
            sums[:, k, column] += value
            sums[:, column, k] += value
        sums[:, log_sd + k, log_sd + k] += slope[:, k] * of_log_sd[:, k]
    return sums
