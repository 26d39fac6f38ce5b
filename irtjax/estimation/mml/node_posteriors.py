"""Posteriors of ability over nodes that all subjects share, and what the items need to know of them.

Arrays with a row per subject stay on the device, in one small compiled function of matrix products. Arrays of nodes by
items have a few thousand numbers: NumPy handles them, without compilation.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.estimation.population import Population
from irtjax.kernels.models import ItemParameters, probabilities
from irtjax.kernels.quadrature import Quadrature
from irtjax.responses.matrix import MISSING
from irtjax.types import AnyArray, Float, Int


class Answers(NamedTuple):
    """Indicators (J, I) of right and of observed answers, the latter None where all were observed."""

    right: AnyArray
    observed: AnyArray | None


class NodePosteriors(NamedTuple):
    """What the subjects' answers say of their abilities.

    Attributes:
        weights: (J, Q) posterior of every subject over the nodes.
        right: (Q, I) expected number of right answers at each node.
        observed: (Q, I) likewise of answers, or (Q, 1) where all were observed.
        log_likelihood: of all answers, in nats.
    """

    weights: jax.Array
    right: jax.Array
    observed: jax.Array
    log_likelihood: jax.Array


def to_answers(values: Int[np.ndarray, "J I"]) -> Answers:
    """Puts responses (J, I) int8 on the device."""
    observed = values != MISSING
    return jax.device_put(Answers((values == 1).astype(float), None if observed.all() else observed.astype(float)))


def place_nodes(population: Population, quadrature: Quadrature) -> Float[np.ndarray, "Q D"]:
    """The nodes (Q, D) on the scale of ability; mean and standard deviation of the population have D entries."""
    return np.asarray(population.mean)[None, :] + np.asarray(population.sd)[None, :] * quadrature.nodes


def curves(
    items: ItemParameters, nodes: Float[np.ndarray, "Q D"]
) -> tuple[Float[np.ndarray, "Q I"], Float[np.ndarray, "Q I"]]:
    """Probabilities (Q, I) of a right and of a wrong answer.

    At least 1e-300: an item on its way to infinity must not turn the sums over all others into NaN.
    """
    p, q = probabilities(items, nodes)
    return np.maximum(p, 1e-300), np.maximum(q, 1e-300)


def node_posteriors(
    items: ItemParameters, population: Population, answers: Answers, quadrature: Quadrature
) -> NodePosteriors:
    """Posteriors over the nodes, and what the items need to know of the subjects (Bock and Aitkin 1981)."""
    p, q = curves(items, place_nodes(population, quadrature))
    return of_curves(np.log(p), np.log(q), quadrature, answers)


def of_curves(
    log_p: Float[np.ndarray, "Q I"], log_q: Float[np.ndarray, "Q I"], quadrature: Quadrature, answers: Answers
) -> NodePosteriors:
    """As `node_posteriors`, given the logarithms of the items' `curves` at the nodes."""
    return _posteriors(log_p, log_q, quadrature.log_weights, answers)


@jax.jit
def _posteriors(log_p: jax.Array, log_q: jax.Array, log_weights: jax.Array, answers: Answers) -> NodePosteriors:
    right, observed = answers
    joint = _joint(log_p, log_q, log_weights, answers)
    largest = joint.max(axis=1)
    weights = jnp.exp(joint - largest[:, None])
    total = weights.sum(axis=1)
    weights /= total[:, None]
    answered = weights.sum(axis=0)[:, None] if observed is None else weights.T @ observed
    return NodePosteriors(weights, weights.T @ right, answered, (largest + jnp.log(total)).sum())


def log_likelihoods(
    items: ItemParameters, population: Population, answers: Answers, quadrature: Quadrature
) -> Float[jax.Array, " J"]:
    """Marginal log-likelihood (J,) of each subject's answers, in nats."""
    p, q = curves(items, place_nodes(population, quadrature))
    return _log_likelihoods(np.log(p), np.log(q), quadrature.log_weights, answers)


@jax.jit
def _log_likelihoods(log_p: jax.Array, log_q: jax.Array, log_weights: jax.Array, answers: Answers) -> jax.Array:
    return jax.nn.logsumexp(_joint(log_p, log_q, log_weights, answers), axis=1)


def _joint(log_p: jax.Array, log_q: jax.Array, log_weights: jax.Array, answers: Answers) -> jax.Array:
    right, observed = answers
    joint = jnp.asarray(right) @ (log_p - log_q).T + log_weights[None, :]
    return joint + jnp.asarray(log_q.sum(axis=1)[None, :] if observed is None else observed @ log_q.T)
