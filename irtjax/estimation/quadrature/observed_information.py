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
from irtjax.estimation.problem import Layout, Specification, as_array, layout
from irtjax.estimation.quadrature import group_information, latent_regression_information, score_moments
from irtjax.estimation.quadrature.complete_data import Complete, Part, complete_at
from irtjax.estimation.quadrature.score_moments import Scores
from irtjax.item_models.protocol import Items
from irtjax.kernels.models import ItemParameters
from irtjax.populations.groups import Groups
from irtjax.populations.kinds import Populations
from irtjax.populations.latent_regression import LatentRegression
from irtjax.populations.normal import Population
from irtjax.types import Bool, Float

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
    with np.errstate(over="ignore"):  # of an asymptote that nobody is near
        found = inverse / (unit[:, None] * unit[None, :])
    return np.where(np.isfinite(found), found, np.nan)


def of_items(covariance: Float[np.ndarray, "P P"], specification: Specification) -> Float[np.ndarray, "I K K"]:
    """Covariance matrices (I, K, K) of the parameters of each item, out of that of all; 0 where one is held."""
    index = layout(specification).items
    held = index < 0
    blocks = covariance[index[:, :, None], index[:, None, :]]
    return np.where(held[:, :, None] | held[:, None, :], 0.0, blocks)


def _dense(entries: np.ndarray, rows: np.ndarray, columns: np.ndarray, size: int) -> np.ndarray:
    result = np.zeros((size, size))
    np.add.at(result, (rows, columns), entries)
    return result


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
    index, (rows, columns) = positions(places, population)
    information = np.zeros((places.size, places.size))
    np.add.at(information, (rows, columns), of_priors(items, specification, index))
    for part in parts:
        complete = complete_at(items, population, part)
        information += of_complete_data(complete, population, part, places)
        scores = scores_at_nodes(complete, population, part, places)
        information -= processes.total(
            score_moments.covariances(part.expected.weights, part.grid, part.answers, scores)
        )
    return information


def positions(places: Layout, population: Populations) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Where the parameters of each item are (I, K + 2 D), those of one population that moves the nodes last.

    Also the rows and columns of all pairs of free ones.
    """
    several = np.full(2 * np.shape(population.mean)[-1], -1)
    along = places.population if isinstance(population, Population) else several
    index = np.concatenate([places.items, np.tile(along, (len(places.items), 1))], axis=1)
    both = _pairs(index)
    return index, tuple(np.broadcast_to(at, both.shape)[both] for at in (index[:, :, None], index[:, None, :]))


def of_priors(items: Items, specification: Specification, index: np.ndarray) -> np.ndarray:
    """Information of the priors at all pairs of free parameters (`positions`)."""
    precision = np.zeros(index.shape)
    precision[:, : specification.free.shape[1]] = priors_of(as_array(items), specification).information
    return (precision[:, :, None] * np.eye(index.shape[1]))[_pairs(index)]


def _pairs(index: np.ndarray) -> Bool[np.ndarray, "I L L"]:
    free = index >= 0
    return free[:, :, None] & free[:, None, :]


def of_complete_data(
    complete: Complete, population: Populations, part: Part, places: Layout, as_matrix: Any = _dense
) -> Any:
    """Information (P, P) of complete data of some subjects, summed over processes.

    Args:
        complete: of these subjects.
        population: of the estimate.
        part: the subjects.
        places: of the parameters.
        as_matrix: of entries, rows, columns and P; entries of one place are added up.
    """
    index, (rows, columns) = positions(places, population)
    entries = complete.information[_pairs(index)]
    if not isinstance(population, Population):
        of_common = _of_several(population).complete(population, part.expected, part.answers, places)
        at = np.arange(places.num_own, places.size)
        entries = np.concatenate([entries, of_common.ravel()])
        rows, columns = np.append(rows, np.repeat(at, len(at))), np.append(columns, np.tile(at, len(at)))
    return as_matrix(entries, rows, columns, places.size)


def scores_at_nodes(complete: Complete, population: Populations, part: Part, places: Layout) -> Scores:
    """What the scores of all free parameters are made of: of one item first, then what all have in common."""
    index, _ = positions(places, population)
    num_own, size = places.num_own, places.size
    chosen, kinds = np.nonzero((index >= 0) & (index < num_own))
    per_item = complete.mean.shape[1] // len(index)
    statistics = per_item * chosen[:, None] + np.arange(per_item)
    common, of_columns = np.zeros((*complete.mean.shape, size - num_own)), np.repeat(index, per_item, axis=0)
    for at in range(num_own, size):
        common[:, :, at - num_own] = np.where(of_columns[None] == at, complete.by, 0.0).sum(axis=2)
    mean = complete.mean
    if not isinstance(population, Population):
        mean, common = _of_several(population).with_scores(population, part.grid, places, mean, common)
    return Scores(mean, complete.by[:, statistics, kinds[:, None]], statistics, common)


def _of_several(population: Populations) -> Any:
    return latent_regression_information if isinstance(population, LatentRegression) else group_information


class EachItem(NamedTuple):
    """Information of each item by itself.

    Attributes:
        information: (I, K, K) observed, priors included; K is D + 1 where no item has more than slopes and intercept.
        of_scale: (I, 2 D, 2 D) of complete data about origin and unit of the scale.
        num_subjects: of the first population.
    """

    information: Float[np.ndarray, "I K K"]
    of_scale: Float[np.ndarray, "I two_D two_D"]
    num_subjects: int


@np.errstate(all="ignore")
def of_each_item(
    items: Items, population: Populations, parts: Iterable[Part], specification: Specification
) -> EachItem:
    """The blocks of the observed information; arguments as above."""
    dims, num_parameters = specification.dims, np.asarray(specification.free).shape[1]
    size = num_parameters if items.has_others() else dims + 1
    precision = priors_of(as_array(items), specification).information[:, :size]
    information = np.asarray(precision)[:, :, None] * np.eye(size)
    of_scale, num_subjects = np.zeros(()), 0
    for part in parts:
        (answers, expected, grid), complete = part, complete_at(items, population, part)
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
    return EachItem(information, of_scale, num_subjects)


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
    dims = specification.dims
    information, of_scale, num_subjects = of_each_item(items, population, parts, specification)
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
