"""Stochastic variational inference of items that are not right or wrong: from responses to estimates."""

import functools
import math
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from irtjax import processes
from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.estimation.driver import Outcome
from irtjax.fits.result import Fit
from irtjax.item_models.beta_binomial import BETA_BINOMIAL
from irtjax.item_models.binomial import BINOMIAL
from irtjax.item_models.listing import columns
from irtjax.item_models.one_pass import Cells, log_likelihood
from irtjax.item_models.protocol import PredictorParameters
from irtjax.kernels.one_pass_answers import ScaledAnswers
from irtjax.kernels.sharding import along_subjects
from irtjax.populations.normal import Population
from irtjax.processes import fetch
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.values import OnScales
from irtjax.svi.answers import Dealt, over_blocks
from irtjax.svi.choice import best_run
from irtjax.svi.dispersed_start import dispersed
from irtjax.svi.engine import Task, Variational
from irtjax.svi.family_model import PRIORS, ModelOfItems
from irtjax.svi.family_start import Begun, begin
from irtjax.svi.fit import check_answers, check_settings, search_of
from irtjax.svi.guide import Normal, relative
from irtjax.svi.placing import answers_on_devices, size_of, start_on_devices, without_padding
from irtjax.svi.programs import Settings, steps_per_chunk
from irtjax.types import Float

BY_SVI = ("graded", "gpcm", "pcm", "rsm", "nominal", "binomial", "beta_binomial", "ordered_beta", "beta")
BLOCK = 2**20  # responses, of which constants are added up at once


@checks_types
@processes.collective
def fit_svi_families(
    responses: OnScales,
    model: str,
    *,
    priors: str = "hierarchical",
    start: str = "proportions",
    batch_subjects: int | None = None,
    batch_items: int | None = None,
    batch_answers: int | None = None,
    seed: int = 0,
    max_steps: int = 4000,
    mesh: jax.sharding.Mesh | None = None,
    on_chunk: Callable[[int, float], None] | None = None,
) -> Fit:
    """Fits one model of grades, categories, counts or shares by stochastic variational inference.

    As `svi.fit.fit_svi`, with slopes that are positive, and normal posteriors of what else an item has: logarithms of
    gaps between thresholds, steps, logarithms of precisions, cuts.

    Args:
        responses: at least one observed response of each subject and item.
        model: one of `BY_SVI`.
        priors: "vague" or "hierarchical" (`svi.family_model`).
        start: "proportions", from frequencies and mean responses (`svi.family_start`); "best" is the same.
        batch_subjects: subjects in a step, drawn at random; None for all. Of `SparseResponses` in blocks, as there.
        batch_items: items in a step; None for all. Not of `SparseResponses`.
        batch_answers: of `SparseResponses`: answers in a step, as there.
        seed: of the random draws.
        max_steps: where a fit that has not converged is ended.
        mesh: of devices over which `SparseResponses` are spread, as there. A matrix is on one.
        on_chunk: called with the number of steps and the ELBO after each chunk.

    Returns:
        Posterior means and standard deviations; errors of difficulties and thresholds by the delta method.

    Raises:
        InputError: an unknown model, priors or start, no steps, responses that cannot be fitted, or batches that single
            answers, or a matrix, do not go with.
    """
    if model not in BY_SVI:
        raise InputError(f"estimator svi fits {', '.join(BY_SVI)}, not {model!r}: use estimator mml")
    if priors not in PRIORS:
        raise InputError(f"unknown priors {priors!r} of the {model}, expected one of {', '.join(PRIORS)}")
    if start not in ("best", "proportions"):
        raise InputError(f"unknown start {start!r} of the {model}, expected proportions")
    check_settings(responses, batch_subjects, batch_items, seed, max_steps)
    check_answers(responses, batch_subjects, batch_items, batch_answers, mesh)
    began = time.perf_counter()
    sparse = isinstance(responses, SparseResponses)
    mesh = along_subjects(mesh) if sparse else None
    deal = functools.partial(
        answers_on_devices, batch_subjects=batch_subjects, batch_answers=batch_answers, seed=seed, mesh=mesh
    )
    begun = _begin(responses, model, priors == "hierarchical", deal, mesh)
    settings = Settings(
        begun.model,
        PRIORS[priors],
        size_of(responses.num_subjects, None if sparse else batch_subjects, 1 if mesh is None else mesh.size),
        size_of(responses.num_items, batch_items, 1),
        mesh,
        responses.num_answers if isinstance(responses, SparseResponses) else None,
    )
    engine, task = Variational(settings, seed), Task(begun.cells, start_on_devices(begun.start, settings))
    _, best, chosen = best_run(engine, {"proportions": task}, search_of(engine, max_steps, on_chunk))
    sites = fetch(best.task.start.sites)
    posterior = {
        site: without_padding(relative(sites[site], best.found.mean[site]), np.shape(normal.loc))
        for site, normal in begun.start.sites.items()
    }
    constant = _log_base(begun)
    elbos = [elbo + constant for elbo in best.found.elbos]
    details = {
        "models": [model] * responses.num_items,
        "grades": [None if scale.labels is None else list(scale.labels) for scale in begun.responses.scales],
        "priors": priors,
        "start": "proportions",
        **chosen,
        "elbo": elbos[-1],
        "elbo_trace": elbos,
        "seed": seed,
    }
    return _result(begun, settings, posterior, best.outcome, constant, began, details)


def _begin(
    responses: OnScales,
    model: str,
    hierarchical: bool,
    deal: Callable[[SparseResponses], Dealt],
    mesh: jax.sharding.Mesh | None,
) -> Begun:
    if model != BETA_BINOMIAL.name:
        return begin(responses, model, hierarchical, deal, mesh)
    return dispersed(begin(responses, BINOMIAL.name, hierarchical, deal, mesh), model, hierarchical)


def _log_base(begun: Begun) -> float:
    """Σ log h of all responses."""
    responses, families = begun.responses, begun.model.families
    if isinstance(responses, SparseResponses):  # each as if it were all that a subject had said
        trials = None if responses.trials is None else responses.trials[:, None]
        return float(families.log_base(np.asarray(responses.answers)[:, None], trials).sum())
    total, each = 0.0, max(1, BLOCK // responses.num_subjects)
    for at in range(0, responses.num_items, each):
        part = slice(at, at + each)
        trials = None if responses.trials is None else responses.trials[:, part]
        total += float(families.log_base(np.asarray(responses.values[:, part]), trials).sum())
    return total


def _result(
    begun: Begun,
    settings: Settings,
    posterior: dict[str, Normal],
    outcome: Outcome,
    constant: float,
    began: float,
    details: dict[str, Any],
) -> Fit:
    """Estimates with mean ability 0 and, where items have slopes, a standard deviation of 1."""
    responses, model = begun.responses, begun.model
    ability, ability_sd = map(np.asarray, posterior["ability"])
    items, covariances = _items(begun, posterior)
    origin, spread = float(ability.mean()), math.sqrt(ability.var() + (ability_sd**2).mean())
    unit = spread if model.own_slopes or not model.has_places else 1.0
    numbers = PredictorParameters(*(jnp.asarray(leaf, jnp.float32) for leaf in items))._replace(top=begun.cells.top)
    value = _log_likelihood_at(begun, ability, numbers, settings.mesh)
    items, covariances = _moved(items, covariances, model, origin, unit)
    free = int(np.asarray(begun.cells.free).sum()) + responses.num_items * (model.has_places + model.own_slopes)
    return Fit(
        responses=responses,
        model=model.name,
        estimator="svi",
        parameters=items,
        population=Population(np.zeros(1), np.array([spread / unit])),
        item_columns=columns(model.families, items, covariances),
        ability=(ability - origin) / unit,
        ability_se=ability_sd / unit,
        log_likelihood=value + constant,
        log_likelihood_error=math.nan,
        # origin and, where slopes are free, unit are none
        num_parameters=responses.num_subjects + free - (2 if model.own_slopes or not model.has_places else 1),
        iterations=steps_per_chunk(settings.num_responses) * outcome.iterations,
        status=outcome.status,
        integration=None,
        unbounded=np.zeros(responses.num_items, bool),
        seconds=time.perf_counter() - began,
        details=details,
    )


def _items(begun: Begun, posterior: dict[str, Normal]) -> tuple[PredictorParameters, Float[np.ndarray, "I K K"]]:
    """Posterior means of slopes, intercepts and others, and their covariances.

    With log a ~ N(m, v), independent of the intercept c at ability t: the intercept is c - a t.
    """
    model, number = begun.model, begun.responses.num_items
    slope: np.ndarray = np.ones(number)
    intercept: np.ndarray = np.zeros(number)
    others: np.ndarray = np.zeros((number, model.num_others))
    covariances = np.zeros((number, 2 + model.num_others, 2 + model.num_others))
    if model.own_slopes:
        mean, sd = map(np.asarray, posterior["discrimination"])
        pivots = np.asarray(begun.start.pivots, np.float64)
        slope = np.exp(mean + sd**2 / 2)
        of_slope = slope**2 * np.expm1(sd**2)
        c, of_c = map(np.asarray, posterior["intercept"])
        intercept = c - slope * pivots
        covariances[:, 0, 0], covariances[:, 1, 1] = of_slope, of_c**2 + pivots**2 * of_slope
        covariances[:, 0, 1] = covariances[:, 1, 0] = -pivots * of_slope
    elif model.has_places:
        b, of_b = map(np.asarray, posterior["difficulty"])
        intercept, covariances[:, 1, 1] = -b, of_b**2
    if model.num_others:
        mean, sd = map(np.asarray, posterior["steps" if model.common_steps else "others"])
        free = np.asarray(begun.cells.free)
        others[:] = np.where(free, mean, np.asarray(begun.cells.held))
        places = np.arange(2, 2 + model.num_others)
        covariances[:, places, places] = np.where(free, sd**2, 0.0)
    return PredictorParameters(slope[:, None], intercept, others, np.asarray(begun.cells.top)), covariances


def _moved(
    items: PredictorParameters,
    covariances: Float[np.ndarray, "I K K"],
    model: ModelOfItems,
    origin: float,
    unit: float,
) -> tuple[PredictorParameters, Float[np.ndarray, "I K K"]]:
    """Items on the scale on which abilities are (θ - origin) / unit: a map of (slope, intercept, others) of each."""
    size, half = covariances.shape[1], model.num_others // 2
    move = np.eye(size)
    slopes, intercepts = ([0], [1]) if model.has_places else (range(2, 2 + half), range(2 + half, 2 + 2 * half))
    for k, n in zip(slopes, intercepts, strict=True):
        move[k, k], move[n, k] = unit, origin
    array = np.concatenate([items.slope, items.intercept[:, None], items.others], axis=1) @ move.T
    moved = items._replace(slope=array[:, :1], intercept=array[:, 1], others=array[:, 2:])
    return moved, move @ covariances @ move.T


def _log_likelihood_at(
    begun: Begun, ability: Float[np.ndarray, " J"], items: PredictorParameters, mesh: jax.sharding.Mesh | None
) -> float:
    """At the posterior means, without log h."""
    known, of = begun.cells, functools.partial(_log_likelihood, begun.model)
    if not isinstance(known.cells, Dealt):
        return float(of(jnp.asarray(ability, jnp.float32), items, known.between, known.cells))
    share = known.between / len(known.cells.answers.by_item.keys)
    return sum(float(found) for found, _ in over_blocks(of, ability, (items, share), known.cells, mesh))


@functools.partial(jax.jit, static_argnums=0, static_argnames="mesh")
def _log_likelihood(
    model: ModelOfItems,
    ability: Any,
    items: PredictorParameters,
    between: Any,
    cells: Cells | ScaledAnswers,
    *,
    mesh: jax.sharding.Mesh | None = None,
) -> jax.Array:
    return jnp.asarray(log_likelihood(model.families, ability, items, cells, between, mesh))
