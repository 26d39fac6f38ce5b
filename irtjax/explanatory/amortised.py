"""Items from responses and from features of the items at once (amortised IRT).

    b_i = f(x_i) + r_i,            r_i ~ N(0, τ²)
    asinh a_i = g(x_i) + q_i,      q_i ~ N(0, τ_a²)

An item with many responses keeps its own estimate, one with few borrows from items like it, and one with none has f
and g. The difficulty of a graded item is the mean of its thresholds. Slopes are those of the 2PL: asinh a is about
log 2a where a is large, and has room for a near 0 and below it.
"""

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.estimation.empirical_priors import LEAST_SD
from irtjax.estimation.families import fit_families
from irtjax.estimation.mml import fit_mml
from irtjax.estimation.priors import ASINH_SLOPE_PRIOR, ItemPriors, scale_neutral_shift
from irtjax.explanatory.family_likelihoods import family_likelihoods
from irtjax.explanatory.item_likelihoods import ItemLikelihoods, item_likelihoods
from irtjax.fits.item_features import ItemFeatures, item_features
from irtjax.fits.regression import Regression, regress
from irtjax.fits.result import Fit
from irtjax.fits.status import Status
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.values import Responses, on_scales, whole
from irtjax.types import Float

START_SD = 3.0  # of difficulties, in logits, before anything is known of them
FLATTEST = 0.2  # of the median foretold slope: flatter ones are replaced by it in the prior of the intercept
LEAST_SLOPE = 0.05  # in that prior, however flat items are foretold
NOT_WITH_FEATURES = (
    "dims",
    "priors",
    "intercept_prior",
    "slope_prior",
    "anchors",
    "guessing",
    "extremes",
    "standard_errors",
)  # options of `fit_mml`
SETTLED = 0.02  # change of f or g in standard deviations of the residual, or of log τ, that is none
MOST_ROUNDS = 15
MODELS, OF_SCALES = ("rasch", "1pl", "2pl"), ("graded", "binomial", "binomial_1pl")
OWN_SLOPES = ("2pl", "graded", "binomial")


@checks_types
def fit_amortised(
    responses: Responses | ScaledResponses,
    model: str | Sequence[str] = "1pl",
    *,
    features: Any,
    on_round: Callable[[int, float], None] | None = None,
    **options: Any,
) -> Fit:
    """Fits by marginal maximum likelihood, with priors of each item whose means are regressions on features.

    The regressions and the fit take turns until neither moves the other. Each round takes what the responses alone say
    of each item (`item_likelihoods`), regresses it (`regression.regress`), and fits again under the priors N(f, τ²), of
    which none is narrower than `LEAST_SD`. The standard deviations of residuals and coefficients are those under which
    the responses are likeliest (empirical Bayes, in the normal approximation). With the Rasch model items and
    coefficients end at their joint mode. In the 2PL each regression takes the other parameter of an item as known to
    its prior, and that of the slopes does not learn from the intercepts.

    The prior is one of the intercept c, as a difficulty b = -c/a has no place for a slope near 0. In the Rasch model c
    is -b. All is done with that: the 1PL is the same model in other units. In the 2PL c_i ~ N(-ā_i f(x_i), ā_i² τ²),
    where ā_i is the slope that features foretell, sinh g(x_i): f is the difficulty at that slope. The mean of the prior
    of asinh a_i is g + δ, with a constant that keeps it from pulling at the unit of ability
    (`priors.scale_neutral_shift`).

    Args:
        responses: as in `fit_mml`, or grades or counts.
        model: "rasch" or "1pl", which are the same model in other units, or "2pl"; of grades "graded", and of counts
            "binomial" or "binomial_1pl". What else an item of these has is under its usual priors.
        features: (I, F) numbers in the order of the items, or a table whose index has their ids, with others. A dict of
            these, by any names, are blocks whose weights have a variance each: for a few columns beside hundreds of
            numbers of an encoder.
        on_round: called with the number of rounds and what `SETTLED` is compared with.
        **options: others of `fit_mml`, or of `estimation.families.fit_families`.

    Returns:
        The fit under the last of these priors, with `regression`, and `slope_regression` where items have slopes of
        their own; not converged if the rounds did not settle.

    Raises:
        InputError: features that are missing or not finite, or what `fit_mml` refuses.
    """
    known, scaled = (*MODELS, *OF_SCALES), on_scales(responses)
    responses = whole(responses) if scaled else responses
    if model not in (OF_SCALES if scaled else MODELS):
        raise InputError(f"`features` go with the models {', '.join(known)}, not with {model!r:.100}")
    usual = inspect.signature(fit_mml).parameters
    for name in NOT_WITH_FEATURES:
        given, default = options.get(name, usual[name].default), usual[name].default
        if given is not default and not (isinstance(given, str | int) and given == default):
            raise InputError(f"`{name}` does not go with `features`")
    right, observed = responses.counts(axis=0)
    if ((right == 0) | (right == observed)).all():
        raise InputError("every item was answered right by everyone or by no one: they tell no one from another")
    x = item_features(features, responses.item_ids)
    estimate: Callable[..., Fit] = fit_families if scaled else fit_mml
    num_items, of_rounds = responses.num_items, "rasch" if model == "1pl" else str(model)
    levels = [_Level(np.zeros(num_items), START_SD)]
    own_slopes = model in OWN_SLOPES
    if own_slopes:
        levels.append(_Level(np.full(num_items, ASINH_SLOPE_PRIOR.mean), ASINH_SLOPE_PRIOR.sd))
    number, change = 0, np.inf
    while number < MOST_ROUNDS and change >= SETTLED:
        fit = estimate(responses, of_rounds, **_priors(levels), **options)
        likelihoods = family_likelihoods(fit, own_slopes=own_slopes) if scaled else item_likelihoods(fit)
        levels, change = _regressed(likelihoods, levels, x)
        number += 1
        if on_round is not None:
            on_round(number, change)
    fit = estimate(responses, model, **_priors(levels), **options)
    found, of_slopes = levels[0].regression, levels[-1].regression if own_slopes else None
    assert found is not None
    found = found.rescaled(likelihoods.unit)  # abilities of the fit have a mean of about 0 and a variance of about 1
    found = found._replace(mean=np.asarray(found.mean + likelihoods.origin))
    if model == "1pl":
        found = found.rescaled(1 / float(fit.parameters.slope[0, 0]))
    details: dict[str, Any] = {"features": x.values.shape[1], "rounds": number, "residual_sd": float(found.residual_sd)}
    if of_slopes is not None:
        details |= {"slope_residual_sd": float(of_slopes.residual_sd), "least_slope": _least_slope(levels[1])}
    if x.names:
        details["feature_names"] = list(x.names)
    return dataclasses.replace(
        fit,
        regression=found,
        slope_regression=of_slopes,
        status=Status.NOT_SETTLED if fit.converged and change >= SETTLED else fit.status,
        details=fit.details | details,
    )


class _Level(NamedTuple):
    """The priors N(mean, sd²) of the difficulties, or of the asinh slopes, of all items.

    Attributes:
        foretold: (I,) by the features.
        sd: of what they do not tell.
        regression: on the features; None before the first.
        shift: of the means, for all items.
    """

    foretold: Float[np.ndarray, " I"]
    sd: float
    regression: Regression | None = None
    shift: float = 0.0

    @property
    def mean(self) -> Float[np.ndarray, " I"]:
        """(I,)."""
        return self.foretold + self.shift


def _slopes(levels: Sequence[_Level]) -> Float[np.ndarray, " I"]:
    """The slope of each item that features foretell, but none near 0; 1 in the Rasch model."""
    if len(levels) == 1:
        return np.ones(levels[0].mean.size)
    return _away_from_0(np.sinh(levels[1].foretold), _least_slope(levels[1]))


def _away_from_0(slopes: Float[np.ndarray, " I"], least: float) -> Float[np.ndarray, " I"]:
    """The same slopes with the same signs, but none flatter than the least."""
    return np.where(slopes < 0, -1.0, 1.0) * np.maximum(np.abs(slopes), least)


def _least_slope(level: _Level) -> float:
    """The least slope in the priors of intercepts."""
    return max(FLATTEST * float(np.median(np.abs(np.sinh(level.foretold)))), LEAST_SLOPE)


def _priors(levels: Sequence[_Level]) -> dict[str, Any]:
    """The arguments of `fit_mml`."""
    slopes = _slopes(levels)
    priors = {"intercept_prior": ItemPriors(-slopes * levels[0].mean, np.abs(slopes) * levels[0].sd)}
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
        of_slopes = level is not levels[0]
        shift = scale_neutral_shift(foretold, rest**2 / (rest**2 + variance), rest**2) if of_slopes else 0.0
        new.append(_Level(foretold, rest, regression, float(shift)))
        changes += [float(np.abs(new[-1].mean - level.mean).max()) / rest, abs(np.log(rest / level.sd))]
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
        information: minus its second derivatives.
        pull: gradient of the log-densities of both priors.
        precision: of both priors.
        column: of the one.
    """
    other = 1 - column
    beside = np.maximum(information[:, other, other], 0.0) + precision[other]
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
