"""EM for short tests: one set of nodes for all subjects, so that both steps are matrix products."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.inference import squarem
from irtjax.inference.item_step import best_step, fold_population, log_prior, parts, scoring_step
from irtjax.inference.quadrature import Quadrature
from irtjax.inference.specification import Specification, without_asymptotes
from irtjax.models import ItemParameters, derivatives, probabilities

EXPANDED = 150  # most EM steps with an expanded population
SMALLEST_GAIN = 1e-8  # nats in three EM steps
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
    p, q = _probabilities(state.items, nodes)
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
        p, q = _probabilities(items, nodes)
        return (right * jnp.log(p) + wrong * jnp.log(q)).sum(axis=0) + log_prior(items, specification)

    def improve(_, items):
        p, q = _probabilities(items, nodes)
        slopes = derivatives(items, nodes)
        gradient = jnp.einsum("qi,qik->ik", right / p - wrong / q, slopes)
        information = jnp.einsum("qi,qik,qil->ikl", (right + wrong) / (p * q), slopes, slopes)
        step = scoring_step(items, gradient, information, specification)
        return best_step(items, parts(step), objective, specification)

    items = jax.lax.fori_loop(0, INNER_STEPS, improve, state.items)
    mass = weights.mean(axis=0)
    mean = mass @ nodes
    sd = jnp.sqrt(mass @ (nodes - mean[None, :]) ** 2)
    reached = marginal.sum() + log_prior(state.items, specification).sum()
    return State(*fold_population(items, mean, sd, specification, expand=expand)), reached


def _probabilities(items: ItemParameters, nodes: jax.Array) -> tuple[jax.Array, jax.Array]:
    """At least 1e-300: an item on its way to infinity must not turn the sums over all others into NaN."""
    return jax.tree.map(lambda p: jnp.maximum(p, 1e-300), probabilities(items, nodes))


def solve(
    values: np.ndarray,
    items: ItemParameters,
    specification: Specification,
    quadrature: Quadrature,
    *,
    tolerance: float,
    max_iterations: int,
    on_iteration: Callable[[int, float], None] | None = None,
) -> tuple[State, Answers, int, bool]:
    """Maximises the marginal likelihood, with priors, in the precision that is switched on.

    Args:
        values: (J, I) int8.
        items: where it starts.
        specification: what is free.
        quadrature: the nodes.
        tolerance: largest change of a parameter in an EM step at which it has converged.
        max_iterations: EM steps after which it ends in any case.
        on_iteration: called with the number of EM steps and the objective after every three.

    Returns:
        Where it ended, the answers as it used them, the EM steps made and whether it has converged.
    """
    dims = specification.dims
    state = State(jax.tree.map(jnp.asarray, items), jnp.zeros(dims), jnp.ones(dims))
    answers = Answers(jnp.asarray(values == 1, float), jnp.asarray(values == 0, float))
    iterations, soon = 0, min(EXPANDED, max_iterations)
    climb = functools.partial(_climb, answers=answers, quadrature=quadrature, on_iteration=on_iteration)
    if np.asarray(specification.free)[:, dims + 1 :].any():
        # the likelihood of asymptotes has several maxima: they are let go where a fit without them has ended
        bare, bare_specification = without_asymptotes(state.items, specification)
        reached, iterations, _ = climb(state._replace(items=bare), bare_specification, True, iterations, soon, 1e-3)
        state = reached._replace(items=reached.items._replace(lower=state.items.lower, upper=state.items.upper))
    # expanded to come near the maximum fast, then plainly to that of the nodes and priors exactly
    state, iterations, _ = climb(state, specification, True, iterations, min(iterations + soon, max_iterations), 1e-4)
    state, iterations, converged = climb(state, specification, False, iterations, max_iterations, tolerance)
    return state, answers, iterations, converged


_em_step = jax.jit(em_step)


def _climb(state, specification, expand, iterations, limit, tolerance, *, answers, quadrature, on_iteration):
    """EM until the largest change in a step is below the tolerance, the objective stands still, or the limit is met.

    Returns:
        The state, the EM steps made so far, and whether it has converged.
    """
    step = functools.partial(
        _em_step, answers=answers, quadrature=quadrature, specification=specification, expand=expand
    )
    last, stalled, converged = -np.inf, 0, False
    while iterations < limit and not converged:
        state, change, objective = squarem.cycle(step, state)
        iterations += 3
        stalled = stalled + 1 if objective - last < SMALLEST_GAIN else 0
        last = objective
        converged = bool(change < tolerance) or stalled == 3
        if on_iteration is not None:
            on_iteration(iterations, float(objective))
    return state, iterations, converged
