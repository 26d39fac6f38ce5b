"""The fit that a posterior comes to: estimates on the scale that is reported."""

import functools
import math
import time
from typing import Any, NamedTuple

import jax
import numpy as np

from irtjax.estimation.driver import Outcome
from irtjax.fits.draws import ItemPosterior
from irtjax.fits.result import Fit
from irtjax.kernels import answers
from irtjax.kernels.likelihood import log_likelihood_2pl
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.sharding import BY_ITEM, BY_SUBJECT, place
from irtjax.populations.normal import Population
from irtjax.responses.values import Responses
from irtjax.svi.answers import Dealt, over_blocks
from irtjax.svi.directions import Rotation, regression
from irtjax.svi.guide import Normal, item_moments
from irtjax.svi.programs import Settings, steps_per_chunk
from irtjax.types import AnyArray, Float


class _Estimates(NamedTuple):
    """What a posterior says, on the scale of the search.

    Attributes:
        slope: (I,) posterior means; 1 in the 1PL.
        difficulty: (I,) posterior means.
        difficulty_sd: (I,).
        unit: standard deviation of abilities; 1 in the 1PL, whose unit is the logit.
        columns: of `items.csv` beside difficulties, in that unit.
        items: the posterior of the 2PL's items, from that unit and origin.
        num_parameters: free ones.
    """

    slope: Float[np.ndarray, " I"]
    difficulty: Float[np.ndarray, " I"]
    difficulty_sd: Float[np.ndarray, " I"]
    unit: float
    columns: dict[str, np.ndarray]
    items: ItemPosterior | None
    num_parameters: int


def result_of(
    responses: Responses,
    settings: Settings,
    posterior: dict[str, Normal],
    pivots: np.ndarray | None,
    values: jax.Array | Dealt,
    rotation: Rotation | None,
    *,
    outcome: Outcome,
    began: float,
    details: dict[str, Any],
) -> Fit:
    """Posterior means and standard deviations with mean ability 0 and, in the 2PL, a standard deviation of 1.

    Args:
        responses: that were fitted.
        settings: of the programs.
        posterior: by site, without padding, on the scale of the search.
        pivots: (I,) of the 2PL.
        values: the responses on the devices.
        rotation: of features of the items.
        outcome: how the search ended.
        began: when, by `time.perf_counter`.
        details: entries of `fit.json`.
    """
    ability, ability_sd = map(np.asarray, posterior["ability"])
    num_items, origin = responses.num_items, ability.mean()
    found = _of_1pl(posterior) if pivots is None else _of_2pl(posterior, pivots)
    b, slope = (found.difficulty - origin) / found.unit, found.unit * found.slope
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
            np.zeros(1), np.array([math.sqrt(((ability - origin).var() + (ability_sd**2).mean()) / found.unit**2)])
        ),
        item_columns={"difficulty": b, "difficulty_se": found.difficulty_sd / found.unit, **found.columns},
        ability=(ability - origin) / found.unit,
        ability_se=ability_sd / found.unit,
        log_likelihood=_log_likelihood_at(settings, (ability, found.slope, found.difficulty), values),
        log_likelihood_error=math.nan,
        num_parameters=found.num_parameters,
        iterations=steps_per_chunk(settings.num_responses) * outcome.iterations,
        status=outcome.status,
        integration=None,
        unbounded=np.zeros(num_items, bool),
        seconds=time.perf_counter() - began,
        details=details,
        item_posterior=found.items,
        **_regressions(posterior, settings.model, rotation, origin, found.unit),
    )


def _of_1pl(posterior: dict[str, Normal]) -> _Estimates:
    """Difficulties; the origin is not a parameter."""
    difficulty, difficulty_sd = map(np.asarray, posterior["difficulty"])
    number = len(posterior["ability"][0]) + len(difficulty) - 1
    return _Estimates(np.ones(len(difficulty)), difficulty, difficulty_sd, 1.0, {}, None, number)


def _of_2pl(posterior: dict[str, Normal], pivots: Float[np.ndarray, " I"]) -> _Estimates:
    """Slopes and difficulties; neither origin nor unit is a parameter."""
    ability, ability_sd = map(np.asarray, posterior["ability"])
    origin = ability.mean()
    unit = math.sqrt((ability - origin).var() + (ability_sd**2).mean())
    moments = item_moments(posterior["intercept"], posterior["discrimination"], pivots)
    (slope, slope_sd), (difficulty, difficulty_sd) = (map(np.asarray, x) for x in moments)
    of_logits, of_log_discriminations = (map(np.asarray, posterior[name]) for name in ("intercept", "discrimination"))
    items = ItemPosterior((pivots - origin) / unit, *of_logits, *of_log_discriminations)
    items = items._replace(log_discrimination=items.log_discrimination + math.log(unit))
    columns = {"discrimination": unit * slope, "discrimination_se": unit * slope_sd}
    number = len(ability) + 2 * len(slope) - 2
    return _Estimates(slope, difficulty, difficulty_sd, unit, columns, items, number)


def _log_likelihood_at(settings: Settings, point: tuple[np.ndarray, ...], values: jax.Array | Dealt) -> float:
    """Of the responses at abilities, slopes and difficulties, padded and placed on the devices, in nats."""
    if isinstance(values, Dealt):
        theta, slope, b = point
        items = slope.astype(np.float32), b.astype(np.float32)
        return sum(float(found) for found, _ in over_blocks(_of_answers, theta, items, values, settings.mesh))
    sizes, places = (settings.subjects, settings.items, settings.items), (BY_SUBJECT, BY_ITEM, BY_ITEM)
    placed = [
        place(np.pad(x.astype(np.float32), (0, size.padded - size.number)), settings.mesh, where)
        for x, size, where in zip(point, sizes, places, strict=True)
    ]
    return float(_log_likelihood(settings, *placed, values))


def _regressions(
    posterior: dict[str, Normal], model: str, rotation: Rotation | None, origin: float, unit: float
) -> dict[str, Any]:
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


@functools.partial(jax.jit, static_argnums=0)
def _log_likelihood(settings: Settings, theta: AnyArray, slope: AnyArray, b: AnyArray, values: jax.Array) -> AnyArray:
    return log_likelihood_2pl(theta, slope, b, values, settings.mesh)


_of_answers = jax.jit(answers.log_likelihood_2pl, static_argnames="mesh")
