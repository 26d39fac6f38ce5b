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
from irtjax.estimation.mml.fixed_nodes import Answers, Expectation, State, curves, has_asymptotes, place_nodes
from irtjax.estimation.parameterization import Specification
from irtjax.kernels.models import Curve, curve
from irtjax.kernels.quadrature import Quadrature
from irtjax.types import AnyArray, Float, Int

ENTRIES = 2**23  # scores of subjects on items that are held at a time


def parameter_index(specification: Specification) -> Int[np.ndarray, "I K"]:
    """Position (I, K) of every parameter in the vector of free ones, -1 where it is held; shared slopes have one."""
    free = np.asarray(specification.free)
    index = np.full(free.shape, -1)
    own = free.copy()
    own[:, 0] &= ~np.asarray(specification.shared)
    index[own] = np.arange(own.sum())
    if specification.has_shared:
        index[np.asarray(specification.shared), 0] = own.sum()
    return index


def num_parameters(specification: Specification) -> int:
    """Free parameters: of the items, and of the population where it is not fixed."""
    population = specification.dims * (int(not specification.fold_mean) + int(not specification.fold_sd))
    return int(parameter_index(specification).max()) + 1 + population


def item_covariances(
    state: State, answers: Answers, expected: Expectation, quadrature: Quadrature, specification: Specification
) -> Float[np.ndarray, "I K K"]:
    """Covariance matrices (I, K, K) of the estimates of each item; 0 where a parameter is held.

    They are blocks of the inverse of the observed information of all free parameters, population included. NaN where it
    cannot be inverted, which says that the data do not identify the model.

    Args:
        state: the estimate.
        answers: of all subjects.
        expected: from `fixed_nodes.expectation` at the estimate.
        quadrature: the nodes.
        specification: what is free; priors.
    """
    information = of_all_parameters(state, answers, expected, quadrature, specification)
    try:
        covariance = np.linalg.inv(information)
        if (np.diag(covariance) <= 0).any():
            covariance = np.full_like(information, np.nan)
    except np.linalg.LinAlgError:
        covariance = np.full_like(information, np.nan)
    index = parameter_index(specification)
    blocks = covariance[index[:, :, None], index[:, None, :]]
    held = index < 0
    return np.where(held[:, :, None] | held[:, None, :], 0.0, blocks)


@np.errstate(all="ignore")  # an item may have run off to infinity
def of_all_parameters(
    state: State, answers: Answers, expected: Expectation, quadrature: Quadrature, specification: Specification
) -> Float[np.ndarray, "P P"]:
    """Observed information (P, P) of all free parameters, log-prior included; arguments as above.

    The order is that of `parameter_index`, then means and log standard deviations of the population.
    """
    index = _index_with_population(specification)
    complete = _complete(state, expected, quadrature)
    precision = np.zeros(index.shape)
    precision[:, : specification.dims + 3] = specification.prior_precision
    of_items = complete.information + precision[:, :, None] * np.eye(index.shape[1])
    size = index.max() + 1
    information = np.zeros((size, size))
    free = index >= 0
    both = free[:, :, None] & free[:, None, :]
    rows, columns = (np.broadcast_to(at, both.shape)[both] for at in (index[:, :, None], index[:, None, :]))
    np.add.at(information, (rows, columns), of_items[both])
    # parameters of one item first, then those that all have in common: a shared slope and the population
    num_own = (specification.free.sum() - specification.shared.sum()).item()
    items, kinds = np.nonzero(free & (index < num_own))
    common = np.zeros((*complete.p.shape, size - num_own))
    for at in range(num_own, size):
        common[:, :, at - num_own] = np.where(index[None] == at, complete.score, 0.0).sum(axis=2)
    own = complete.score[:, items, kinds]
    return information - np.asarray(_missing(expected.weights, answers, complete.p, own, items, common))


def _index_with_population(specification: Specification) -> np.ndarray:
    """`parameter_index`, (I, 3 D + 3), with the parameters of the population among those of every item."""
    index, dims = parameter_index(specification), specification.dims
    population, size = np.full(2 * dims, -1), index.max() + 1
    for columns, held in ((slice(0, dims), specification.fold_mean), (slice(dims, None), specification.fold_sd)):
        if not held:
            population[columns] = np.arange(size, size + dims)
            size += dims
    return np.concatenate([index, np.tile(population, (len(index), 1))], axis=1)


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


def _complete(state: State, expected: Expectation, quadrature: Quadrature) -> _Complete:
    nodes = place_nodes(state, quadrature)
    p, q = curves(state.items, nodes)
    right = np.asarray(expected.right)
    wrong = np.asarray(expected.observed) - right
    parts, by_parameter = curve(state.items, nodes), _derivatives_of_logit(state, nodes)
    score = _derivatives_of_curve(parts, by_parameter, nodes.shape[1]) / (p * q)[:, :, None]
    curvature = _curvature(state, nodes, parts, by_parameter, right / p - wrong / q)
    return _Complete(p, score, curvature, _products(right * q**2 + wrong * p**2, score, score) - curvature)


def _derivatives_of_logit(state: State, nodes: np.ndarray) -> np.ndarray:
    """Derivatives (Q, I, 3 D + 3) of the logits in all parameters; 0 for asymptotes."""
    (num_nodes, dims), slope = nodes.shape, np.asarray(state.items.slope)
    by_parameter = np.zeros((num_nodes, len(slope), 3 * dims + 3))
    by_parameter[:, :, :dims], by_parameter[:, :, dims] = nodes[:, None, :], 1
    # a node is mean + sd · z, and its derivative in log sd the distance from the mean
    by_parameter[:, :, dims + 3 : 2 * dims + 3] = slope[None]
    by_parameter[:, :, 2 * dims + 3 :] = slope[None] * (nodes - state.mean[None, :])[:, None, :]
    return by_parameter


def _derivatives_of_curve(parts: Curve, by_parameter: np.ndarray, dims: int) -> np.ndarray:
    """Derivatives (Q, I, 3 D + 3) of P in all parameters."""
    first = np.asarray(parts.by_logit())[:, :, None] * by_parameter
    first[:, :, dims + 1], first[:, :, dims + 2] = parts.by_lower(), parts.by_upper()
    return first


def _curvature(
    state: State, nodes: np.ndarray, parts: Curve, by_parameter: np.ndarray, residual: np.ndarray
) -> np.ndarray:
    """Sums (I, 3 D + 3, 3 D + 3) over nodes of residuals (Q, I), which are y - P over P (1 - P), times ∂²P."""
    (_, dims), by_logit = nodes.shape, parts.by_logit()
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
    of_log_sd = (residual * by_logit).T @ (nodes - state.mean[None, :])
    for k in range(dims):
        for column, value in ((mean + k, of_mean), (log_sd + k, of_log_sd[:, k])):
            curvature[:, k, column] += value
            curvature[:, column, k] += value
        curvature[:, log_sd + k, log_sd + k] += state.items.slope[:, k] * of_log_sd[:, k]
    return curvature


def _products(weight: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Weighted products (I, K, K) of (Q, I, K), summed over nodes."""
    return np.einsum("qik,qil->ikl", weight[:, :, None] * one, other)


@jax.jit
def _missing(
    weights: jax.Array, answers: Answers, p: jax.Array, own: jax.Array, items: jax.Array, common: jax.Array
) -> jax.Array:
    """Posterior covariances (P, P) of the scores of all parameters, summed over subjects.

    Args:
        weights: (J, Q).
        answers: of J subjects.
        p: (Q, I).
        own: (Q, P - C) score, over the residual of the answer, of each parameter that one item has.
        items: (P - C,) which.
        common: (Q, I, C) likewise of the parameters that items have in common.
    """
    right, observed = answers
    num_items, num_common = common.shape[1:]
    columns = jnp.concatenate([items, num_items + jnp.arange(num_common)])
    factors = jnp.concatenate([own, jnp.ones((own.shape[0], num_common))], axis=1)

    def add(
        carry: tuple[jax.Array, jax.Array], node: tuple[jax.Array, ...]
    ) -> tuple[tuple[jax.Array, jax.Array], None]:
        squares, mean = carry
        weight, p, common, factor = node
        root = jnp.sqrt(weight)[:, None]
        residuals = root * (right - (p[None, :] if observed is None else observed * p[None, :]))
        of_common = residuals @ common
        both = jnp.concatenate([residuals, of_common], axis=1) if own.shape[1] else of_common
        products = both.T @ both
        squares += factor[:, None] * factor[None, :] * products[columns][:, columns]
        return (squares, mean + root * of_common), None

    size = own.shape[1] + num_common
    start = jnp.zeros((size, size)), jnp.zeros((right.shape[0], num_common))
    (squares, mean), _ = jax.lax.scan(add, start, (weights.T, p, common, factors))
    chosen = jax.tree.map(lambda leaf: leaf[:, items], answers)
    mean = jnp.concatenate([_mean_score(weights, chosen, p[:, items], own), mean], axis=1)
    return squares - mean.T @ mean


def _mean_score(weights: jax.Array, answers: Answers, p: jax.Array, score: jax.Array) -> AnyArray:
    """Posterior mean (J, N) of the scores (Q, N) of one parameter each of N items."""
    right, observed = answers
    expected = weights @ (p * score)
    return right * (weights @ score) - (expected if observed is None else observed * expected)


@np.errstate(all="ignore")
def each_item_covariances(
    state: State, answers: Answers, expected: Expectation, quadrature: Quadrature, specification: Specification
) -> Float[np.ndarray, "I K K"]:
    """As `item_covariances`, for tests with too many items to invert a matrix of all parameters.

    Each item's own block of the observed information is inverted, and the error of the scale added, which all items
    share (`item_errors`). Other shared errors are left out: the posterior of an ability depends
    on all items that the subject answered, whose parameters are estimates too. An item whose likelihood has no maximum
    gets NaN, and the others keep their errors.
    """
    dims = specification.dims
    size = dims + 3 if has_asymptotes(state.items) else dims + 1
    complete = _complete(state, expected, quadrature)
    # E s s' is in the information of complete data and, with the other sign, in what is missing of it
    squares = _squared_means(expected.weights, answers, complete.p, complete.score[:, :, :size])
    precision = np.asarray(specification.prior_precision)[:, :size]
    information = squares - complete.curvature[:, :size, :size] + precision[:, :, None] * np.eye(size)
    link = None
    if not specification.fold_mean:
        # given the abilities: what is missing of it is in the items' own errors already
        anchors = ~np.asarray(specification.free)[:, dims]
        link = complete.information[anchors, dims + 3 :, dims + 3 :].sum(axis=0)
        about_zero = np.array([[1.0, state.mean[0]], [0.0, 1.0]])  # a change of unit, in place of about the mean
        link = about_zero.T @ link @ about_zero
    return item_errors.item_covariances(
        np.asarray(state.items.slope), information, specification, np.asarray(state.sd), answers.right.shape[0], link
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
