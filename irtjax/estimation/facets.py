r"""Judges differ: severities beside difficulties, by marginal maximum likelihood (many-facet models, Linacre 1989).

    P(y_jir = k | θ_j) is that of the item with θ_j - s_r for θ_j,    Σ_r s_r = 0

With slopes of 1, s_r is in logits beside b_i: the many-facet Rasch model θ_j - b_i - s_r - τ_k. The predictor of item i
and judge r is a_i (θ - s_r) + intercept_i, so that each pair is an item of its own whose parameters are functions of
fewer ones, ψ. The likelihood of ψ is climbed by quasi-Newton steps, and then by Newton's, whose last gives the standard
errors by the observed information (differences of exact gradients).
"""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

from irtjax.errors import InputError
from irtjax.estimation import empirical_priors
from irtjax.estimation.problem import Specification
from irtjax.estimation.specify_families import FamilyPlan, plan_families
from irtjax.fits.result import Fit
from irtjax.fits.status import Status
from irtjax.item_models.families import Families
from irtjax.item_models.listing import CATEGORICAL, WITH_ASYMPTOTES, columns, model_of
from irtjax.item_models.protocol import PredictorParameters
from irtjax.kernels.quadrature import STANDARD_NODES, rectangular
from irtjax.populations.normal import Population
from irtjax.responses.judged import Judged, pooled, require_comparable, without_common_subjects
from irtjax.responses.scaled import MISSING
from irtjax.types import Float, Int

MOST_NODES = 961
TOLERANCE = 1e-3  # nats that twice as many nodes may change
AT_REST = 1e-4  # standard errors that a Newton step may still move
NEWTON_STEPS = 20
STEP = 1e-4  # of parameters, all of which are logits


class _Pairs(NamedTuple):
    """Data of the pairs of item and judge: statistics (J, V S), trials (J, V), and what each pair is of (V,)."""

    statistics: jax.Array
    trials: jax.Array
    items: Int[np.ndarray, " V"]
    judges: Int[np.ndarray, " V"]


class _Layout(NamedTuple):
    """Where parameters are in ψ: (I, K) places of those of items, the last of all where they are held; severities."""

    places: Int[np.ndarray, "I K"]
    held: Float[np.ndarray, "I K"]
    num_items: int  # free parameters of items
    num_judges: int


def fit_facets(
    judged: Judged,
    model: str | Sequence[str],
    facet: str,
    *,
    priors: str | None = "auto",
    max_iterations: int = 500,
) -> Fit:
    """Fits items and judges by marginal maximum likelihood.

    Args:
        judged: the responses.
        model: of the items, by the names of `irtjax.item_models.listing.MODELS`; not nominal.
        facet: what judges are called.
        priors: None, or "auto": those of `plan_families` before they are estimated. Severities have none.
        max_iterations: quasi-Newton steps.

    Returns:
        A fit of the items under a judge of severity 0, whose responses are those of all judges together; its
        `details["facet"]` has the judges. Abilities are EAPs that take the severity of each judge into account.

    Raises:
        InputError: judges that cannot be compared, a model without order, or what `plan_families` refuses.
    """
    began = time.perf_counter()
    models = (model,) * judged.of_rows.num_items if isinstance(model, str) else tuple(model)
    if "nominal" in models:
        raise InputError("categories without order have no severity: take graded, gpcm, pcm or rsm beside a facet")
    if curved := set(models) & set(WITH_ASYMPTOTES):
        raise InputError(f"the {min(curved)} has no facet: take the binomial")
    require_comparable(judged)
    plan = plan_families(judged.of_rows, models, 1, priors)
    judged = judged._replace(of_rows=plan.responses)
    with jax.enable_x64(True):
        found = _climb(judged, plan, models, max_iterations)
    return _fit(judged, plan, models, facet, found, time.perf_counter() - began)


class _Found(NamedTuple):
    psi: Float[np.ndarray, " P"]
    covariance: Float[np.ndarray, "P P"]
    layout: _Layout
    ability: Float[np.ndarray, " J"]
    ability_se: Float[np.ndarray, " J"]
    log_likelihood: float
    error: float
    iterations: int
    nodes: int
    distance: float


def _climb(judged: Judged, plan: FamilyPlan, models: tuple[str, ...], max_iterations: int) -> _Found:
    layout, psi = _layout(plan, len(judged.judge_ids))
    pairs = _pairs(judged, plan.model)
    model = model_of(tuple(models[i] for i in pairs.items), np.asarray(plan.items.top)[pairs.items])
    base = float(plan.model.log_base(np.asarray(plan.responses.values), plan.responses.trials).sum())
    number, iterations = STANDARD_NODES, 0
    while True:
        static = _Static(model, layout, plan, pairs, number)
        result = scipy.optimize.minimize(
            lambda x, static=static: tuple(map(np.asarray, static.value_and_gradient(jnp.asarray(x)))),
            psi,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": max_iterations, "gtol": 1e-5, "ftol": 1e-13},
        )
        psi, covariance, distance = _newton(static, result.x)
        iterations += int(result.nit)
        finer = _Static(model, layout, plan, pairs, 2 * number - 1)
        values = [float(each.log_likelihoods(jnp.asarray(psi)).sum()) for each in (static, finer)]
        error = abs(values[1] - values[0])
        if error < TOLERANCE or number >= MOST_NODES:
            break
        number = finer.number
    ability, ability_se = map(np.asarray, finer.posteriors(jnp.asarray(psi)))
    return _Found(psi, covariance, layout, ability, ability_se, values[1] + base, error, iterations, number, distance)


def _newton(
    static: "_Static", psi: Float[np.ndarray, " P"]
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


class _Static:
    """The objective: minus the logarithm of the posterior density of ψ, in nats, and what else is asked of it."""

    def __init__(self, model: Families, layout: _Layout, plan: FamilyPlan, pairs: _Pairs, number: int) -> None:
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


def parameters(psi: jax.Array, layout: _Layout, top: Int[np.ndarray, " I"]) -> PredictorParameters:
    """Of the items, for a judge of severity 0."""
    array = jnp.where(layout.places >= 0, psi[jnp.maximum(layout.places, 0)], layout.held)
    return PredictorParameters(array[:, :1], array[:, 1], array[:, 2:], top)


def severities(psi: jax.Array, layout: _Layout) -> jax.Array:
    """(R,), which sum to zero."""
    free = psi[layout.num_items :]
    return jnp.concatenate([free, -free.sum(keepdims=True)])


def _penalty(psi: jax.Array, layout: _Layout, specification: Specification) -> jax.Array:
    """Minus the logarithm of the density of priors, without constants."""
    array = jnp.where(layout.places >= 0, psi[jnp.maximum(layout.places, 0)], layout.held)
    if specification.asinh_slopes:
        array = array.at[:, 0].set(jnp.arcsinh(array[:, 0]))
    return (
        0.5 * (jnp.asarray(specification.prior_precision) * (array - jnp.asarray(specification.prior_mean)) ** 2).sum()
    )


def _layout(plan: FamilyPlan, num_judges: int) -> tuple[_Layout, Float[np.ndarray, " P"]]:
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
    return _Layout(places, start, number, num_judges), psi


def _pairs(judged: Judged, model: Families) -> _Pairs:
    """The responses of each subject to each pair of item and judge that there is."""
    rows, beside = judged.of_rows, judged.by_judge_and_item()
    judges, items = np.nonzero(beside)
    column = np.full(beside.shape, -1)
    column[judges, items] = np.arange(len(items))
    row, item = np.nonzero(rows.observed)
    place = judged.subjects[row], column[judged.judges[row], item]
    values = np.full((len(judged.subject_ids), len(items)), float(MISSING))
    values[place] = np.asarray(rows.values)[row, item]
    trials = np.zeros(values.shape)
    trials[place] = 1 if rows.trials is None else rows.trials[row, item]
    statistics = np.asarray(model.take(items).statistics(values))
    return _Pairs(jnp.asarray(statistics), jnp.asarray(trials), items, judges)


def _fit(judged: Judged, plan: FamilyPlan, models: tuple[str, ...], facet: str, found: _Found, seconds: float) -> Fit:
    """The result, in the terms of others."""
    layout, specification = found.layout, plan.specification
    array = np.where(layout.places >= 0, found.psi[np.maximum(layout.places, 0)], layout.held)
    known = (layout.places >= 0)[:, :, None] & (layout.places >= 0)[:, None, :]
    places = np.maximum(layout.places, 0)
    covariances = np.where(known, found.covariance[places[:, :, None], places[:, None, :]], 0.0)
    unit = float(array[0, 0]) if plan.in_logits else 1.0
    if plan.in_logits:
        array[:, 0], covariances[:, 0], covariances[:, :, 0] = 1.0, 0.0, 0.0
    items = PredictorParameters(array[:, :1], array[:, 1], array[:, 2:], np.asarray(plan.items.top))
    responses = pooled(judged, plan.responses)
    at_rest = found.distance < 100 * AT_REST
    details = {
        "models": list(models),
        "grades": [None if scale.labels is None else list(scale.labels) for scale in responses.scales],
        "without_maximum": [],
        "distance_from_maximum": None if not np.isfinite(found.distance) else found.distance,
        "maximum_likelihood": not empirical_priors.has_any(specification),
        "priors": empirical_priors.summary(specification, "step" if set(models) <= set(CATEGORICAL) else "other"),
        "nodes": found.nodes,
        "facet": _of_judges(judged, found, facet),
    }
    return Fit(
        responses=responses,
        model=models[0] if len(set(models)) == 1 else "mixed",
        estimator="mml",
        parameters=items,
        population=Population(np.zeros(1), np.array([abs(unit)])),
        item_columns=columns(plan.model, items, covariances),
        ability=unit * found.ability,
        ability_se=abs(unit) * found.ability_se,
        log_likelihood=found.log_likelihood,
        log_likelihood_error=found.error,
        num_parameters=len(found.psi),
        iterations=found.iterations,
        status=Status.CONVERGED if at_rest else Status.SHORT,
        integration="nodes",
        unbounded=np.zeros(responses.num_items, bool),
        seconds=seconds,
        details=details,
    )


def _of_judges(judged: Judged, found: _Found, facet: str) -> dict[str, Any]:
    """Severities with standard errors, and what each judge gave."""
    size = found.layout.num_judges
    contrast = np.concatenate([np.eye(size - 1), -np.ones((1, size - 1))]) if size > 1 else np.zeros((1, 0))
    free = slice(found.layout.num_items, None)
    number, mean = judged.means()
    variance = np.einsum("rk,kl,rl->r", contrast, found.covariance[free, free], contrast)
    return {
        "name": facet,
        "ids": judged.judge_ids.tolist(),
        "severity": (contrast @ found.psi[free]).tolist(),
        "severity_se": np.sqrt(np.maximum(variance, 0.0)).tolist(),
        "num_responses": number.tolist(),
        "mean_response": mean.tolist(),
        "no_common_subjects": without_common_subjects(judged),
    }
