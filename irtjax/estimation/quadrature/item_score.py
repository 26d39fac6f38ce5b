"""What expected statistics at nodes say of each item: its log-likelihood, gradient and expected information."""

import dataclasses

import numpy as np

from irtjax.integration.nodes import moments, natural
from irtjax.item_models.protocol import ItemModel, Items, Moments
from irtjax.types import Float


@dataclasses.dataclass(frozen=True)
class Counts:
    """Answers at nodes, as many as the posteriors expect.

    Attributes:
        model: of the items.
        nodes: (Q, D).
        statistics: (Q, M), S of each item: of right/wrong items the number of right answers.
        observed: (Q, I).
    """

    model: ItemModel
    nodes: Float[np.ndarray, "Q D"]
    statistics: Float[np.ndarray, "Q M"]
    observed: Float[np.ndarray, "Q I"]


def log_likelihood(items: Items, counts: Counts) -> Float[np.ndarray, " I"]:
    """Expected log-likelihood (I,) of the counts, in nats: Σ T η - n A."""
    eta, log_normalizer = natural(counts.model, items, counts.nodes)
    of_statistics, of_trials = counts.statistics * eta, counts.observed * log_normalizer
    if eta.shape == log_normalizer.shape:
        return (of_statistics - of_trials).sum(axis=0)
    return of_statistics.sum(axis=0).reshape(log_normalizer.shape[1], -1).sum(axis=1) - of_trials.sum(axis=0)


def score(
    items: Items, counts: Counts, *, asymptotes: bool
) -> tuple[Float[np.ndarray, "I K"], Float[np.ndarray, "I K K"]]:
    """Gradient (I, K) and expected information (I, K, K) of the counts in the parameters of each item.

    Σ (T - n E T) ∂η and Σ n ∂η' Cov T ∂η, sums over nodes; slopes and intercept by products with the nodes.

    Args:
        items: of I items.
        counts: at Q nodes.
        asymptotes: whether any item has more than slopes and an intercept; without, derivatives by the L others are
            left out and K is D + 1, not D + 1 + L.
    """
    nodes, found = counts.nodes, moments(counts.model, items, counts.nodes, asymptotes=asymptotes)
    design = np.concatenate([nodes, np.ones_like(nodes[:, :1])], axis=1)
    if found.per_item > 1:
        return _score_of_several(found, counts, design)
    products = (design[:, :, None] * design[:, None, :]).reshape(len(nodes), -1)
    by_x, *others = found.scores(found.residual(counts.statistics, counts.observed))
    (of_x, *_), *rows = found.weights(counts.observed)
    first, num_items = design.shape[1], by_x.shape[1]
    size = first + len(others)
    gradient, information = np.empty((num_items, size)), np.empty((num_items, size, size))
    gradient[:, :first] = by_x.T @ design
    information[:, :first, :first] = (of_x.T @ products).reshape(-1, first, first)
    for k, (one, (cross, *own)) in enumerate(zip(others, rows, strict=True), first):
        gradient[:, k] = one.sum(axis=0)
        information[:, :first, k] = information[:, k, :first] = cross.T @ design
        for n, other in enumerate(own, first):
            information[:, k, n] = information[:, n, k] = other.sum(axis=0)
    return gradient, information


def _score_of_several(
    found: Moments, counts: Counts, design: np.ndarray
) -> tuple[Float[np.ndarray, "I K"], Float[np.ndarray, "I K K"]]:
    """The same of items of S statistics: for each item one product, over nodes and statistics."""
    (num_nodes, first), num_items, per_item = design.shape, counts.observed.shape[1], found.per_item
    by_x, *others = (np.asarray(by).reshape(num_nodes, num_items, per_item) for by in found.derivatives())
    by = np.empty((num_items, num_nodes, per_item, first + len(others)))
    by[..., :first] = by_x.swapaxes(0, 1)[..., None] * design[None, :, None, :]
    for k, one in enumerate(others, first):
        by[..., k] = one.swapaxes(0, 1)
    weighted = np.asarray(found.spread(by.swapaxes(0, 1))).swapaxes(0, 1) * counts.observed.T[:, :, None, None]
    residual = np.asarray(found.residual(counts.statistics, counts.observed)).reshape(num_nodes, num_items, per_item)
    flat = by.reshape(num_items, num_nodes * per_item, -1)
    gradient = residual.swapaxes(0, 1).reshape(num_items, 1, -1) @ flat
    return gradient[:, 0], flat.swapaxes(1, 2) @ weighted.reshape(flat.shape)


def population_score(
    items: Items, counts: Counts, mean: Float[np.ndarray, " D"], *, asymptotes: bool
) -> tuple[Float[np.ndarray, " two_D"], Float[np.ndarray, " two_D"]]:
    """Gradient and expected information (2 D,) in means and log standard deviations of the population.

    The nodes are where the population puts them, mean + sd z, so that these parameters enter by the predictors.
    """
    found = moments(counts.model, items, counts.nodes, asymptotes=asymptotes)
    residual = found.scores(found.residual(counts.statistics, counts.observed))[0]
    weight = found.weights(counts.observed)[0][0]
    distance = counts.nodes - mean[None, :]
    by_mean, by_square = residual @ items.slope, weight @ items.slope**2
    return (
        np.concatenate([by_mean.sum(axis=0), (by_mean * distance).sum(axis=0)]),
        np.concatenate([by_square.sum(axis=0), (by_square * distance**2).sum(axis=0)]),
    )


def scale_score(
    items: Items, counts: Counts, *, asymptotes: bool
) -> tuple[Float[np.ndarray, "2"], Float[np.ndarray, "2 2"]]:
    """Gradient (2,) and expected information (2, 2) in origin and log unit of all abilities, D = 1.

    They are those of the expected log-likelihood when nodes θ move to θ exp(t) + o, and their weights go along.
    """
    found = moments(counts.model, items, counts.nodes, asymptotes=asymptotes)
    residual = found.scores(found.residual(counts.statistics, counts.observed))[0]
    weight = found.weights(counts.observed)[0][0]
    by = np.concatenate([np.ones_like(counts.nodes), counts.nodes], axis=1)
    return by.T @ (residual @ items.slope)[:, 0], (by * (weight @ items.slope**2)).T @ by
