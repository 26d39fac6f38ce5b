"""Standard errors: the observed information of the marginal likelihood, inverted.

The posteriors over the nodes give it without automatic differentiation (Louis 1982): it is the information of complete
data, abilities included, less the posterior covariance of their score,

    -∂²/∂φ² Σ_j log L_j = Σ_j E_j[-∂²l_j] - E_j[s_j s_j'] + E_j[s_j] E_j[s_j]',     s_j = ∂l_j/∂φ.

Here is the information of complete data; `score_moments` has the means and covariances of scores.
"""

from typing import NamedTuple

import numpy as np

from irtjax import processes
from irtjax.estimation import item_errors
from irtjax.estimation.item_step import priors_of
from irtjax.estimation.problem import Specification, as_array, has_asymptotes, layout
from irtjax.estimation.quadrature import score_moments
from irtjax.integration.node_posteriors import NodePosteriors
from irtjax.integration.nodes import Answers, curves, place_nodes
from irtjax.integration.sparse_grid import SparseGrid
from irtjax.kernels.models import Curve, ItemParameters, curve
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


@np.errstate(all="ignore")  # an item may have run off to infinity
def of_all_parameters(
    items: ItemParameters,
    population: Population,
    answers: Answers,
    expected: NodePosteriors,
    grid: SparseGrid,
    specification: Specification,
) -> Float[np.ndarray, "P P"]:
    """Observed information (P, P) of all free parameters, population and log-prior included, in the order of `Layout`.

    Args:
        items: the estimate.
        population: likewise.
        answers: of all subjects.
        expected: from `node_posteriors` at the estimate.
        grid: where the posteriors are.
        specification: what is free; priors.
    """
    places = layout(specification)
    population_places = np.concatenate([places.mean, places.log_sd])
    index = np.concatenate([places.items, np.tile(population_places, (len(places.items), 1))], axis=1)
    complete = _complete(items, population, expected, grid)
    precision = np.zeros(index.shape)
    precision[:, : specification.dims + 3] = priors_of(as_array(items), specification).information
    complete_of_items = complete.information + precision[:, :, None] * np.eye(index.shape[1])
    size = places.size
    information = np.zeros((size, size))
    free: np.ndarray = np.asarray(index >= 0)
    both = free[:, :, None] & free[:, None, :]
    rows, columns = (np.broadcast_to(at, both.shape)[both] for at in (index[:, :, None], index[:, None, :]))
    np.add.at(information, (rows, columns), complete_of_items[both])
    # parameters of one item first, then those that all have in common: a shared slope and the population
    num_own = places.num_own
    chosen, kinds = np.nonzero(free & (index < num_own))
    common = np.zeros((*complete.p.shape, size - num_own))
    for at in range(num_own, size):
        common[:, :, at - num_own] = np.where(index[None] == at, complete.score, 0.0).sum(axis=2)
    own = complete.score[:, chosen, kinds]
    covariances = score_moments.covariances(expected.weights, grid, answers, complete.p, own, chosen, common)
    return information - processes.total(covariances)


class _Complete(NamedTuple):
    """Complete data: answers at nodes, as many as the posterior expects.

    Parameters are slopes, intercept, lower, upper, and means and log standard deviations (D each) of the population.

    Attributes:
        p: (Q, I) probabilities.
        score: (Q, I, 3 D + 3) derivatives of P over P (1 - P).
        curvature: (I, 3 D + 3, 3 D + 3) sums over answers of (y - P) ∂²P over P (1 - P).
        information: (I, 3 D + 3, 3 D + 3), sums of squared scores less `curvature`.
    """

    p: np.ndarray
    score: np.ndarray
    curvature: np.ndarray
    information: np.ndarray


def _complete(items: ItemParameters, population: Population, expected: NodePosteriors, grid: SparseGrid) -> _Complete:
    nodes = place_nodes(population, grid.nodes)
    distance = nodes - np.asarray(population.mean)[None, :]
    p, q = curves(items, nodes)
    right, wrong = expected.right, expected.observed - expected.right
    parts, by_parameter = curve(items, nodes), _derivatives_of_logit(np.asarray(items.slope), nodes, distance)
    score = _derivatives_of_curve(parts, by_parameter, nodes.shape[1]) / (p * q)[:, :, None]
    curvature = _curvature(np.asarray(items.slope), distance, parts, by_parameter, right / p - wrong / q)
    return _Complete(p, score, curvature, _products(right * q**2 + wrong * p**2, score, score) - curvature)


def _derivatives_of_logit(slope: np.ndarray, nodes: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Derivatives (Q, I, 3 D + 3) of the logits in all parameters; 0 for asymptotes."""
    num_nodes, dims = nodes.shape
    by_parameter = np.zeros((num_nodes, len(slope), 3 * dims + 3))
    by_parameter[:, :, :dims], by_parameter[:, :, dims] = nodes[:, None, :], 1
    # a node is mean + sd · z, and its derivative in log sd the distance from the mean
    by_parameter[:, :, dims + 3 : 2 * dims + 3] = slope[None]
    by_parameter[:, :, 2 * dims + 3 :] = slope[None] * distance[:, None, :]
    return by_parameter


def _derivatives_of_curve(parts: Curve, by_parameter: np.ndarray, dims: int) -> np.ndarray:
    """Derivatives (Q, I, 3 D + 3) of P in all parameters."""
    first = np.asarray(parts.by_logit())[:, :, None] * by_parameter
    first[:, :, dims + 1], first[:, :, dims + 2] = parts.by_lower(), parts.by_upper()
    return first


def _curvature(
    slope: np.ndarray, distance: np.ndarray, parts: Curve, by_parameter: np.ndarray, residual: np.ndarray
) -> np.ndarray:
    """Sums (I, 3 D + 3, 3 D + 3) over nodes of residuals (Q, I), which are y - P over P (1 - P), times ∂²P."""
    dims, by_logit = slope.shape[1], parts.by_logit()
    by_lower, by_upper = parts.by_lower(), parts.by_upper()
    mean, log_sd = dims + 3, 2 * dims + 3
    # ∂²P/∂x² ∂x ∂x', x the logit
    curvature = _products(residual * by_logit * (parts.not_s - parts.s), by_parameter, by_parameter)
    # each asymptote by itself, and with the logit
    for column, twice, with_logit in (
        (dims + 1, by_lower * (parts.not_c - parts.c), -by_lower * parts.s),
        (dims + 2, by_upper * (parts.not_d - parts.d), by_upper * parts.not_s),
    ):
        curvature[:, column, column] = (residual * twice).sum(axis=0)
        cross = np.einsum("qi,qik->ik", residual * with_logit, by_parameter)
        curvature[:, column] += cross
        curvature[:, :, column] += cross
    # ∂P/∂x ∂²x: the logit is linear in all but the population, which multiplies the slopes
    of_mean = (residual * by_logit).sum(axis=0)
    of_log_sd = (residual * by_logit).T @ distance
    for k in range(dims):
        for column, value in ((mean + k, of_mean), (log_sd + k, of_log_sd[:, k])):
            curvature[:, k, column] += value
            curvature[:, column, k] += value
        curvature[:, log_sd + k, log_sd + k] += slope[:, k] * of_log_sd[:, k]
    return curvature


def _products(weight: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Weighted products (I, K, K) of (Q, I, K), summed over nodes."""
    return np.einsum("qik,qil->ikl", weight[:, :, None] * one, other)


@np.errstate(all="ignore")
def each_item_covariances(
    items: ItemParameters,
    population: Population,
    answers: Answers,
    expected: NodePosteriors,
    grid: SparseGrid,
    specification: Specification,
) -> Float[np.ndarray, "I K K"]:
    """Covariance matrices (I, K, K) of each item by itself; arguments as above.

    They are for tests with too many items to invert a matrix of all parameters. Each item's own block of the observed
    information is inverted, and the error of the scale added, which all items share (`item_errors`). Other shared
    errors are left out: the posterior of an ability depends on all items that the subject answered, whose parameters
    are estimates too. An item whose likelihood has no maximum gets NaN, and the others keep their errors.
    """
    dims = specification.dims
    size = dims + 3 if has_asymptotes(items) else dims + 1
    complete = _complete(items, population, expected, grid)
    # E s s' is in the information of complete data and, with the other sign, in what is missing of it
    squares = processes.total(
        score_moments.squared_means(expected.weights, grid, answers, complete.p, complete.score[:, :, :size])
    )
    precision = priors_of(as_array(items), specification).information[:, :size]
    information = squares - complete.curvature[:, :size, :size] + precision[:, :, None] * np.eye(size)
    anchor_information = None
    if not specification.mean_fixed:
        # given the abilities: what is missing of it is in the items' own errors already
        anchors = ~np.asarray(specification.free)[:, dims]
        anchor_information = complete.information[anchors, dims + 3 :, dims + 3 :].sum(axis=0)
        about_zero = np.array(
            [[1.0, np.asarray(population.mean)[0]], [0.0, 1.0]]
        )  # a change of unit, in place of about the mean
        anchor_information = about_zero.T @ anchor_information @ about_zero
    num_subjects = int(processes.total(answers.right.shape[0]))
    return item_errors.item_covariances(
        np.asarray(items.slope), information, specification, np.asarray(population.sd), num_subjects, anchor_information
    )
