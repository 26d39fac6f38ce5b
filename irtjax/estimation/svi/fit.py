"""Stochastic variational inference: the fit of a NumPyro model of responses, from responses to estimates."""

import functools
import math
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import NamedSharding

from irtjax import processes
from irtjax.arguments import LARGEST_SEED, whole_number
from irtjax.errors import InputError
from irtjax.estimation.draws import ItemPosterior
from irtjax.estimation.driver import Outcome, run
from irtjax.estimation.item_features import item_features
from irtjax.estimation.regression import Regression
from irtjax.estimation.result import Fit
from irtjax.estimation.svi.directions import Rotation, regression, rotated
from irtjax.estimation.svi.engine import Task, Variational
from irtjax.estimation.svi.guide import Normal, Start, item_moments, relative
from irtjax.estimation.svi.model import MODELS, PRIORS, Directions, PriorFunction, Size, hyperparameters
from irtjax.estimation.svi.programs import PLACES, Settings, steps_per_chunk
from irtjax.estimation.svi.start import STARTS, starting_point
from irtjax.kernels.likelihood import log_likelihood_2pl
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.reading import Parts, log_likelihood_of_parts
from irtjax.kernels.sharding import BY_ITEM, BY_RESPONSE, BY_SUBJECT, EVERYWHERE, ITEMS, SUBJECTS, local_part, place
from irtjax.populations.normal import Population
from irtjax.processes import fetch
from irtjax.responses.matrix import MISSING, require_estimable
from irtjax.responses.stored import Responses, StoredValues, Values, keep
from irtjax.types import AnyArray

MOST_IN_MEMORY = 2**30  # responses; more stay in their files


@processes.collective
def fit_svi(
    responses: Responses,
    model: str = "1pl",
    *,
    priors: str | PriorFunction = "hierarchical",
    start: str = "mml",
    features: Any = None,
    batch_subjects: int | None = None,
    batch_items: int | None = None,
    seed: int = 0,
    max_steps: int = 4000,
    mesh: jax.sharding.Mesh | None = None,
    on_chunk: Callable[[int, float], None] | None = None,
) -> Fit:
    """Fits the 1PL or 2PL by stochastic variational inference (see `response_model` and `guide`).

    Adam runs in chunks of 25 steps (10 on many responses, 100 on very few), in units of the posterior standard
    deviations at the start. In noise the mean of the guide's parameters over a chunk turns back from one chunk to the
    next. When, twice in a row, it does not move on as it did before (`programs._drift`), the step size falls from 0.1
    to 0.02. When that happens again, the fit has converged, and the mean of these two chunks and six more is the
    result.

    The likelihood knows only θ - b (1PL) or a (θ - b) (2PL), so the scale is fixed afterwards: the mean ability of the
    subjects is 0 and, in the 2PL, their standard deviation 1.

    Args:
        responses: at least one observed response of each subject and item.
        model: "1pl" or "2pl".
        priors: "vague", "hierarchical", or a function of the model's name that returns `model.Priors`; it may draw
            hyperparameters of its own as NumPyro sites.
        start: of the guide's locations: "mml", from a fit by marginal maximum likelihood, or "proportions", from logits
            of percent correct.
        features: (I, F) numbers that describe the items, in their order, or a table whose index has their ids. The
            hierarchical priors of difficulties, and of log discriminations, then have means that are regressions on
            them: b_i ~ N(m_b + w' x_i, 1/u_b), with x in standard deviations, w ~ N(0, ω² 1) and ω half-normal(1).
        batch_subjects: subjects in a step, drawn at random; None for all.
        batch_items: items in a step; None for all.
        seed: of the random draws.
        max_steps: where a fit that has not converged is ended (`converged` is then False).
        mesh: devices to spread the fit over, with axes "subjects" and "items" (`irtjax.kernels.sharding.mesh_of`). A
            batch is brought to all of them. If they are of several processes, all of these must call this function.
        on_chunk: called with the number of steps made and the ELBO after each chunk.

    Returns:
        Posterior means and standard deviations; difficulties of the 2PL by `guide.item_moments`. A mean-field guide
        understates the latter where abilities and items are correlated in the posterior: most on short tests. With
        features, their regression too, and in the 2PL that of log discriminations (`slope_regression`).

    Raises:
        InputError: an unknown model, priors or start, no steps, a subject or an item without responses, batches of
            responses that stay in files, or features that are missing, not finite, in several blocks, or with other
            priors.
    """
    if model not in MODELS:
        raise InputError(f"estimator svi fits the {' or the '.join(MODELS)}, not {model!r}: use estimator mml")
    if not callable(priors) and priors not in PRIORS:
        raise InputError(f"unknown priors {priors!r}, expected one of {', '.join(PRIORS)}, or a function")
    if start not in STARTS:
        raise InputError(f"unknown start {start!r}, expected one of {', '.join(STARTS)}")
    if features is not None and priors != "hierarchical":
        raise InputError("`features` go with the hierarchical priors")
    whole_number("seed", seed, 0, LARGEST_SEED)
    whole_number("max_steps", max_steps, 1)
    for name, batch, size in (
        ("batch_subjects", batch_subjects, responses.num_subjects),
        ("batch_items", batch_items, responses.num_items),
    ):
        if batch is not None:
            whole_number(name, batch, 1, size)
    parts = None if mesh is not None else _parts(responses.values)
    if parts is not None and (batch_subjects, batch_items) != (None, None):
        raise InputError("responses that stay in files are fitted whole: leave `batch_subjects` and `batch_items` out")
    require_estimable(responses)
    began = time.perf_counter()
    rows, columns = (1, 1) if mesh is None else (mesh.shape[SUBJECTS], mesh.shape[ITEMS])
    settings = Settings(
        model,
        PRIORS[priors] if isinstance(priors, str) else priors,
        _size(responses.num_subjects, batch_subjects, rows),
        _size(responses.num_items, batch_items, columns),
        mesh,
        parts,
    )
    rotation = None if features is None else rotated(_one_block(features, responses.item_ids))
    names = hyperparameters(settings.priors, model)
    began_at = starting_point(responses, model, start, names, mesh, rotation)
    task = Task(_spread(responses.values, settings), _padded(began_at, settings))

    engine, steps = Variational(settings, seed), steps_per_chunk(settings.num_responses)
    found, outcome = run(
        engine,
        task,
        max_iterations=-(-max_steps // steps),
        patience=sys.maxsize,
        on_iteration=None if on_chunk is None else lambda chunks, info: on_chunk(steps * chunks, info.objective),
    )
    posterior = {
        site: _whole(relative(fetch(task.start.sites[site]), found.mean[site]), np.shape(begun.loc))
        for site, begun in began_at.sites.items()
        if site in PLACES or rotation is not None
    }
    pivots = None if began_at.pivots is None else np.asarray(began_at.pivots, np.float64)
    details = {
        "priors": priors if isinstance(priors, str) else getattr(priors, "__name__", "of the caller"),
        "start": start,
        "elbo": found.elbos[-1],
        "elbo_trace": found.elbos,
        "seed": seed,
    }
    if rotation is not None:
        details["features"] = rotation.features.shape[1]
    return _result(
        responses,
        settings,
        posterior,
        pivots,
        task.values,
        rotation,
        outcome=outcome,
        began=began,
        details=details,
    )


def _one_block(features: Any, item_ids: np.ndarray) -> np.ndarray:
    """The features, whose weights have one variance.

    Raises:
        InputError: features that are bad, or come in several blocks.
    """
    found = item_features(features, item_ids)
    if found.blocks[-1]:
        raise InputError("estimator svi has one variance for the weights of all `features`: give them as one table")
    return found.values


def _parts(values: Values) -> Parts | None:
    """How responses are read that are too many for the memory, from files that blocks of items can be read from."""
    if isinstance(values, StoredValues) and values.source.by_item and values.size > MOST_IN_MEMORY:
        return Parts(values.source, values.shape)
    return None


def _size(number: int, batch: int | None, devices: int) -> Size:
    return Size(number, batch, devices * -(-number // devices))


def _padded(start: Start, settings: Settings) -> Start:
    """The start on the devices, with padding where they divide neither subjects nor items evenly."""

    def one(leaf: Any, site: str) -> jax.Array:
        places = PLACES.get(site, EVERYWHERE)
        size = {BY_SUBJECT: settings.subjects, BY_ITEM: settings.items}.get(places)
        padded = np.asarray(leaf)
        if size is not None:
            ends = [(0, size.padded - size.number), *[(0, 0)] * (padded.ndim - 1)]
            padded = np.pad(padded, ends, constant_values=1.0)
        return jnp.asarray(padded) if settings.mesh is None else place(padded, settings.mesh, places)

    sites = {site: Normal(*(one(leaf, site) for leaf in normal)) for site, normal in start.sites.items()}
    directions = start.directions
    if directions is not None:
        directions = Directions(one(directions.values, "intercept"), one(directions.spread, "weights"))
    return Start(sites, None if start.pivots is None else one(start.pivots, "intercept"), directions)


def _whole(normal: Normal, shape: tuple[int, ...]) -> Normal:
    """In float64, without padding."""
    return Normal(*(np.asarray(leaf, np.float64)[tuple(map(slice, shape))] for leaf in normal))


def _spread(values: Values, settings: Settings) -> jax.Array:
    """The responses on the devices, with padding; none where they are read in parts."""
    if settings.parts is not None:
        return jnp.zeros((0, 0), jnp.int8)
    mesh = settings.mesh
    if mesh is None:
        return jnp.asarray(values[:, :])
    shape, sharding = (settings.subjects.padded, settings.items.padded), NamedSharding(mesh, BY_RESPONSE)
    keep(values, *local_part(mesh, shape))

    def part(index: tuple[slice, ...] | None) -> np.ndarray:
        assert index is not None
        rows, columns = (range(*at.indices(size)) for at, size in zip(index, shape, strict=True))
        found = values[rows.start : rows.stop, columns.start : columns.stop]
        missing = [(0, len(rows) - found.shape[0]), (0, len(columns) - found.shape[1])]
        return np.pad(found, missing, constant_values=MISSING)

    return jax.make_array_from_callback(shape, sharding, part)


@functools.partial(jax.jit, static_argnums=0)
def _log_likelihood(settings: Settings, theta: AnyArray, slope: AnyArray, b: AnyArray, values: jax.Array) -> AnyArray:
    if settings.parts is not None:
        return log_likelihood_of_parts(theta, slope, -slope * b, settings.parts)
    return log_likelihood_2pl(theta, slope, b, values, settings.mesh)


def _result(
    responses: Responses,
    settings: Settings,
    posterior: dict[str, Normal],
    pivots: np.ndarray | None,
    values: jax.Array,
    rotation: Rotation | None,
    *,
    outcome: Outcome,
    began: float,
    details: dict[str, Any],
) -> Fit:
    ability, ability_sd = map(np.asarray, posterior["ability"])
    num_items, origin = responses.num_items, ability.mean()
    if settings.model == "1pl":
        difficulty, difficulty_sd = map(np.asarray, posterior["difficulty"])
        point = ability, np.ones(num_items), difficulty
        unit, slope = 1.0, np.ones(num_items)
        columns: dict[str, np.ndarray] = {}
        item_posterior = None
        num_parameters = responses.num_subjects + num_items - 1  # the origin is not one
    else:
        assert pivots is not None
        of_slopes, of_difficulties = item_moments(posterior["intercept"], posterior["discrimination"], pivots)
        (slope, slope_sd), (difficulty, difficulty_sd) = (map(np.asarray, x) for x in (of_slopes, of_difficulties))
        point = ability, slope, difficulty
        unit = math.sqrt((ability - origin).var() + (ability_sd**2).mean())
        slope = unit * slope
        columns = {"discrimination": slope, "discrimination_se": unit * slope_sd}
        num_parameters = responses.num_subjects + 2 * num_items - 2
        of_logits, of_log_slopes = (map(np.asarray, posterior[name]) for name in ("intercept", "discrimination"))
        item_posterior = ItemPosterior((pivots - origin) / unit, *of_logits, *of_log_slopes)
        item_posterior = item_posterior._replace(log_discrimination=item_posterior.log_discrimination + math.log(unit))
    b = (difficulty - origin) / unit
    placed = [
        place(np.pad(x.astype(np.float32), (0, size.padded - size.number)), settings.mesh, places)
        for x, size, places in zip(
            point,
            (settings.subjects, settings.items, settings.items),
            (BY_SUBJECT, BY_ITEM, BY_ITEM),
            strict=True,
        )
    ]
    log_likelihood = _log_likelihood(settings, *placed, values)
    return Fit(
        responses=responses,
        model=settings.model,
        estimator="svi",
        parameters=ItemParameters(
            slope=slope[:, None],
            intercept=-slope * b,
            lower=np.full(num_items, -np.inf),
            upper=np.full(num_items, np.inf),
        ),
        population=Population(
            np.zeros(1), np.array([math.sqrt(((ability - origin).var() + (ability_sd**2).mean()) / unit**2)])
        ),
        item_columns={"difficulty": b, "difficulty_se": difficulty_sd / unit, **columns},
        ability=(ability - origin) / unit,
        ability_se=ability_sd / unit,
        log_likelihood=float(log_likelihood),
        log_likelihood_error=math.nan,
        num_parameters=num_parameters,
        iterations=steps_per_chunk(settings.num_responses) * outcome.iterations,
        status=outcome.status,
        seconds=time.perf_counter() - began,
        details=details,
        item_posterior=item_posterior,
        **_regressions(posterior, settings.model, rotation, origin, unit),
    )


def _regressions(
    posterior: dict[str, Normal], model: str, rotation: Rotation | None, origin: float, unit: float
) -> dict[str, Regression]:
    """Those of difficulties and of log discriminations, on the scale that is reported."""
    if rotation is None:
        return {}
    of_difficulties = regression(posterior, "difficulty", rotation)
    of_difficulties = of_difficulties._replace(mean=of_difficulties.mean - origin).rescaled(1 / unit)
    if model == "1pl":
        return {"regression": of_difficulties}
    of_slopes = regression(posterior, "discrimination", rotation)
    of_slopes = of_slopes._replace(mean=np.asarray(of_slopes.mean + math.log(unit)))
    return {"regression": of_difficulties, "slope_regression": of_slopes}
