"""EM for short tests: one set of nodes for all subjects, so that both steps are matrix products."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from irtjax.inference.item_step import best_step, fold_population, log_prior, scoring_step
from irtjax.inference.quadrature import Quadrature
from irtjax.inference.specification import Specification
from irtjax.models import ItemParameters, derivatives, probabilities

INNER_STEPS = 2  # Fisher-scoring steps an M-step: the nodes are few, so a second one costs next to nothing


class State(NamedTuple):
    """Item parameters, and mean and standard deviation (D,) of the population."""

    items: ItemParameters
    mean: jax.Array
    sd: jax.Array


class Answers(NamedTuple):
    """Indicators (J, I) of right and of wrong answers; a missing answer is neither."""

    right: jax.Array
    wrong: jax.Array


def posterior(state: State, answers: Answers, quadrature: Quadrature) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Posterior of every subject over the nodes (Bock and Aitkin 1981).

    Returns:
        The nodes (Q, D) on the scale of ability, the posterior weights (J, Q), and the marginal log-likelihood of each
        subject (J,).
    """
    nodes = state.mean[None, :] + state.sd[None, :] * quadrature.nodes
    p, q = probabilities(state.items, nodes)
    joint = answers.right @ jnp.log(p).T + answers.wrong @ jnp.log(q).T + quadrature.log_weights[None, :]
    marginal = jax.nn.logsumexp(joint, axis=1)
    return nodes, jnp.exp(joint - marginal[:, None]), marginal


def log_likelihood(state: State, answers: Answers, quadrature: Quadrature) -> jax.Array:
    """Marginal log-likelihood of all answers, in nats."""
    return posterior(state, answers, quadrature)[2].sum()


def em_step(
    state: State, answers: Answers, quadrature: Quadrature, specification: Specification, *, expand: bool | jax.Array
) -> tuple[State, jax.Array]:
    """One step of EM, its population expanded or not (see `fold_population`).

    Returns:
        The next state, and the objective that the step began at: marginal log-likelihood plus log-prior.
    """
    nodes, weights, marginal = posterior(state, answers, quadrature)
    # expected numbers of right and wrong answers at each node: all that the items need to know of the subjects
    right, wrong = weights.T @ answers.right, weights.T @ answers.wrong

    def objective(items):
        p, q = probabilities(items, nodes)
        return (right * jnp.log(p) + wrong * jnp.log(q)).sum(axis=0) + log_prior(items, specification)

    def improve(_, items):
        p, q = probabilities(items, nodes)
        slopes = derivatives(items, nodes)
        gradient = jnp.einsum("qi,qik->ik", right / p - wrong / q, slopes)
        information = jnp.einsum("qi,qik,qil->ikl", (right + wrong) / (p * q), slopes, slopes)
        return best_step(items, scoring_step(items, gradient, information, specification), objective, specification)

    items = jax.lax.fori_loop(0, INNER_STEPS, improve, state.items)
    mass = weights.mean(axis=0)
    mean = mass @ nodes
    sd = jnp.sqrt(mass @ (nodes - mean[None, :]) ** 2)
    reached = marginal.sum() + log_prior(state.items, specification).sum()
    return State(*fold_population(items, mean, sd, specification, expand=expand)), reached
