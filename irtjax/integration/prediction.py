"""What given items predict: likelihoods of subjects and probabilities of unseen answers, abilities integrated out."""

import jax
import numpy as np

from irtjax.integration.nodes import moments
from irtjax.integration.posteriors import expectations
from irtjax.integration.sparse_posteriors import posteriors_of
from irtjax.item_models.binary import BINARY
from irtjax.kernels.models import ItemParameters, log_answers
from irtjax.responses.compressed_rows import rows_of
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.sparse_values import SparseValues
from irtjax.types import Float, Int

TOGETHER = 2**20  # answers times nodes
LEAST_PREDICTED = 1e-12  # probability of what happened, below which the log-loss grows no further


def log_likelihood_of_subjects(
    items: ItemParameters,
    values: Int[np.ndarray, "J I"] | SparseValues,
    mean: Float[np.ndarray, " D"],
    sd: Float[np.ndarray, " D"],
) -> Float[np.ndarray, " J"]:
    """Marginal log-likelihood of each subject's observed responses, in nats; 0 for a subject without any.

        log ∫ Π_i P_i(θ)^y_i (1 - P_i(θ))^(1 - y_i) N(θ; mean, sd²) dθ

    Args:
        items: of I items in D dimensions.
        values: 1 right, 0 wrong, -1 missing.
        mean: of the population.
        sd: of the population, whose dimensions are independent.
    """
    result = np.empty(values.shape[0])
    for found in posteriors_of(items, values, mean, sd):
        result[found.rows] = found.log_likelihood
    return result


def predict(
    items: ItemParameters, values: Int[np.ndarray, "J I"], mean: Float[np.ndarray, " D"], sd: Float[np.ndarray, " D"]
) -> Float[np.ndarray, "J I"]:
    """Probability of a right answer of each subject to each item, given the subject's observed responses.

        ∫ P_i(θ) p(θ | y_j) dθ

    For a missing response this is the prediction of it. For an observed one it is too good: the response itself is
    among those that the ability is known from.

    Args:
        items: of I items in D dimensions.
        values: 1 right, 0 wrong, -1 missing.
        mean: of the population.
        sd: of the population, whose dimensions are independent.
    """
    result = np.empty(values.shape)
    for found in posteriors_of(items, values, mean, sd):
        (result[found.rows],) = expectations(_right, found, items)
    return result


def predict_answers(
    items: ItemParameters,
    values: SparseValues,
    asked: SparseResponses,
    mean: Float[np.ndarray, " D"],
    sd: Float[np.ndarray, " D"],
) -> Float[np.ndarray, " N"]:
    """Probabilities of right answers to items that are asked for, given the subjects' answers to others.

    Args:
        items: of I items in D dimensions.
        values: what is known of the subjects.
        asked: the same subjects and items; how they were answered does not matter.
        mean: of the population.
        sd: of the population, whose dimensions are independent.
    """
    result, nodes, table = np.empty(asked.num_answers), None, np.zeros((0, 0))
    for found in posteriors_of(items, values, mean, sd):
        starts, at = rows_of(asked.starts, found.rows)
        if found.nodes.ndim == 2 and found.nodes is not nodes:
            nodes = found.nodes
            with jax.enable_x64(True):
                table = np.ascontiguousarray(moments(BINARY, items, nodes, asymptotes=True).mean.T)
        whose = np.repeat(np.arange(len(found.rows)), np.diff(starts))
        size = max(1, TOGETHER // found.weights.shape[1])
        for first in range(0, len(at), size):
            part, j = at[first : first + size], whose[first : first + size]
            i = asked.items[part]
            right = table[i] if found.nodes.ndim == 2 else _right_at(items, i, found.nodes[j])
            result[part] = np.einsum("nq,nq->n", found.weights[j], right)
    return result


def _right_at(
    items: ItemParameters, chosen: Int[np.ndarray, " N"], nodes: Float[np.ndarray, "N Q D"]
) -> Float[np.ndarray, "N Q"]:
    """Probability of a right answer to each of some items at nodes of its own."""
    of_items = ItemParameters(*(np.asarray(leaf)[chosen] for leaf in items))
    logits = np.einsum("nqd,nd->qn", nodes, of_items.slope) + of_items.intercept[None, :]
    with jax.enable_x64(True):
        return np.exp(np.asarray(log_answers(of_items, logits)[0])).T


def posterior_moments(
    items: ItemParameters,
    values: Int[np.ndarray, "J I"] | SparseValues,
    mean: Float[np.ndarray, " D"],
    sd: Float[np.ndarray, " D"],
) -> tuple[Float[np.ndarray, "J D"], Float[np.ndarray, "J D D"]]:
    """Mean (J, D) and covariance (J, D, D) of each subject's ability; arguments as in `predict`."""
    dims = items.slope.shape[1]
    of_mean, of_covariance = (np.empty((values.shape[0], *(dims,) * more)) for more in (1, 2))
    for found in posteriors_of(items, values, mean, sd):
        of_mean[found.rows], of_covariance[found.rows] = found.mean, found.covariance
    return of_mean, of_covariance


def _right(p: jax.Array, q: jax.Array) -> tuple[jax.Array, ...]:
    del q
    return (p,)
