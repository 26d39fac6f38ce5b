"""Items from responses and from features of the items at once (amortised IRT).

    b_i = f(x_i) + r_i,            r_i ~ N(0, τ²)
    asinh a_i = g(x_i) + q_i,      q_i ~ N(0, τ_a²)

An item with many responses keeps its own estimate, one with few borrows from items like it, and one with none has f
and g. The slopes, which asinh makes logarithms of but for those near 0 and below, are those of the 2PL.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from irtjax.errors import InputError
from irtjax.estimation.driver import Status
from irtjax.estimation.item_features import ItemFeatures, item_features
from irtjax.estimation.item_likelihoods import ItemLikelihoods, item_likelihoods
from irtjax.estimation.mml.fit import fit_mml
from irtjax.estimation.priors import LOG_SLOPE_PRIOR, ItemPriors
from irtjax.estimation.regression import Regression, regress
from irtjax.estimation.result import Fit
from irtjax.responses.stored import Responses
from irtjax.types import Float

START_SD = 3.0  # of difficulties, in logits, before anything is known of them
LEAST_SD = 0.05  # of what features do not tell, in a prior: less would stop every step
FLATTEST = 0.2  # times the median slope that features foretell: flatter ones are taken for it
SETTLED = 0.02  # change of f in standard deviations of the residual, or of log τ, that is none
MOST_ROUNDS = 15
MODELS = ("rasch", "1pl", "2pl")


def fit_amortised(
    responses: Responses,
    model: str | Sequence[str] = "1pl",
    *,
    features: Any,
    on_round: Callable[[int, float], None] | None = None,
    **options: Any,
) -> Fit:
    """Fits by marginal maximum likelihood, with priors of each item whose means are regressions on features.

    The regressions and the fit take turns until neither moves the other. Each round takes what the responses alone say
    of each item (`item_likelihoods`), regresses it (`regression.regress`), and fits again under the priors N(f, τ²).
    Where it ends, items and coefficients are at their joint mode, and the standard deviations of residuals and
    coefficients where the responses are likeliest (empirical Bayes, in the normal approximation).

    The prior is one of the intercept c, as a difficulty b = -c/a has no place for a slope near 0. In the Rasch model c
    is -b. All is done with that: the 1PL is the same model in other units. In the 2PL c_i ~ N(-ā_i f(x_i), ā_i² τ²),
    where ā_i = sinh g(x_i) is the slope that features foretell: f is the difficulty at that slope.

    Args:
        responses: as in `fit_mml`.
        model: "rasch" or "1pl", which are the same model in other units, or "2pl".
        features: (I, F) numbers in the order of the items, or a table whose index has their ids, with others. A dict of
            these, by any names, are blocks whose weights have a variance each: for a few columns beside hundreds of
            numbers of an encoder.
        on_round: called with the number of rounds and what `SETTLED` is compared with.
        **options: others of `fit_mml`.

    Returns:
        The fit under the last of these priors, with `regression`, and `slope_regression` in the 2PL; not converged if
        the rounds did not settle.

    Raises:
        InputError: features that are missing or not finite, or what `fit_mml` refuses.
    """
    if model not in MODELS:
        raise InputError(f"`features` go with the models {', '.join(MODELS)}, not with {model!r}")
    usual = {
        "dims": 1,
        "intercept_prior": None,
        "slope_prior": "auto",
        "anchors": None,
        "guessing": None,
        "standard_errors": True,
    }
    for name, value in usual.items():
        given = options.get(name, value)
        if given is not value and not (name in ("dims", "slope_prior") and given == value):
            raise InputError(f"`{name}` does not go with `features`")
    x = item_features(features, responses.item_ids)
    num_items, of_rounds = responses.num_items, "rasch" if model == "1pl" else str(model)
    levels = [_Level(np.zeros(num_items), START_SD)]
    if model == "2pl":
        levels.append(_Level(np.full(num_items, LOG_SLOPE_PRIOR.mean), LOG_SLOPE_PRIOR.sd))
    number, change = 0, np.inf
    while number < MOST_ROUNDS and change >= SETTLED:
        fit = fit_mml(responses, of_rounds, **_priors(levels), **options)
        levels, change = _regressed(item_likelihoods(fit), levels, x)
        number += 1
        if on_round is not None:
            on_round(number, change)
    fit = fit_mml(responses, model, **_priors(levels), **options)
    found, of_slopes = (*(level.regression for level in levels), None)[:2]
    assert found is not None
    if model == "1pl":
        found = found.rescaled(1 / float(fit.parameters.slope[0, 0]))
    details = {"features": x.values.shape[1], "rounds": number, "residual_sd": float(found.residual_sd)}
    if of_slopes is not None:
        details["slope_residual_sd"] = float(of_slopes.residual_sd)
    return dataclasses.replace(
        fit,
        regression=found,
        slope_regression=of_slopes,
        status=fit.status if change < SETTLED else Status.NOT_SETTLED,
        details=fit.details | details,
    )


class _Level(NamedTuple):
    """The prior N(mean, sd²) of difficulties, or of asinh slopes: (I,), and one for all.

    Attributes:
        mean: (I,) that features foretell.
        sd: of the rest.
        regression: that they are from.
    """

    mean: Float[np.ndarray, " I"]
    sd: float
    regression: Regression | None = None


def _slopes(levels: Sequence[_Level]) -> Float[np.ndarray, " I"]:
    """The slope of each item that features foretell; 1 in the Rasch model."""
    if len(levels) == 1:
        return np.ones(levels[0].mean.size)
    slopes = np.sinh(levels[1].mean)
    return np.maximum(slopes, max(FLATTEST * float(np.median(slopes)), LEAST_SD))


def _priors(levels: Sequence[_Level]) -> dict[str, Any]:
    """The arguments of `fit_mml`."""
    slopes = _slopes(levels)
    priors = {"intercept_prior": ItemPriors(-slopes * levels[0].mean, slopes * levels[0].sd)}
    if len(levels) > 1:
        priors["slope_prior"] = ItemPriors(levels[1].mean, np.full(slopes.size, levels[1].sd))
    return priors


def _regressed(found: ItemLikelihoods, levels: Sequence[_Level], x: ItemFeatures) -> tuple[list[_Level], float]:
    """The levels as the responses have them, and the largest change of one, see `SETTLED`."""
    slopes = _slopes(levels) * found.unit
    mean, sd = (levels[0].mean - found.origin) / found.unit, levels[0].sd / found.unit
    if len(levels) == 1:
        y, variance = difficulties_alone(found)
        known = [(y - found.origin, variance)]
    else:
        asinh, by_asinh = np.arcsinh(found.slope), np.sqrt(1 + found.slope**2)
        before = np.arcsinh(np.sinh(levels[1].mean) * found.unit)
        # in asinh slope and difficulty at the foretold slope; each is known with the other under its prior
        scale = np.stack([by_asinh, -slopes], axis=1)
        gradient = scale * found.gradient
        information = scale[:, :, None] * scale[:, None, :] * found.information
        value = np.stack([asinh, -found.intercept / slopes], axis=1)
        pull = np.stack([(before - value[:, 0]) / levels[1].sd ** 2, (mean - value[:, 1]) / sd**2], axis=1)
        precision = np.array([levels[1].sd ** -2.0, sd**-2.0])
        known = [_alone(value, gradient, information, pull, precision, column) for column in (1, 0)]
    changes, new = [], []
    for level, (y, variance) in zip(levels, known, strict=True):
        regression = regress(y, variance, x.values, level.regression, x.blocks)
        foretold, rest = regression.predict(x.values)[0], max(float(regression.residual_sd), LEAST_SD)
        changes += [float(np.abs(foretold - level.mean).max()) / rest, abs(np.log(rest / level.sd))]
        new.append(_Level(foretold, rest, regression))
    return new, max(changes)


def _alone(
    value: Float[np.ndarray, "I 2"],
    gradient: Float[np.ndarray, "I 2"],
    information: Float[np.ndarray, "I 2 2"],
    pull: Float[np.ndarray, "I 2"],
    precision: Float[np.ndarray, " 2"],
    column: int,
) -> tuple[Float[np.ndarray, " I"], Float[np.ndarray, " I"]]:
    """One of two parameters as the responses have it, the other one under its prior; and its variance.

    Args:
        value: of both.
        gradient: of the log-likelihood.
        information: likewise.
        pull: gradient of the log-densities of both priors.
        precision: of both priors.
        column: of the one.
    """
    other = 1 - column
    beside = information[:, other, other] + precision[other]
    share = information[:, column, other] / beside
    return _step(
        value[:, column],
        gradient[:, column] - share * (gradient[:, other] + pull[:, other]),
        information[:, column, column] - share * information[:, column, other],
        information[:, column, column] + precision[column],
    )


def difficulties_alone(found: ItemLikelihoods) -> tuple[Float[np.ndarray, " I"], Float[np.ndarray, " I"]]:
    """Difficulties of the Rasch model as the responses alone have them, and the variances of their errors.

    Returns:
        (I,) both, in the normal approximation, on the scale of the fit; 0 and infinite where the responses say nothing.
    """
    at = found.origin - found.intercept
    return _step(at, -found.gradient[:, 1], found.information[:, 1, 1], 1.0)


def _step(
    value: np.ndarray, gradient: np.ndarray, information: np.ndarray, scale: np.ndarray | float
) -> tuple[np.ndarray, np.ndarray]:
    """Where a step of Newton leads, and the variance there; 0 and infinite where the responses say nothing."""
    known = np.isfinite(information) & np.isfinite(value) & (information > 1e-6 * scale)
    information = np.where(known, information, 1.0)
    return np.where(known, value + gradient / information, 0.0), np.where(known, 1 / information, np.inf)
