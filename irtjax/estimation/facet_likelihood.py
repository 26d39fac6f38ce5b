"""The likelihood of items and judges, and its maximum: what `irtjax.estimation.facets` fits.

Each pair of an item and a judge is an item of its own, whose parameters are functions of fewer ones, ψ: those of the
items that are free, and the severities of all judges but the last.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy  # its optimizers take a while to import, and few fits need them

from irtjax.estimation.problem import Specification
from irtjax.estimation.specify_families import FamilyPlan
from irtjax.item_models.coded_counts import Coded, coded
from irtjax.item_models.families import Families
from irtjax.item_models.protocol import PredictorParameters
from irtjax.kernels.quadrature import STANDARD_NODES, rectangular
from irtjax.responses.judged import Judged
from irtjax.responses.scaled import MISSING
from irtjax.types import Float, Int

MOST_NODES = 961
TOLERANCE = 1e-3  # nats that twice as many nodes may change
AT_REST = 1e-4  # standard errors that a Newton step may still move
NEWTON_STEPS = 20
STEP = 1e-4  # of parameters, all of which are logits


class Pairs(NamedTuple):
    """Data of the pairs of item and judge: statistics (J, V S), trials (J, V), and what each pair is of (V,)."""

    statistics: jax.Array
    trials: jax.Array
    items: Int[np.ndarray, " V"]
    judges: Int[np.ndarray, " V"]


class Layout(NamedTuple):
    """Where parameters are in ψ: (I, K) places of those of items, the last of all where they are held; severities."""

    places: Int[np.ndarray, "I K"]
    held: Float[np.ndarray, "I K"]
    num_items: int  # free parameters of items
    num_judges: int


class Found(NamedTuple):
    """The maximum.

    Attributes:
        psi: parameters.
        covariance: of these, by the observed information.
        layout: where they are.
        ability: posterior means, by the severities of those who judged.
        ability_se: posterior standard deviations.
        log_likelihood: marginal, in nats.
        error: what twice as many nodes changed of it.
        iterations: quasi-Newton steps.
        nodes: of ability.
        distance: of ψ from the maximum, in standard errors.
    """

    psi: Float[np.ndarray, " P"]
    covariance: Float[np.ndarray, "P P"]
    layout: Layout
    ability: Float[np.ndarray, " J"]
    ability_se: Float[np.ndarray, " J"]
    log_likelihood: float
    error: float
    iterations: int
    nodes: int
    distance: float


def climb(judged: Judged, plan: FamilyPlan, max_iterations: int) -> Found:
    """The maximum, on as many nodes of ability as it takes.

    Args:
        judged: the responses, as the plan has them.
        plan: of the items.
        max_iterations: quasi-Newton steps on each number of nodes.
    """
    layout, psi = _layout(plan, len(judged.judge_ids))
    rows = plan.responses
    given = coded(plan.model, np.asarray(rows.values), rows.trials, np.asarray(plan.items.top))
    plan = plan._replace(items=plan.items._replace(top=given.top))
    pairs = _pairs(judged, given)
    model = given.model.take(pairs.items)
    base = float(given.model.log_base(given.values, given.trials).sum())
    number, iterations = STANDARD_NODES, 0
    while True:
        static = Objective(model, layout, plan, pairs, number)
        result = scipy.optimize.minimize(
            lambda x, static=static: tuple(map(np.asarray, static.value_and_gradient(jnp.asarray(x)))),
            psi,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": max_iterations, "gtol": 1e-5, "ftol": 1e-13},
        )
        psi, covariance, distance = _newton(static, result.x)
        iterations += int(result.nit)
        finer = Objective(model, layout, plan, pairs, 2 * number - 1)
        values = [float(each.log_likelihoods(jnp.asarray(psi)).sum()) for each in (static, finer)]
        error = abs(values[1] - values[0])
        if error < TOLERANCE or number >= MOST_NODES:
            break
        number = finer.number
    ability, ability_se = map(np.asarray, finer.posteriors(jnp.asarray(psi)))
    return Found(psi, covariance, layout, ability, ability_se, values[1] + base, error, iterations, number, distance)


def _newton(
    static: "Objective", psi: Float[np.ndarray, " P"]
) -> tuple[Float[np.ndarray, " P"], Float[np.ndarray, "P P"], float]:
    """Newton's steps to the maximum: where it is, the inverse of the information there, and how far it is away."""
    value, gradient = map(np.asarray, static.value_and_gradient(jnp.asarray(psi)))
    distance = np.inf
    covariance = np.full((len(psi), len(psi)), np.nan)
    for _ in range(NEWTON_STEPS):
        information = static.information(psi)
        try:
            covariance = np.linalg.inv(information)
        except np.linalg.LinAlgError:
            return psi, covariance, np.inf
        step = -covariance @ gradient
        distance = float(np.sqrt(max(-gradient @ step, 0.0)))
        if distance < AT_REST or gradient @ step > 0:
            break
        for share in 0.5 ** np.arange(8):
            new_value, new_gradient = map(np.asarray, static.value_and_gradient(jnp.asarray(psi + share * step)))
            if new_value <= value:
                psi, value, gradient = psi + share * step, new_value, new_gradient
                break
        else:
            break
    return psi, covariance, distance


class Objective:
    """The objective: minus the logarithm of the posterior density of ψ, in nats, and what else is asked of it."""

    def __init__(self, model: Families, layout: Layout, plan: FamilyPlan, pairs: Pairs, number: int) -> None:
        self.number = number
        rule = rectangular(number)
        self._data = pairs.statistics, pairs.trials, jnp.asarray(rule.nodes), jnp.asarray(rule.log_weights)
        top, specification = np.asarray(plan.items.top), plan.specification

        def joint(psi: jax.Array, data: Any) -> jax.Array:
            statistics, trials, nodes, log_weights = data
            items = parameters(psi, layout, top)
            severity = severities(psi, layout)[pairs.judges]
            slope = items.slope[pairs.items]
            shift = severity if plan.in_logits else slope[:, 0] * severity
            virtual = PredictorParameters(
                slope, items.intercept[pairs.items] - shift, items.others[pairs.items], top[pairs.items]
            )
            eta, log_normalizer = model.natural(virtual, nodes, asymptotes=False)
            return statistics @ eta.T - trials @ log_normalizer.T + log_weights[None, :]

        def likelihoods(psi: jax.Array, data: Any) -> jax.Array:
            return jax.scipy.special.logsumexp(joint(psi, data), axis=1)

        def objective(psi: jax.Array, data: Any) -> jax.Array:
            return -likelihoods(psi, data).sum() + _penalty(psi, layout, specification)

        def posteriors(psi: jax.Array, data: Any) -> tuple[jax.Array, jax.Array]:
            weights, theta = jax.nn.softmax(joint(psi, data), axis=1), data[2][:, 0]
            mean = weights @ theta
            return mean, jnp.sqrt(weights @ theta**2 - mean**2)

        self._functions = [jax.jit(one) for one in (jax.value_and_grad(objective), likelihoods, posteriors)]

    def value_and_gradient(self, psi: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Of the objective."""
        return self._functions[0](psi, self._data)

    def information(self, psi: Float[np.ndarray, " P"]) -> Float[np.ndarray, "P P"]:
        """Its Hessian, by differences of the gradient: of `STEP` they are exact to 1e-8."""
        found = np.stack(
            [
                (
                    np.asarray(self.value_and_gradient(jnp.asarray(psi + one))[1])
                    - np.asarray(self.value_and_gradient(jnp.asarray(psi - one))[1])
                )
                / (2 * STEP)
                for one in STEP * np.eye(len(psi))
            ]
        )
        return (found + found.T) / 2

    def log_likelihoods(self, psi: jax.Array) -> jax.Array:
        """Of each subject (J,), without what does not depend on parameters."""
        return self._functions[1](psi, self._data)

    def posteriors(self, psi: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Means and standard deviations (J,) of abilities."""
        return self._functions[2](psi, self._data)


def parameters(psi: jax.Array, layout: Layout, top: Int[np.ndarray, " I"]) -> PredictorParameters:
    """Of the items, for a judge of severity 0."""
    array = jnp.where(layout.places >= 0, psi[jnp.maximum(layout.places, 0)], layout.held)
    return PredictorParameters(array[:, :1], array[:, 1], array[:, 2:], top)


def severities(psi: jax.Array, layout: Layout) -> jax.Array:
    """(R,), which sum to zero."""
    free = psi[layout.num_items :]
    return jnp.concatenate([free, -free.sum(keepdims=True)])


def _penalty(psi: jax.Array, layout: Layout, specification: Specification) -> jax.Array:
    """Minus the logarithm of the density of priors, without constants."""
    array = jnp.where(layout.places >= 0, psi[jnp.maximum(layout.places, 0)], layout.held)
    if specification.asinh_slopes:
        array = array.at[:, 0].set(jnp.arcsinh(array[:, 0]))
    return (
        0.5 * (jnp.asarray(specification.prior_precision) * (array - jnp.asarray(specification.prior_mean)) ** 2).sum()
    )


def _layout(plan: FamilyPlan, num_judges: int) -> tuple[Layout, Float[np.ndarray, " P"]]:
    """The places of the parameters in ψ, and where to start."""
    free = np.asarray(plan.specification.free)
    start = np.concatenate([plan.items.slope, plan.items.intercept[:, None], plan.items.others], axis=1)
    places = np.full(free.shape, MISSING)
    common = [0] if plan.in_logits else []
    number = 0
    for column in range(free.shape[1]):
        chosen = free[:, column]
        if column in (*common, *plan.specification.common_others):
            places[chosen, column], number = number, number + int(chosen.any())
        else:
            places[chosen, column] = number + np.arange(chosen.sum())
            number += int(chosen.sum())
    psi = np.zeros(number + num_judges - 1)
    psi[places[places >= 0]] = start[places >= 0]
    return Layout(places, start, number, num_judges), psi


def _pairs(judged: Judged, given: Coded) -> Pairs:
    """The responses of each subject to each pair of item and judge that there is."""
    rows, beside = judged.of_rows, judged.by_judge_and_item()
    judges, items = np.nonzero(beside)
    column = np.full(beside.shape, -1)
    column[judges, items] = np.arange(len(items))
    row, item = np.nonzero(rows.observed)
    place = judged.subjects[row], column[judged.judges[row], item]
    values = np.full((len(judged.subject_ids), len(items)), float(MISSING))
    values[place] = given.values[row, item]
    trials = np.zeros(values.shape)
    trials[place] = 1 if given.trials is None else given.trials[row, item]
    statistics = np.asarray(given.model.take(items).statistics(values))
    return Pairs(jnp.asarray(statistics), jnp.asarray(trials), items, judges)
