"""The fit that a posterior comes to: estimates on the scale that is reported."""

import functools
import math
import time
from typing import Any

import jax
import numpy as np

from irtjax.estimation.driver import Outcome
from irtjax.fits.draws import ItemPosterior
from irtjax.fits.regression import Regression
from irtjax.fits.result import Fit
from irtjax.kernels.likelihood import log_likelihood_2pl
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.sharding import BY_ITEM, BY_SUBJECT, place
from irtjax.populations.normal import Population
from irtjax.responses.values import Responses
from irtjax.svi.directions import Rotation, regression
from irtjax.svi.guide import Normal, item_moments
from irtjax.svi.programs import Settings, steps_per_chunk
from irtjax.types import AnyArray


def result_of(
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
        integration=None,
        unbounded=np.zeros(num_items, bool),
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


@functools.partial(jax.jit, static_argnums=0)
def _log_likelihood(settings: Settings, theta: AnyArray, slope: AnyArray, b: AnyArray, values: jax.Array) -> AnyArray:
    return log_likelihood_2pl(theta, slope, b, values, settings.mesh)
