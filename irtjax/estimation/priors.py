"""Priors of item parameters.

They are normal distributions, of most parameters on their own scale: logits for asymptotes. An estimated prior of
slopes (D = 1) is one of u = asinh slope, which is the slope itself near 0 and its logarithm, plus log 2, where it is
steep. A slope that the responses of a benchmark would send to infinity pays for it, one of 5 beside others of 1 hardly
does, and one near 0 or below it is not ruled out.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from irtjax.errors import InputError
from irtjax.types import AnyArray, Float


class NormalPrior(NamedTuple):
    """Normal prior on a parameter: mean and standard deviation on the parameter's own scale (logit for c and d)."""

    mean: float
    sd: float


class ItemPriors(NamedTuple):
    """Normal priors of one parameter of every item: means and standard deviations, (I,)."""

    mean: Float[AnyArray, " I"]
    sd: Float[AnyArray, " I"]


Prior = Any  # as users give it: `NormalPrior` or any pair (mean, sd), `ItemPriors`, "auto" or None


def check_item_priors(priors: ItemPriors, num_items: int, argument: str) -> None:
    """Refuses what are no priors of the items.

    Raises:
        InputError: another number of them, infinite means, or standard deviations that are not positive and finite.
    """
    mean, sd = (np.asarray(column, float) for column in priors)
    if mean.shape != (num_items,) or sd.shape != (num_items,):
        raise InputError(f"`{argument}`: means {mean.shape} and standard deviations {sd.shape} of {num_items} items")
    bad = ~np.isfinite(mean) | ~np.isfinite(sd) | (sd <= 0)
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError(f"`{argument}`: N({mean[at]:g}, {sd[at]:g}²) of item number {at + 1}")


def normal_prior(given: Prior, argument: str) -> NormalPrior | ItemPriors | str | None:
    """A prior as a user gives it: a `NormalPrior`, or any pair (mean, sd), is one; others are passed on.

    Raises:
        InputError: it is no prior, or has an infinite mean or a standard deviation that is not positive.
    """
    if given is None or isinstance(given, ItemPriors) or (isinstance(given, str) and given == "auto"):
        return given
    try:
        prior = NormalPrior(*(float(number) for number in given))
    except (TypeError, ValueError) as error:
        message = f"`{argument}` {given!r:.100}, expected mean and sd such as (0, 2), None or 'auto'"
        raise InputError(message) from error
    if not (math.isfinite(prior.mean) and 0 < prior.sd < math.inf):
        raise InputError(f"`{argument}` N({prior.mean:g}, {prior.sd:g}²), expected a finite mean and a positive sd")
    return prior


def auto_or_none(priors: str | None) -> str | None:
    """Either "auto", or None; None for "none" too, as the flag has it.

    Raises:
        InputError: anything else.
    """
    priors = None if priors == "none" else priors
    if priors not in ("auto", None):
        raise InputError(f"`priors` {priors!r:.100}, expected 'auto', or None for maximum likelihood")
    return priors


def as_given(
    priors: str | None, dims: int, slope: Prior, intercept: Prior, guessing: Prior, upper: Prior
) -> dict[str, Any]:
    """The priors as they were asked for, or "auto".

    Raises:
        InputError: what is no prior.
    """
    priors = auto_or_none(priors)
    given = {
        name: None
        if priors is None and isinstance(prior, str) and prior == "auto"
        else normal_prior(prior, f"{name}_prior")
        for name, prior in (("slope", slope), ("intercept", intercept), ("guessing", guessing), ("upper", upper))
    }
    if given["intercept"] == "auto" and (dims > 1 or given["slope"] is None):
        given["intercept"] = None  # the slope of an extreme item needs a prior, too
    return given


# Centred at c = 0.2 and d = 0.95. They hardly move an asymptote that the data determine, and keep one that the data say
# nothing about from running off to 0 or 1.
GUESSING_PRIOR = NormalPrior(-1.4, 1.0)
UPPER_PRIOR = NormalPrior(3.0, 1.0)
ASINH_SLOPE_PRIOR = NormalPrior(1.0, 1.0)  # of asinh slope: where the estimated one starts
INTERCEPT_PRIOR = NormalPrior(0.0, 3.0)  # of intercepts: where the estimated one starts


class Priors(NamedTuple):
    """Priors on the parameters of items, each of all items or of each (`ItemPriors`); None for none."""

    slope: NormalPrior | ItemPriors | None = None
    intercept: NormalPrior | ItemPriors | None = None
    guessing: NormalPrior | ItemPriors | None = GUESSING_PRIOR
    upper: NormalPrior | ItemPriors | None = UPPER_PRIOR


class Weak(NamedTuple):
    """What is known of the standard deviation of an estimated prior before there are items (conjugate).

    Attributes:
        sd: expected.
        of_sd: items that would tell it as well.
        damping: of the mean, which so many items of which nothing is known would leave half-way to where they are.
        most_sd: that is believed.
    """

    sd: float
    of_sd: float
    damping: float
    most_sd: float


# Slopes of a test differ by a quarter of their size or more, intercepts by one to three logits. Some tens of items tell
# it by themselves. A few subjects whom many items part into able and unable make slopes look as if they had no bound.
WEAK_SLOPES = Weak(sd=0.25, of_sd=4.0, damping=1.0, most_sd=0.6)
WEAK_INTERCEPTS = Weak(sd=1.5, of_sd=5.0, damping=1.0, most_sd=10.0)

NOTHING = Weak(0.0, 0.0, 0.0, 2.0)  # of asymptotes, whose priors are estimated from 50 items or not at all
WEAK_STEPS = Weak(sd=0.5, of_sd=5.0, damping=1.0, most_sd=2.0)  # between thresholds


class PriorTerms(NamedTuple):
    """What normal priors add to the log-likelihood of items, and to its derivatives.

    Attributes:
        log_density: (I,), up to a constant.
        gradient: (I, K).
        information: (I, K), minus the second derivative but for the bend of the scale, never negative.
    """

    log_density: AnyArray
    gradient: AnyArray
    information: AnyArray


def to_prior_scale(
    array: Float[AnyArray, "I K"], asinh_slopes: bool
) -> tuple[Float[AnyArray, "I K"], Float[AnyArray, "I K"]]:
    """Item parameters on the scale that their priors are normal on, and the derivatives there.

    Args:
        array: (I, K), slope first.
        asinh_slopes: whether the scale of slopes is asinh slope; every other one is the parameter's own.
    """
    xp = array.__array_namespace__()
    if not asinh_slopes:
        return array, xp.ones_like(array)
    slope, others = array[:, :1], array[:, 1:]
    by_slope = 1 / xp.sqrt(1 + slope * slope)
    return xp.concatenate([xp.arcsinh(slope), others], axis=1), xp.concatenate([by_slope, xp.ones_like(others)], axis=1)


def scale_neutral_shift(
    scaled: Float[AnyArray, " I"], weight: Float[AnyArray, " I"], variance: AnyArray | float
) -> AnyArray:
    """How much higher than the mean of asinh slopes x that m of their prior is to be, so as not to pull at the unit.

    A change of the unit of ability moves x by tanh x, and the log-density of N(m, s²) by Σ (m - x) tanh x / s². At the
    mean of x that is -Σ (1 - tanh² x) on average (Stein's lemma): slopes differ less on this scale the flatter they
    are, and the prior would have all of them flatter, the more so the more items there are for each subject.

    Args:
        scaled: x.
        weight: of each item, the share of x that responses determine.
        variance: s².

    Returns:
        m - mean x = s² Σ w (1 - tanh² x) / Σ w tanh x; 0 where slopes of both signs leave no unit to speak of.
    """
    xp = scaled.__array_namespace__()
    steep = xp.tanh(scaled)
    total, size = (weight * steep).sum(), (weight * xp.abs(steep)).sum()
    clear = total > size / 2
    return xp.where(clear, variance * (weight * (1 - steep * steep)).sum() / xp.where(clear, total, 1.0), 0.0)


def prior_terms(
    array: Float[AnyArray, "I K"],
    mean: Float[AnyArray, "I L"],
    precision: Float[AnyArray, "I L"],
    asinh_slopes: bool,
) -> PriorTerms:
    """The terms of priors with the given means and precisions, of which the first K columns are used.

    An asymptote that does not exist is infinite. It has no prior, and adds nothing.
    """
    xp, width = array.__array_namespace__(), array.shape[1]
    mean, precision = (xp.asarray(leaf, dtype=array.dtype)[:, :width] for leaf in (mean, precision))
    scaled, derivative = to_prior_scale(array, asinh_slopes)
    distance = xp.where(precision > 0, scaled - mean, 0.0)
    weighted = precision * distance
    return PriorTerms(
        -0.5 * (weighted * distance).sum(axis=1), -weighted * derivative, precision * derivative * derivative
    )
