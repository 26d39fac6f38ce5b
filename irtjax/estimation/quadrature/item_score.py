"""What expected statistics at nodes say of each item: its log-likelihood, gradient and expected information."""

import dataclasses

import numpy as np

from irtjax.integration.nodes import moments, natural
from irtjax.item_models.protocol import ItemModel
from irtjax.kernels.models import ItemParameters
from irtjax.types import Float


@dataclasses.dataclass(frozen=True)
class Counts:
    """Answers at nodes, as many as the posteriors expect; of models with one statistic per item.

    Attributes:
        model: of the items.
        nodes: (Q, D).
        statistics: (Q, I), of right/wrong items the number of right answers.
        observed: (Q, I).
    """

    model: ItemModel
    nodes: Float[np.ndarray, "Q D"]
    statistics: Float[np.ndarray, "Q I"]
    observed: Float[np.ndarray, "Q I"]


def log_likelihood(items: ItemParameters, counts: Counts) -> Float[np.ndarray, " I"]:
    """Expected log-likelihood (I,) of the counts, in nats: Σ T η - n A."""
    eta, log_normalizer = natural(counts.model, items, counts.nodes)
    return (counts.statistics * eta - counts.observed * log_normalizer).sum(axis=0)


def score(
    items: ItemParameters, counts: Counts, *, asymptotes: bool
) -> tuple[Float[np.ndarray, "I K"], Float[np.ndarray, "I K K"]]:
    """Gradient (I, K) and expected information (I, K, K) of the counts in the parameters of each item.

    Σ (T - n E T) ∂η and Σ n Var T ∂η ∂η', sums over nodes; slopes and intercept by products with the nodes.

    Args:
        items: of I items.
        counts: at Q nodes.
        asymptotes: whether any item has one; without, their derivatives are left out and K is D + 1, not D + 3.
    """
    nodes, found = counts.nodes, moments(counts.model, items, counts.nodes, asymptotes=asymptotes)
    design = np.concatenate([nodes, np.ones_like(nodes[:, :1])], axis=1)
    products = (design[:, :, None] * design[:, None, :]).reshape(len(nodes), -1)
    residual = counts.statistics - counts.observed * found.mean
    weight = counts.observed * found.variance
    by_x = found.by_predictor
    of_x = weight if by_x is None else weight * by_x
    first = design.shape[1]
    size = first + (0 if found.by_others is None else found.by_others.shape[2])
    gradient, information = np.empty((found.mean.shape[1], size)), np.empty((found.mean.shape[1], size, size))
    gradient[:, :first] = (residual if by_x is None else residual * by_x).T @ design
    squares = (of_x if by_x is None else of_x * by_x).T @ products
    information[:, :first, :first] = squares.reshape(-1, first, first)
    others = [] if found.by_others is None else list(np.moveaxis(np.asarray(found.by_others), 2, 0))
    for k, one in enumerate(others, first):
        gradient[:, k] = (residual * one).sum(axis=0)
        information[:, :first, k] = information[:, k, :first] = (of_x * one).T @ design
        for n, other in enumerate(others[: k - first + 1], first):
            information[:, k, n] = information[:, n, k] = (weight * one * other).sum(axis=0)
    return gradient, information


def population_score(
    items: ItemParameters, counts: Counts, mean: Float[np.ndarray, " D"], *, asymptotes: bool
) -> tuple[Float[np.ndarray, " two_D"], Float[np.ndarray, " two_D"]]:
    """Gradient and expected information (2 D,) in means and log standard deviations of the population.

    The nodes are where the population puts them, mean + sd z, so that these parameters enter by the predictors.
    """
    found = moments(counts.model, items, counts.nodes, asymptotes=asymptotes)
    by_x = 1.0 if found.by_predictor is None else found.by_predictor
    residual = (counts.statistics - counts.observed * found.mean) * by_x
    weight = counts.observed * found.variance * by_x**2
    distance = counts.nodes - mean[None, :]
    by_mean, by_square = residual @ items.slope, weight @ items.slope**2
    return (
        np.concatenate([by_mean.sum(axis=0), (by_mean * distance).sum(axis=0)]),
        np.concatenate([by_square.sum(axis=0), (by_square * distance**2).sum(axis=0)]),
    )
