"""What counts of answers at nodes say of each item: its log-likelihood, gradient and expected information."""

from typing import NamedTuple

import numpy as np

from irtjax.integration.nodes import curves
from irtjax.kernels.models import ItemParameters, derivatives
from irtjax.types import Float


class Counts(NamedTuple):
    """Answers at nodes, as many as the posteriors expect.

    Attributes:
        nodes: (Q, D).
        right: (Q, I).
        wrong: (Q, I).
    """

    nodes: Float[np.ndarray, "Q D"]
    right: Float[np.ndarray, "Q I"]
    wrong: Float[np.ndarray, "Q I"]


def log_likelihood(items: ItemParameters, counts: Counts) -> Float[np.ndarray, " I"]:
    """Expected log-likelihood (I,) of the counts, in nats."""
    p, q = curves(items, counts.nodes)
    return (counts.right * np.log(p) + counts.wrong * np.log(q)).sum(axis=0)


def score(
    items: ItemParameters, counts: Counts, *, asymptotes: bool
) -> tuple[Float[np.ndarray, "I K"], Float[np.ndarray, "I K K"]]:
    """Gradient (I, K) and expected information (I, K, K) of the counts in the parameters of each item.

    Args:
        items: of I items.
        counts: at Q nodes.
        asymptotes: whether any item has one; without, their derivatives are left out and K is D + 1, not D + 3.
    """
    nodes, right, wrong = counts
    p, q = curves(items, nodes)
    if asymptotes:
        slopes = np.moveaxis(np.asarray(derivatives(items, nodes)), 2, 0)
        gradient = np.einsum("qi,kqi->ik", right / p - wrong / q, slopes)
        weight = (right + wrong) / (p * q)
        information = np.empty((slopes.shape[2], len(slopes), len(slopes)))
        for k, one in enumerate(slopes):
            weighted = weight * one
            for n, other in enumerate(slopes[: k + 1]):
                information[:, k, n] = information[:, n, k] = np.einsum("qi,qi->i", weighted, other)
        return gradient, information
    design = np.concatenate([nodes, np.ones_like(nodes[:, :1])], axis=1)
    products = (design[:, :, None] * design[:, None, :]).reshape(len(nodes), -1)
    information = ((right + wrong) * p * q).T @ products
    return (right * q - wrong * p).T @ design, information.reshape(-1, *2 * design.shape[1:])


def population_score(
    items: ItemParameters, counts: Counts, mean: Float[np.ndarray, " D"]
) -> tuple[Float[np.ndarray, " two_D"], Float[np.ndarray, " two_D"]]:
    """Gradient and expected information (2 D,) in means and log standard deviations of the population.

    The nodes are where the population puts them, mean + sd z, so that these parameters enter by the logits.
    """
    nodes, right, wrong = counts
    p, q = curves(items, nodes)
    by_logit = derivatives(items, nodes)[:, :, nodes.shape[1]]
    residual, weight = (right / p - wrong / q) * by_logit, (right + wrong) / (p * q) * by_logit**2
    distance = nodes - mean[None, :]
    by_mean, by_square = residual @ items.slope, weight @ items.slope**2
    return (
        np.concatenate([by_mean.sum(axis=0), (by_mean * distance).sum(axis=0)]),
        np.concatenate([by_square.sum(axis=0), (by_square * distance**2).sum(axis=0)]),
    )
