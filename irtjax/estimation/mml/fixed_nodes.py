"""EM for short tests: one set of nodes for all subjects, so that both steps are matrix products.

Arrays with a row per subject stay on the device, in one small compiled function. Arrays of items by nodes have a few
thousand numbers: NumPy handles them, without compilation.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.estimation.mml import squarem
from irtjax.estimation.mml.item_step import (
    as_array,
    as_items,
    best_step,
    fold_population,
    fractions,
    log_prior,
    scoring_step,
)
from irtjax.estimation.parameterization import Specification, without_asymptotes
from irtjax.kernels.models import ItemParameters, derivatives, probabilities
from irtjax.kernels.quadrature import Quadrature
from irtjax.responses.matrix import MISSING
from irtjax.types import AnyArray, Float, Int

EXPANDED = 150  # most EM steps with an expanded population
SMALLEST_GAIN = 1e-8  # nats in three EM steps
ROUNDING = 1e-9  # nats: a fall by less is none
INNER_STEPS = 2  # Fisher-scoring steps in each M-step: the nodes are few, so a second one costs next to nothing


class State(NamedTuple):
    """Item parameters, and mean and standard deviation (D,) of the population; NumPy arrays."""

    items: ItemParameters
    mean: AnyArray
    sd: AnyArray


class Answers(NamedTuple):
    """Indicators (J, I) of right and of observed answers, the latter None where all were observed."""

    right: AnyArray
    observed: AnyArray | None


class Expectation(NamedTuple):
    """What the E-step finds.

    Attributes:
        weights: (J, Q) posterior of every subject over the nodes.
        right: (Q, I) expected number of right answers at each node.
        observed: (Q, I) likewise of answers, or (Q, 1) where all were observed.
        mass: (Q,) expected share of subjects at each node.
        log_likelihood: of all answers, in nats.
    """

    weights: jax.Array
    right: jax.Array
    observed: jax.Array
    mass: jax.Array
    log_likelihood: jax.Array


def to_answers(values: Int[np.ndarray, "J I"]) -> Answers:
    """Puts responses (J, I) int8 on the device."""
    observed = values != MISSING
    return jax.device_put(Answers((values == 1).astype(float), None if observed.all() else observed.astype(float)))


def has_asymptotes(items: ItemParameters) -> bool:
    """Whether any item has one."""
    return bool(np.isfinite(items.lower).any() or np.isfinite(items.upper).any())


def place_nodes(state: State, quadrature: Quadrature) -> Float[np.ndarray, "Q D"]:
    """The nodes (Q, D) on the scale of ability."""
    return np.asarray(state.mean[None, :] + state.sd[None, :] * quadrature.nodes)


def curves(
    items: ItemParameters, nodes: Float[np.ndarray, "Q D"]
) -> tuple[Float[np.ndarray, "Q I"], Float[np.ndarray, "Q I"]]:
    """Probabilities (Q, I) of a right and of a wrong answer.

    At least 1e-300: an item on its way to infinity must not turn the sums over all others into NaN.
    """
    p, q = probabilities(items, nodes)
    return np.maximum(p, 1e-300), np.maximum(q, 1e-300)


def expectation(state: State, answers: Answers, quadrature: Quadrature) -> Expectation:
    """Posteriors over the nodes, and what the items need to know of the subjects (Bock and Aitkin 1981)."""
    p, q = curves(state.items, place_nodes(state, quadrature))
    return _expectation(np.log(p), np.log(q), quadrature.log_weights, answers)


@jax.jit
def _expectation(log_p: jax.Array, log_q: jax.Array, log_weights: jax.Array, answers: Answers) -> Expectation:
    right, observed = answers
    joint = right @ (log_p - log_q).T + log_weights[None, :]
    joint += log_q.sum(axis=1)[None, :] if observed is None else observed @ log_q.T
    largest = joint.max(axis=1)
    weights = jnp.exp(joint - largest[:, None])
    total = weights.sum(axis=1)
    weights /= total[:, None]
    mass = weights.sum(axis=0)
    answered = mass[:, None] if observed is None else weights.T @ observed
    return Expectation(weights, weights.T @ right, answered, mass / right.shape[0], (largest + jnp.log(total)).sum())


@np.errstate(all="ignore")  # an item may run off to infinity
def em_step(
    state: State, answers: Answers, quadrature: Quadrature, specification: Specification, *, expand: bool
) -> tuple[State, float]:
    """One step of EM, its population expanded or not (see `fold_population`).

    Returns:
        The next state, and the objective that the step began at: marginal log-likelihood plus log-prior.
    """
    nodes, asymptotes = place_nodes(state, quadrature), has_asymptotes(state.items)
    p, q = curves(state.items, nodes)
    log_p, log_q = np.log(p), np.log(q)
    expected = _expectation(log_p, log_q, quadrature.log_weights, answers)
    right, observed, mass = (np.asarray(leaf) for leaf in (expected.right, expected.observed, expected.mass))
    wrong = observed - right

    def evaluate(items: ItemParameters) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        p, q = curves(items, nodes)
        return p, q, (right * np.log(p) + wrong * np.log(q)).sum(axis=0) + log_prior(items, specification)

    items, prior = state.items, log_prior(state.items, specification)
    value = (right * log_p + wrong * log_q).sum(axis=0) + prior
    for _ in range(INNER_STEPS):
        gradient, information = _score(items, nodes, p, q, right, wrong, asymptotes)
        step = scoring_step(items, gradient, information, specification)
        # without asymptotes the objective is concave, and the whole step hardly ever overshoots
        if not asymptotes:
            whole = as_items(as_array(items) + step)
            *at_whole, after = evaluate(whole)
            if _rises(after - value, specification):
                items, (p, q), value = whole, at_whole, after
                continue
        items = best_step(items, fractions(step), lambda items: evaluate(items)[2], specification)
        p, q, value = evaluate(items)
    mean = mass @ nodes
    sd = np.sqrt(mass @ (nodes - mean[None, :]) ** 2)
    reached = float(expected.log_likelihood) + float(prior.sum())
    return State(*fold_population(items, mean, sd, specification, expand=expand)), reached


def _score(
    items: ItemParameters,
    nodes: np.ndarray,
    p: np.ndarray,
    q: np.ndarray,
    right: np.ndarray,
    wrong: np.ndarray,
    asymptotes: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Gradient (I, K) and expected information (I, K, K) of answers counted at nodes; K is D + 1 without asymptotes."""
    if asymptotes:
        slopes = derivatives(items, nodes)
        gradient = np.einsum("qi,qik->ik", right / p - wrong / q, slopes)
        return gradient, np.einsum("qik,qil->ikl", ((right + wrong) / (p * q))[:, :, None] * slopes, slopes)
    design = np.concatenate([nodes, np.ones_like(nodes[:, :1])], axis=1)
    products = (design[:, :, None] * design[:, None, :]).reshape(len(nodes), -1)
    information = ((right + wrong) * p * q).T @ products
    return (right * q - wrong * p).T @ design, information.reshape(-1, *2 * design.shape[1:])


def _rises(gain: np.ndarray, specification: Specification) -> bool:
    """Whether no item loses; items that share a slope count as one."""
    if specification.has_shared:
        gain = np.where(specification.shared, gain[specification.shared].sum(), gain)
    return bool((gain > -ROUNDING).all())


def solve(
    values: Int[np.ndarray, "J I"],
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
    state, answers = State(items, np.zeros(dims), np.ones(dims)), to_answers(values)
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


def resume(
    state: State,
    answers: Answers,
    specification: Specification,
    quadrature: Quadrature,
    *,
    until: Callable[[float, float], bool],
    max_iterations: int,
) -> tuple[State, float]:
    """Goes on with plain EM from a state near the maximum.

    Args:
        state: where it begins.
        answers: of all subjects.
        specification: what is free.
        quadrature: the nodes.
        until: given the objective, and by how much it rose in three EM steps, whether that is enough.
        max_iterations: EM steps after which it ends in any case.

    Returns:
        Where it ended, and the objective shortly before.
    """
    step = functools.partial(em_step, answers=answers, quadrature=quadrature, specification=specification, expand=False)
    last = -np.inf
    for _ in range(0, max_iterations, 3):
        state, _, objective = squarem.cycle(step, state)
        if until(objective, objective - last):
            break
        last = objective
    return state, float(objective)


def _climb(
    state: State,
    specification: Specification,
    expand: bool,
    iterations: int,
    limit: int,
    tolerance: float,
    *,
    answers: Answers,
    quadrature: Quadrature,
    on_iteration: Callable[[int, float], None] | None,
) -> tuple[State, int, bool]:
    """EM until the largest change in a step is below the tolerance, the objective stands still, or the limit is met.

    Returns:
        The state, the EM steps made so far, and whether it has converged.
    """
    step = functools.partial(
        em_step, answers=answers, quadrature=quadrature, specification=specification, expand=expand
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
