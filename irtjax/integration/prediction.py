"""What given items predict: likelihoods of subjects and probabilities of unseen answers, abilities integrated out."""

import jax
import numpy as np

from irtjax.integration.posteriors import expectations, posteriors
from irtjax.kernels.models import ItemParameters
from irtjax.types import Float, Int

LEAST_PREDICTED = 1e-12  # probability of what happened, below which the log-loss grows no further


def log_likelihood_of_subjects(
    items: ItemParameters, values: Int[np.ndarray, "J I"], mean: Float[np.ndarray, " D"], sd: Float[np.ndarray, " D"]
) -> Float[np.ndarray, " J"]:
    """Marginal log-likelihood of each subject's observed responses, in nats; 0 for a subject without any.

        log ∫ Π_i P_i(θ)^y_i (1 - P_i(θ))^(1 - y_i) N(θ; mean, sd²) dθ

    Args:
        items: of I items in D dimensions.
        values: 1 right, 0 wrong, -1 missing.
        mean: of the population.
        sd: of the population, whose dimensions are independent.
    """
    result = np.empty(len(values))
    for found in posteriors(items, values, mean, sd):
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
    for found in posteriors(items, values, mean, sd):
        (result[found.rows],) = expectations(_right, found, items)
    return result


def posterior_moments(
    items: ItemParameters, values: Int[np.ndarray, "J I"], mean: Float[np.ndarray, " D"], sd: Float[np.ndarray, " D"]
) -> tuple[Float[np.ndarray, "J D"], Float[np.ndarray, "J D D"]]:
    """Mean (J, D) and covariance (J, D, D) of each subject's ability; arguments as in `predict`."""
    dims = items.slope.shape[1]
    of_mean, of_covariance = np.empty((len(values), dims)), np.empty((len(values), dims, dims))
    for found in posteriors(items, values, mean, sd):
        of_mean[found.rows], of_covariance[found.rows] = found.mean, found.covariance
    return of_mean, of_covariance


def _right(p: jax.Array, q: jax.Array) -> tuple[jax.Array, ...]:
    del q
    return (p,)
