"""Standard errors: the observed information of the marginal likelihood, inverted.

The posteriors over the nodes give it without automatic differentiation (Louis 1982): it is the information of complete
data, abilities included, less the posterior covariance of their score,

    -∂²/∂φ² Σ_j log L_j = Σ_j E_j[-∂²l_j] - E_j[s_j s_j'] + E_j[s_j] E_j[s_j]',     s_j = ∂l_j/∂φ.

Here is the information of complete data, Σ n Var T ∂η ∂η' - (T - n E T) ∂²η; `score_moments` has the means and
covariances of scores, (T - n E T) ∂η.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from irtjax import processes
from irtjax.estimation import item_errors
from irtjax.estimation.item_step import priors_of
from irtjax.estimation.problem import Specification, as_array, layout
from irtjax.estimation.quadrature import score_moments
from irtjax.estimation.quadrature.score_moments import Scores
from irtjax.integration.e_step import Expected
from irtjax.integration.nodes import Answers, moments, place_nodes
from irtjax.integration.sparse_grid import SparseGrid
from irtjax.item_models.protocol import ItemModel
from irtjax.kernels.models import ItemParameters, has_asymptotes
from irtjax.populations.normal import Population
from irtjax.types import Float

SINGULAR = 1e10  # condition, in units of each parameter's own error, beyond which an inverse is made of rounding errors
LOOSE = 1e6  # times the variance if all others were known, beyond which an estimate is not determined


def covariance(information: Float[np.ndarray, "P P"]) -> Float[np.ndarray, "P P"]:
    """The inverse of an information matrix; NaN where there is none, so that the data do not identify the model."""
    none = np.full_like(information, np.nan)
    if not (np.diag(information) > 0).all():
        return none
    unit = np.sqrt(np.diag(information))
    correlations = information / (unit[:, None] * unit[None, :])
    try:
        inverse = np.linalg.inv(correlations)
    except np.linalg.LinAlgError:
        return none
    inflation, condition = np.diag(inverse), np.linalg.norm(correlations, 1) * np.linalg.norm(inverse, 1)
    if not ((inflation > 0) & (inflation < LOOSE)).all() or condition > SINGULAR:
        return none
    return inverse / (unit[:, None] * unit[None, :])


def of_items(covariance: Float[np.ndarray, "P P"], specification: Specification) -> Float[np.ndarray, "I K K"]:
    """Covariance matrices (I, K, K) of the parameters of each item, out of that of all; 0 where one is held."""
    index = layout(specification).items
    held = index < 0
    blocks = covariance[index[:, :, None], index[:, None, :]]
    return np.where(held[:, :, None] | held[:, None, :], 0.0, blocks)


class Part(NamedTuple):
    """Some of the subjects at the estimate: their answers, their posteriors with weights, and where these are."""

    answers: Answers
    expected: Expected
    grid: SparseGrid


@np.errstate(all="ignore")  # an item may have run off to infinity
def of_all_parameters(
    items: ItemParameters, population: Population, parts: Iterable[Part], specification: Specification
) -> Float[np.ndarray, "P P"]:
    """Observed information (P, P) of all free parameters, population and log-prior included, in the order of `Layout`.

    Args:
        items: the estimate.
        population: of the estimate.
        parts: all subjects.
        specification: what is free; priors.
    """
    places = layout(specification)
    population_places = np.concatenate([places.mean, places.log_sd])
    index = np.concatenate([places.items, np.tile(population_places, (len(places.items), 1))], axis=1)
    free: np.ndarray = np.asarray(index >= 0)
    both = free[:, :, None] & free[:, None, :]
    rows, columns = (np.broadcast_to(at, both.shape)[both] for at in (index[:, :, None], index[:, None, :]))
    precision = np.zeros(index.shape)
    precision[:, : specification.dims + 3] = priors_of(as_array(items), specification).information
    information = np.zeros((places.size, places.size))
    np.add.at(information, (rows, columns), (precision[:, :, None] * np.eye(index.shape[1]))[both])
    # parameters of one item first, then those that all have in common: a shared slope and the population
    num_own, size = places.num_own, places.size
    chosen, kinds = np.nonzero(free & (index < num_own))
    for answers, expected, grid in parts:
        complete = _complete(answers.model, items, population, expected, grid)
        np.add.at(information, (rows, columns), complete.information[both])
        common = np.zeros((*complete.mean.shape, size - num_own))
        for at in range(num_own, size):
            common[:, :, at - num_own] = np.where(index[None] == at, complete.by, 0.0).sum(axis=2)
        own = complete.by[:, chosen, kinds]
        information -= processes.total(
            score_moments.covariances(expected.weights, grid, answers, Scores(complete.mean, own, chosen, common))
        )
    return information


class _Complete(NamedTuple):
    """Complete data: answers at nodes, as many as the posterior expects.

    Parameters are slopes, intercept, lower, upper, and means and log standard deviations (D each) of the population.

    Attributes:
        mean: (Q, I) E T of one trial.
        by: (Q, I, 3 D + 3) ∂η.
        information: (I, 3 D + 3, 3 D + 3).
    """

    mean: np.ndarray
    by: np.ndarray
    information: np.ndarray


def _complete(
    model: ItemModel, items: ItemParameters, population: Population, expected: Expected, grid: SparseGrid
) -> _Complete:
    nodes, slope = place_nodes(population, grid.nodes), np.asarray(items.slope)
    distance, dims = nodes - np.asarray(population.mean)[None, :], slope.shape[1]
    asymptotes = has_asymptotes(items)
    mean, variance, by_x, by_others = moments(model, items, nodes, asymptotes=asymptotes)
    second = np.asarray(model.second_derivatives(items, nodes)) if asymptotes else None
    coordinate = _derivatives_of_predictor(slope, nodes, distance)
    by: np.ndarray = coordinate.copy() if by_x is None else np.asarray(by_x)[:, :, None] * coordinate
    if by_others is not None:
        by[:, :, dims + 1 : dims + 3] = by_others
    statistics, observed = expected.statistics, np.broadcast_to(expected.observed, expected.statistics.shape)
    residual = statistics - observed * mean
    information = _products(observed * variance, by, by)
    information -= _of_the_population(residual if by_x is None else residual * by_x, slope, distance)
    if second is not None:
        information -= _curvature(residual, second, coordinate, dims)
    return _Complete(np.asarray(mean), by, information)


def _derivatives_of_predictor(slope: np.ndarray, nodes: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Derivatives (Q, I, 3 D + 3) of slope·θ + intercept in all parameters; 0 for asymptotes."""
    num_nodes, dims = nodes.shape
    by_parameter = np.zeros((num_nodes, len(slope), 3 * dims + 3))
    by_parameter[:, :, :dims], by_parameter[:, :, dims] = nodes[:, None, :], 1
    # a node is mean + sd · z, and its derivative in log sd the distance from the mean
    by_parameter[:, :, dims + 3 : 2 * dims + 3] = slope[None]
    by_parameter[:, :, 2 * dims + 3 :] = slope[None] * distance[:, None, :]
    return by_parameter


def _curvature(residual: np.ndarray, second: np.ndarray, coordinate: np.ndarray, dims: int) -> np.ndarray:
    """Sums (I, 3 D + 3, 3 D + 3) over nodes of residuals (Q, I) times ∂²η, from that by predictor, lower and upper."""
    weighted = residual[:, :, None, None] * second
    curvature = _products(weighted[:, :, 0, 0], coordinate, coordinate)
    for k in (1, 2):
        cross = np.einsum("qi,qik->ik", weighted[:, :, 0, k], coordinate)
        curvature[:, dims + k] += cross
        curvature[:, :, dims + k] += cross
    curvature[:, dims + 1 : dims + 3, dims + 1 : dims + 3] += weighted[:, :, 1:, 1:].sum(axis=0)
    return curvature


def _of_the_population(residual: np.ndarray, slope: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Sums (I, 3 D + 3, 3 D + 3) of residuals (Q, I), in the predictor, times its second derivatives.

    It is linear in all but mean and log sd of the population, which multiply the slopes.
    """
    dims = slope.shape[1]
    mean, log_sd = dims + 3, 2 * dims + 3
    sums: np.ndarray = np.zeros((len(slope), *2 * (3 * dims + 3,)))
    of_mean, of_log_sd = residual.sum(axis=0), residual.T @ distance
    for k in range(dims):
        for column, value in ((mean + k, of_mean), (log_sd + k, of_log_sd[:, k])):
            sums[:, k, column] += value
            sums[:, column, k] += value
        sums[:, log_sd + k, log_sd + k] += slope[:, k] * of_log_sd[:, k]
    return sums


def _products(weight: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Weighted products (I, K, K) of (Q, I, K), summed over nodes."""
    return np.einsum("qik,qil->ikl", weight[:, :, None] * one, other)


@np.errstate(all="ignore")
def each_item_covariances(
    items: ItemParameters, population: Population, parts: Iterable[Part], specification: Specification
) -> Float[np.ndarray, "I K K"]:
    """Covariance matrices (I, K, K) of each right/wrong item by itself; arguments as above.

    They are for tests with too many items to invert a matrix of all parameters. Each item's own block of the observed
    information is inverted, and the error of the scale added, which all items share (`item_errors`). Other shared
    errors are left out: the posterior of an ability depends on all items that the subject answered, whose parameters
    are estimates too. An item whose likelihood has no maximum gets NaN, and the others keep their errors.
    """
    dims = specification.dims
    size = dims + 3 if has_asymptotes(items) else dims + 1
    precision = priors_of(as_array(items), specification).information[:, :size]
    information = np.asarray(precision)[:, :, None] * np.eye(size)
    of_scale, num_subjects = np.zeros(()), 0
    for answers, expected, grid in parts:
        complete = _complete(answers.model, items, population, expected, grid)
        own = complete.by[:, :, :size]
        squared_means = score_moments.squared_means(expected.weights, grid, answers, complete.mean, own)
        information += processes.total(squared_means)
        # what is missing of the information is E s s' less E s E s', here of each right/wrong answer
        wrong = expected.observed - expected.statistics
        squares = expected.statistics * (1 - complete.mean) ** 2 + wrong * complete.mean**2
        information += complete.information[:, :size, :size] - _products(squares, own, own)
        of_scale = of_scale + complete.information[:, dims + 3 :, dims + 3 :]
        num_subjects += int(processes.total(answers.num_subjects))
    anchor_information = None
    if not specification.mean_fixed:
        # given the abilities: what is missing of it is in the items' own errors already
        anchors = ~np.asarray(specification.free)[:, dims]
        about_zero = np.array(
            [[1.0, np.asarray(population.mean)[0]], [0.0, 1.0]]
        )  # a change of unit, in place of about the mean
        anchor_information = about_zero.T @ of_scale[anchors].sum(axis=0) @ about_zero
    sd = np.asarray(population.sd)
    return item_errors.item_covariances(
        np.asarray(items.slope), information, specification, sd, num_subjects, anchor_information
    )
