"""Standard errors: the observed information of the marginal likelihood, inverted.

The posteriors over the nodes give it without automatic differentiation (Louis 1982): it is the information of complete
data, abilities included, less the posterior covariance of their score,

    -∂²/∂φ² Σ_j log L_j = Σ_j E_j[-∂²l_j] - E_j[s_j s_j'] + E_j[s_j] E_j[s_j]',     s_j = ∂l_j/∂φ.

Here is the information of complete data, Σ n ∂η' Cov T ∂η - (T - n E T) ∂²η; `score_moments` has the means and
covariances of scores, (T - n E T) ∂η.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from irtjax import processes
from irtjax.estimation import item_errors
from irtjax.estimation.item_step import priors_of
from irtjax.estimation.problem import Specification, as_array, layout
from irtjax.estimation.quadrature import group_information, latent_regression_information, score_moments
from irtjax.estimation.quadrature.score_moments import Scores
from irtjax.integration.e_step import Expected
from irtjax.integration.encode import AnyAnswers
from irtjax.integration.nodes import moments, place_nodes
from irtjax.integration.sparse_grid import SparseGrid
from irtjax.item_models.protocol import ItemModel, Items
from irtjax.kernels.models import ItemParameters
from irtjax.populations.groups import Groups
from irtjax.populations.kinds import Populations
from irtjax.populations.latent_regression import LatentRegression
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

    answers: AnyAnswers
    expected: Expected
    grid: SparseGrid


@np.errstate(all="ignore")  # an item may have run off to infinity
def of_all_parameters(
    items: Items, population: Populations, parts: Iterable[Part], specification: Specification
) -> Float[np.ndarray, "P P"]:
    """Observed information (P, P) of all free parameters, population and log-prior included, in the order of `Layout`.

    Args:
        items: the estimate.
        population: of the estimate.
        parts: all subjects.
        specification: what is free; priors.
    """
    places = layout(specification)
    several = None if isinstance(population, Population) else population
    of_several: Any = latent_regression_information if isinstance(population, LatentRegression) else group_information
    along = (
        places.population if several is None else np.full(2 * specification.dims, -1)
    )  # what moves the nodes, if any
    index = np.concatenate([places.items, np.tile(along, (len(places.items), 1))], axis=1)
    free: np.ndarray = np.asarray(index >= 0)
    both = free[:, :, None] & free[:, None, :]
    rows, columns = (np.broadcast_to(at, both.shape)[both] for at in (index[:, :, None], index[:, None, :]))
    precision = np.zeros(index.shape)
    precision[:, : specification.free.shape[1]] = priors_of(as_array(items), specification).information
    information = np.zeros((places.size, places.size))
    np.add.at(information, (rows, columns), (precision[:, :, None] * np.eye(index.shape[1]))[both])
    # parameters of one item first, then those that all have in common: a shared slope and the population
    num_own, size = places.num_own, places.size
    chosen, kinds = np.nonzero(free & (index < num_own))
    for answers, expected, grid in parts:
        complete = _complete(answers.model, items, population, expected, grid)
        np.add.at(information, (rows, columns), complete.information[both])
        per_item = complete.mean.shape[1] // len(index)
        statistics = per_item * chosen[:, None] + np.arange(per_item)
        common, of_columns = np.zeros((*complete.mean.shape, size - num_own)), np.repeat(index, per_item, axis=0)
        for at in range(num_own, size):
            common[:, :, at - num_own] = np.where(of_columns[None] == at, complete.by, 0.0).sum(axis=2)
        mean = complete.mean
        if several is not None:
            information += of_several.complete(several, expected, answers, places)
            mean, common = of_several.with_scores(several, grid, places, mean, common)
        scores = Scores(mean, complete.by[:, statistics, kinds[:, None]], statistics, common)
        information -= processes.total(score_moments.covariances(expected.weights, grid, answers, scores))
    return information


class _Complete(NamedTuple):
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


def _complete(
    model: ItemModel, items: Items, population: Populations, expected: Expected, grid: SparseGrid
) -> _Complete:
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
    return _Complete(np.asarray(found.mean), by, information)


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


@np.errstate(all="ignore")
def each_item_covariances(
    items: Items, population: Populations, parts: Iterable[Part], specification: Specification
) -> Float[np.ndarray, "I K K"]:
    """Covariance matrices (I, K, K) of each item by itself; arguments as above.

    They are for tests with too many items to invert a matrix of all parameters. Each item's own block of the observed
    information is inverted, and the error of the scale added, which all items share (`item_errors`). Other shared
    errors are left out: the posterior of an ability depends on all items that the subject answered, whose parameters
    are estimates too. An item whose likelihood has no maximum gets NaN, and the others keep their errors.
    """
    dims, num_parameters = specification.dims, np.asarray(specification.free).shape[1]
    size = num_parameters if items.has_others() else dims + 1
    precision = priors_of(as_array(items), specification).information[:, :size]
    information = np.asarray(precision)[:, :, None] * np.eye(size)
    of_scale, num_subjects = np.zeros(()), 0
    for answers, expected, grid in parts:
        complete = _complete(answers.model, items, population, expected, grid)
        own = complete.by[:, :, :size]
        squared_means = score_moments.squared_means(expected.weights, grid, answers, complete.mean, own)
        information += processes.total(squared_means)
        # what is missing of the information is E s s' less E s E s'
        if isinstance(items, ItemParameters) and answers.trials is None:
            wrong = expected.observed - expected.statistics
            squares = expected.statistics * (1 - complete.mean) ** 2 + wrong * complete.mean**2
            of_answers = np.einsum("qik,qil->ikl", squares[:, :, None] * own, own)
        else:
            of_answers = _squared_scores(complete.mean, own, score_moments.products(expected.weights, grid, answers))
        information += complete.information[:, :size, :size] - of_answers
        of_scale = of_scale + complete.information[:, num_parameters:, num_parameters:]
        of_first = answers.num_subjects if answers.member is None else int((np.asarray(answers.member) == 0).sum())
        num_subjects += int(processes.total(of_first))
    anchor_information, first = None, population.of(0) if isinstance(population, Groups) else population
    if not specification.mean_fixed:
        # given the abilities: what is missing of it is in the items' own errors already
        anchors = ~np.asarray(specification.free)[:, dims]
        about_zero = np.array(
            [[1.0, np.asarray(population.mean)[0] if isinstance(population, Population) else 0.0], [0.0, 1.0]]
        )  # a change of unit, in place of about the mean
        anchor_information = about_zero.T @ of_scale[anchors].sum(axis=0) @ about_zero
    sd = np.asarray(first.sd)
    return item_errors.item_covariances(
        np.asarray(items.slope), information, specification, sd, num_subjects, anchor_information
    )


def _squared_scores(mean: np.ndarray, by: np.ndarray, products: np.ndarray) -> Float[np.ndarray, "I K K"]:
    """E s s', sums over nodes, out of products (Q, I, S + 1, S + 1) of T and n: (T - n E T) is (1, -E T) (T, n)."""
    num_nodes, num_items, size = products.shape[:3]
    of_mean = -mean.reshape(num_nodes, num_items, size - 1, 1)
    residual = np.concatenate([np.broadcast_to(np.eye(size - 1), (*of_mean.shape[:3], size - 1)), of_mean], axis=3)
    squares = residual @ products @ residual.swapaxes(2, 3)
    own = by.reshape(num_nodes, num_items, size - 1, -1)
    return (own.swapaxes(2, 3) @ squares @ own).sum(axis=0)
