"""Standard errors: the observed information of the marginal likelihood, inverted.

The posteriors over the nodes give it without automatic differentiation (Louis 1982): it is the information of complete
data, abilities included, less the posterior covariance of their score,

    -∂²/∂φ² Σ_j log L_j = Σ_j E_j[-∂²l_j] - E_j[s_j s_j'] + E_j[s_j] E_j[s_j]',     s_j = ∂l_j/∂φ.

The score of an answer y at a node is (y - P) h with h = ∂P/∂φ / (P (1 - P)): the residual depends on subject and item,
and h on the item alone. The sum of E_j[s_j s_j'] therefore takes one matrix product per node, of the residuals of all
pairs of items.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.estimation.mml import item_errors
from irtjax.estimation.mml.item_step import priors_of
from irtjax.estimation.mml.node_posteriors import Answers, NodePosteriors, curves, place_nodes
from irtjax.estimation.parameterization import Specification, as_array, has_asymptotes, layout
from irtjax.estimation.population import Population
from irtjax.kernels.models import Curve, ItemParameters, curve
from irtjax.kernels.quadrature import Quadrature
from irtjax.types import AnyArray, Float

TOGETHER = 256  # subjects of nearby abilities
LEAST_WEIGHT = 1e-12  # of a node in a posterior, below which a subject is not there
ENTRIES = 2**23  # scores of subjects on items that are held at a time


def covariance(information: Float[np.ndarray, "P P"]) -> Float[np.ndarray, "P P"]:
    """The inverse of an information matrix; NaN where there is none, so that the data do not identify the model."""
    try:
        inverse = np.linalg.inv(information)
    except np.linalg.LinAlgError:
        return np.full_like(information, np.nan)
    return inverse if (np.diag(inverse) > 0).all() else np.full_like(information, np.nan)


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
    quadrature: Quadrature,
    specification: Specification,
) -> Float[np.ndarray, "P P"]:
    """Observed information (P, P) of all free parameters, population and log-prior included, in the order of `Layout`.

    Args:
        items: the estimate.
        population: likewise.
        answers: of all subjects.
        expected: from `node_posteriors` at the estimate.
        quadrature: the nodes.
        specification: what is free; priors.
    """
    places = layout(specification)
    population_places = np.concatenate([places.mean, places.log_sd])
    index = np.concatenate([places.items, np.tile(population_places, (len(places.items), 1))], axis=1)
    complete = _complete(items, population, expected, quadrature)
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
    return information - _missing(expected.weights, answers, complete.p, own, chosen, common)


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


def _complete(
    items: ItemParameters, population: Population, expected: NodePosteriors, quadrature: Quadrature
) -> _Complete:
    nodes = place_nodes(population, quadrature)
    distance = nodes - np.asarray(population.mean)[None, :]
    p, q = curves(items, nodes)
    right = np.asarray(expected.right)
    wrong = np.asarray(expected.observed) - right
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


def _missing(
    weights: AnyArray, answers: Answers, p: np.ndarray, own: np.ndarray, items: np.ndarray, common: np.ndarray
) -> np.ndarray:
    """Posterior covariances (P, P) of the scores of all parameters, summed over subjects.

    Subjects of nearby abilities are taken together, at those nodes only that they may be at: a tenth of all, where
    posteriors are narrow.

    Args:
        weights: (J, Q).
        answers: of J subjects.
        p: (Q, I).
        own: (Q, P - C) score, over the residual of the answer, of each parameter that one item has.
        items: (P - C,) which.
        common: (Q, I, C) likewise of the parameters that items have in common.
    """
    weights = np.asarray(weights)
    order = np.argsort(weights @ np.arange(weights.shape[1]))
    padding = -len(order) % TOGETHER
    arranged = np.concatenate([weights[order], np.zeros((padding, weights.shape[1]))])
    possible = np.any(arranged.reshape(-1, TOGETHER, weights.shape[1]) > LEAST_WEIGHT, axis=1)
    first, last = possible.argmax(axis=1), weights.shape[1] - possible[:, ::-1].argmax(axis=1)
    rows = np.concatenate([order, np.zeros(padding, int)])
    return np.asarray(_missing_by_group(arranged, rows, first, last, answers, p, own, items, common))


@jax.jit
def _missing_by_group(
    weights: jax.Array,
    rows: jax.Array,
    first: jax.Array,
    last: jax.Array,
    answers: Answers,
    p: jax.Array,
    own: jax.Array,
    items: jax.Array,
    common: jax.Array,
) -> jax.Array:
    """As `_missing`, of groups of `TOGETHER` rows of weights, which are those of the given subjects."""
    num_items, num_common = common.shape[1:]
    columns = jnp.concatenate([items, num_items + jnp.arange(num_common)])
    factors = jnp.concatenate([own, jnp.ones((own.shape[0], num_common))], axis=1)
    size = own.shape[1] + num_common

    def group(squares: jax.Array, at: tuple[jax.Array, ...]) -> tuple[jax.Array, None]:
        weights, rows, first, last = at
        right, observed = jax.tree.map(lambda leaf: leaf[rows], answers)

        def node(q: jax.Array, carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            squares, mean = carry
            root = jnp.sqrt(weights[:, q])[:, None]
            residuals = root * (right - (p[q][None, :] if observed is None else observed * p[q][None, :]))
            of_common = residuals @ common[q]
            both = jnp.concatenate([residuals, of_common], axis=1) if own.shape[1] else of_common
            products = both.T @ both
            squares += factors[q][:, None] * factors[q][None, :] * products[columns][:, columns]
            return squares, mean + root * of_common

        squares, mean = jax.lax.fori_loop(first, last, node, (squares, jnp.zeros((len(rows), num_common))))
        chosen = Answers(right[:, items], None if observed is None else observed[:, items])
        mean = jnp.concatenate([_mean_score(weights, chosen, p[:, items], own), mean], axis=1)
        return squares - mean.T @ mean, None

    groups = (weights.reshape(-1, TOGETHER, weights.shape[1]), rows.reshape(-1, TOGETHER), first, last)
    return jax.lax.scan(group, jnp.zeros((size, size)), groups)[0]


def _mean_score(weights: jax.Array, answers: Answers, p: jax.Array, score: jax.Array) -> AnyArray:
    """Posterior mean (J, N) of the scores (Q, N) of one parameter each of N items."""
    right, observed = answers
    expected = weights @ (p * score)
    return right * (weights @ score) - (expected if observed is None else observed * expected)


@np.errstate(all="ignore")
def each_item_covariances(
    items: ItemParameters,
    population: Population,
    answers: Answers,
    expected: NodePosteriors,
    quadrature: Quadrature,
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
    complete = _complete(items, population, expected, quadrature)
    # E s s' is in the information of complete data and, with the other sign, in what is missing of it
    squares = _squared_means(expected.weights, answers, complete.p, complete.score[:, :, :size])
    precision = priors_of(as_array(items), specification).information[:, :size]
    information = squares - complete.curvature[:, :size, :size] + precision[:, :, None] * np.eye(size)
    link = None
    if not specification.fold_mean:
        # given the abilities: what is missing of it is in the items' own errors already
        anchors = ~np.asarray(specification.free)[:, dims]
        link = complete.information[anchors, dims + 3 :, dims + 3 :].sum(axis=0)
        about_zero = np.array(
            [[1.0, np.asarray(population.mean)[0]], [0.0, 1.0]]
        )  # a change of unit, in place of about the mean
        link = about_zero.T @ link @ about_zero
    return item_errors.item_covariances(
        np.asarray(items.slope), information, specification, np.asarray(population.sd), answers.right.shape[0], link
    )


def _squared_means(weights: AnyArray, answers: Answers, p: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Squares (I, K, K) of posterior mean scores (Q, I, K), summed over subjects; some items at a time."""
    (num_subjects, num_items), size = answers.right.shape, score.shape[2]
    block = min(num_items, max(1, ENTRIES // (num_subjects * size)))
    result = np.empty((num_items, size, size))
    for at in range(0, num_items, block):
        start = min(at, num_items - block)  # blocks of one size, so that one program does
        part = slice(start, start + block)
        result[part] = _squares_of_block(weights, answers, p[:, part], score[:, part], start)
    return result


@jax.jit
def _squares_of_block(
    weights: jax.Array, answers: Answers, p: jax.Array, score: jax.Array, start: jax.Array | int
) -> jax.Array:
    part = jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, start, p.shape[1], axis=1), answers)
    means = [_mean_score(weights, part, p, score[:, :, k]) for k in range(score.shape[2])]
    return jnp.stack([jnp.stack([(one * other).sum(axis=0) for one in means], axis=1) for other in means], axis=2)
