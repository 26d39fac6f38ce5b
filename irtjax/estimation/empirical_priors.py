"""Normal priors of item parameters, their means and standard deviations estimated from the items (empirical Bayes).

With few subjects, the errors of the items bend the scale of ability, however many items there are: a slope that came
out too steep by chance is taken at its word. The distribution of thousands of items is known well, and a prior equal to
it undoes the bias.
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from irtjax.estimation.item_step import scoring_step
from irtjax.estimation.priors import WEAK_INTERCEPTS, WEAK_SLOPES, Weak, scale_neutral_shift, to_prior_scale
from irtjax.estimation.problem import Specification, as_array
from irtjax.estimation.specify import FEWEST
from irtjax.item_models.protocol import Items
from irtjax.kernels.elimination import solve
from irtjax.types import AnyArray, Float, Shaped

LEAST_SD, MOST_SD = 0.05, 2.0  # of a prior; equal slopes would draw it to 0, and with it every step
STEEP = 3.0  # times as steep as most
MOST_STEP = 20.0  # of an intercept, to where responses alone would have it
MOST_CHANGE = 1.0  # of a mean in one step
DETERMINED = 0.9  # share of a parameter that responses determine, on average, from which on it needs no prior
FIXED_POINTS = 50
USUAL_SD = 0.5  # of asinh slopes: that of log a in the default prior of BILOG
TINY = 1e-6  # where responses determine nothing, a prior stays where it is


class _Known(NamedTuple):
    """The parameters whose priors are estimated: where they are, and how far the responses determine them.

    Attributes:
        value: (I, K) on the scale of the priors.
        determined: (I, K) 1 - V/s², the share of each that is not the prior's.
        usable: (I, K) whether it counts: free, of the item's own, and finite.
    """

    value: AnyArray
    determined: AnyArray
    usable: AnyArray


def _known(
    items: Items,
    gradient: Float[AnyArray, "I K"],
    information: Float[AnyArray, "I K K"],
    specification: Specification,
) -> _Known:
    xp, size = gradient.__array_namespace__(), information.shape[1]
    # where the items would go under the present priors: otherwise items and priors would chase each other
    array = (as_array(items) + scoring_step(items, gradient, information, specification))[:, :size]
    own = xp.asarray(specification.free)[:, :size]
    own = own & xp.stack([xp.asarray(specification.has_own(column)) for column in range(size)], axis=1)
    precision = xp.asarray(specification.prior_precision, dtype=array.dtype)[:, :size]
    unit = xp.eye(size, dtype=array.dtype)
    value, derivative = to_prior_scale(array, specification.asinh_slopes)
    penalised = xp.where(own[:, :, None] & own[:, None, :], information, 0.0)
    diagonal = xp.where(own, precision * derivative * derivative + TINY, 1.0)
    penalised = penalised + diagonal[:, :, None] * unit[None]
    columns = [solve(penalised, xp.broadcast_to(unit[k], array.shape))[:, k] for k in range(size)]
    variance = xp.stack(columns, axis=1) * derivative * derivative
    usable = own & xp.isfinite(value) & xp.isfinite(variance)  # one may run off to infinity
    return _Known(xp.where(usable, value, 0.0), xp.where(usable, 1 - variance * precision, 0.0), usable)


def reestimate(
    items: Items,
    gradient: Float[AnyArray, "I K"],
    information: Float[AnyArray, "I K K"],
    specification: Specification,
    unit_by_slopes: bool = False,
) -> Specification:
    """One step towards the means and standard deviations under which the responses are likeliest (MacKay 1992).

    With V the posterior variance of a parameter x under the prior N(m, s²), 1 - V/s² is the share of x that the
    responses determine: m = mean x and s² = Σ (x - m)² / Σ (1 - V/s²), sums over items. Slopes of D dimensions have a
    mean each and share s, so that a rotation changes nothing. All are taken on the scale of the prior.

    In one dimension, the sums in s² for slopes and intercepts are those of some more items of the expected deviation
    (`priors.Weak`), and s has a bound, unless responses determine the slopes of 50 items by more than 90%: fewer
    items, or many that few subjects answered, would not tell it. The mean of an intercept is a line in the item's slope
    a, m_i = α + β a_i, fitted by least squares, so that Σ (x_i - m_i) = Σ a_i (x_i - m_i) = 0: the prior does not pull
    at the origin of ability, a change of which moves x_i by a_i. (Slopes beyond three times the typical one count
    as less.)

    Args:
        items: I items.
        gradient: (I, K) of the log-likelihood.
        information: (I, K, K) of each item; like the gradient without priors.
        specification: which priors are estimated (`estimated`), and their present values.
        unit_by_slopes: the mean of the prior of asinh slopes is moved so that it does not pull at the unit of ability
            (`priors.scale_neutral_shift`). Where the population's standard deviation is free, as with anchors, it does
            not at all: the mean is such that Σ tanh x (x - m) = 0, as a change of the unit moves x by tanh x.
    """
    xp = gradient.__array_namespace__()
    known = _known(items, gradient, information, specification)
    means, precisions = (
        [xp.asarray(leaf, dtype=gradient.dtype)[:, k] for k in range(leaf.shape[1])]
        for leaf in (specification.prior_mean, specification.prior_precision)
    )
    for group in specification.estimated:
        weak = _weak(specification, group)
        of_sd, most_sd = weak.of_sd, weak.most_sd
        if group == (0,):  # intercepts that are determined have no prior at all
            enough = known.usable[:, 0].sum() >= FEWEST
            determined_well = enough & (_share_at(known, 0, precisions[0], weak.most_sd) > DETERMINED)
            of_sd, most_sd = xp.where(determined_well, 0.0, of_sd), xp.where(determined_well, MOST_SD, most_sd)
        squares: Any = TINY + of_sd * weak.sd**2
        shares: Any = TINY + of_sd
        for k in group:
            usable, determined = known.usable[:, k], known.determined[:, k].sum()
            distance = xp.where(usable, known.value[:, k] - means[k], 0.0)
            if group == (specification.dims,) and specification.dims == 1:
                whole = distance * (usable.sum() / (determined + weak.damping + TINY))
                mean = line(
                    bounded(items.slope[:, 0], usable), means[k] + xp.clip(whole, -MOST_STEP, MOST_STEP), usable
                )
            else:
                step = distance.sum() / (determined + weak.damping + TINY)
                mean = means[k] + xp.clip(step, -MOST_CHANGE, MOST_CHANGE)
            means[k] = xp.where(has_own(specification, k), mean, means[k])
            squares = squares + xp.where(usable, (known.value[:, k] - mean) ** 2, 0.0).sum()
            shares = shares + determined
        variance = xp.clip(squares / shares, LEAST_SD**2, most_sd**2)
        for k in group:
            precisions[k] = xp.where(has_own(specification, k), 1 / variance, precisions[k])
        if unit_by_slopes and group == (0,):
            if specification.sd_fixed:
                shift = scale_neutral_shift(known.value[:, 0], known.determined[:, 0], variance)
            else:
                shift = _without_pull(known, distance, weak.damping)
            means[0] = xp.where(has_own(specification, 0), means[0] + shift, means[0])
    return dataclasses.replace(
        specification, prior_mean=xp.stack(means, axis=1), prior_precision=xp.stack(precisions, axis=1)
    )


def _without_pull(known: _Known, distance: Float[AnyArray, " I"], damping: float) -> Any:
    """How much further than towards Σ (x - m) = 0 the mean of asinh slopes is to go for Σ tanh x (x - m) = 0 at rest.

    It is 0 where slopes of both signs leave no unit to speak of.
    """
    xp = distance.__array_namespace__()
    steep, share = xp.tanh(known.value[:, 0]), known.determined[:, 0]
    total, size = (share * steep).sum(), (share * xp.abs(steep)).sum()
    clear = total > size / 2
    step = (steep * distance).sum() / (xp.where(clear, total, size) + damping + TINY)
    step = step - distance.sum() / (share.sum() + damping + TINY)
    return xp.where(clear, xp.clip(step, -MOST_CHANGE, MOST_CHANGE), 0.0)


def bounded(slope: Float[AnyArray, " I"], usable: AnyArray) -> Float[AnyArray, " I"]:
    """The slopes, bent where they are steeper than most: one that runs off would else draw the line to its item."""
    xp, slope = slope.__array_namespace__(), slope * usable.astype(slope.dtype)
    typical = xp.sinh((xp.arcsinh(xp.abs(slope)) * usable).sum() / (usable.sum() + TINY))
    return slope / xp.sqrt(1 + (slope / (STEEP * typical + TINY)) ** 2)


def line(x: Float[AnyArray, " I"], y: Float[AnyArray, " I"], usable: AnyArray) -> Float[AnyArray, " I"]:
    """The line in x through the usable y, by least squares, at every x; their mean where x hardly varies."""
    xp, number = y.__array_namespace__(), usable.sum()
    x = xp.where(usable, xp.asarray(x, dtype=y.dtype), 0.0)
    centred = xp.where(usable, x - x.sum() / (number + TINY), 0.0)
    middle, spread = xp.where(usable, y, 0.0).sum() / (number + TINY), (centred**2).sum()
    by_x = (centred * xp.where(usable, y, 0.0)).sum() / (spread + TINY)
    return middle + by_x * centred


def _share_at(known: _Known, column: int, precision: Float[AnyArray, " I"], sd: float) -> Any:
    """Mean over items of the share of a parameter that responses determine, were `sd` the deviation of its prior."""
    usable, determined = known.usable[:, column], known.determined[:, column]
    there = sd**2 * precision * determined
    return (there / (there + 1 - determined + TINY)).sum() / (usable.sum() + TINY)


def _weak(specification: Specification, group: tuple[int, ...]) -> Weak:
    """What is known of a group of priors before there are items."""
    if specification.dims == 1 and group == (0,):
        return WEAK_SLOPES
    return WEAK_INTERCEPTS if group == (specification.dims,) else specification.weak_others


def stretched(specification: Specification, unit: float) -> Specification:
    """The estimated prior of asinh slopes (D = 1) on a scale of ability whose unit is so many of the present ones."""
    means = np.array(specification.prior_mean)
    own = np.asarray(has_own(specification, 0))
    means[own, 0] = np.arcsinh(unit * np.sinh(means[own, 0]))
    return dataclasses.replace(specification, prior_mean=means)


def moved(specification: Specification, items: Items, origin: float) -> Specification:
    """The estimated prior of intercepts (D = 1) on a scale of ability whose origin is here at present."""
    means = np.array(specification.prior_mean)
    own = np.asarray(has_own(specification, 1))
    means[own, 1] += origin * np.asarray(items.slope)[own, 0]
    return dataclasses.replace(specification, prior_mean=means)


def has_own(specification: Specification, column: int) -> AnyArray:
    """Which items (I,) have such a parameter of their own."""
    return specification.has_own(column)


def slopes_determined(
    items: Items,
    gradient: Float[AnyArray, "I K"],
    information: Float[AnyArray, "I K K"],
    specification: Specification,
) -> float:
    """Mean over items of the share of an asinh slope, 0 to 1, that responses determine and not its prior.

    It is d = 1 - V/s² of `reestimate`. Fewer than 50 items hardly tell s: there it is what d would be under a prior of
    standard deviation 0.5, if s is not more.
    """
    known = _known(items, gradient, information, specification)
    usable, own = known.usable[:, 0], np.asarray(has_own(specification, 0))
    variance = float(1 / np.asarray(specification.prior_precision)[own, 0][0])
    usual = variance if own.sum() >= FEWEST else max(variance, USUAL_SD**2)
    of_usual = usual * known.determined[:, 0]
    shares = of_usual / np.maximum(of_usual + variance * (1 - known.determined[:, 0]), TINY)
    return float((shares * usable).sum() / max(usable.sum(), 1))


def largest_change(before: Specification, after: Specification) -> float:
    """How far the estimated priors have moved: means in standard deviations, or log standard deviations."""
    changes = [0.0]
    for column in (column for group in before.estimated for column in group):
        at = np.asarray(has_own(before, column)) & (np.asarray(before.prior_precision)[:, column] > 0)
        mean, precision = (
            [np.asarray(getattr(one, name))[at, column] for one in (before, after)]
            for name in ("prior_mean", "prior_precision")
        )
        changes += [
            *(np.abs(mean[1] - mean[0]) * np.sqrt(precision[0])),
            *(0.5 * np.abs(np.log(precision[1] / precision[0]))),
        ]
    return float(max(changes))


def has_any(specification: Specification) -> bool:
    """Whether some free parameter has a prior, that of all items or of a single one."""
    return bool((np.asarray(specification.free) & (np.asarray(specification.prior_precision) > 0)).any())


def summary(specification: Specification, others: str | None = None) -> dict[str, Any]:
    """Mean and standard deviation of every prior but those of single items, for `fit.json`.

    Args:
        specification: of a fit.
        others: what columns after the intercept are called, and numbered; those of asymptotes if None.

    The mean of an estimated prior of intercepts, which depends on the slope, is that of all items.
    """
    dims = specification.dims
    free, mean, precision = (
        np.array(leaf) for leaf in (specification.free, specification.prior_mean, specification.prior_precision)
    )
    precision[np.asarray(specification.shared), 0] *= np.sum(specification.shared)  # each item has its share of it
    names = [f"discrimination_{k + 1}" if dims > 1 else "discrimination" for k in range(dims)]
    size = free.shape[1] - dims
    after = ["logit_guessing", "logit_upper"] if others is None else [f"{others}_{k}" for k in range(1, size)]
    columns = dict(zip([*names, "intercept", *after], range(free.shape[1]), strict=True))
    priors: dict[str, dict[str, Any]] = {}
    for name, column in columns.items():
        chosen = np.flatnonzero(free[:, column] & (precision[:, column] > 0))
        group = next((group for group in specification.estimated if column in group), ())
        if (
            chosen.size
            and (np.ptp(mean[chosen, column]) == 0 or group == (dims,))
            and (np.ptp(precision[chosen, column]) == 0)
        ):
            sd = float(precision[chosen[0], column] ** -0.5)
            priors[name] = {"mean": float(mean[chosen, column].mean()), "sd": sd, "estimated": bool(group)}
            if specification.asinh_slopes and column == 0:
                priors[name]["scale"] = "asinh a"
    return priors


def without_slopes(specification: Specification) -> Specification:
    """The specification without the estimated prior of asinh slopes."""
    precision = np.array(specification.prior_precision)
    precision[np.asarray(specification.free)[:, 0], 0] = 0.0
    estimated = tuple(group for group in specification.estimated if group != (0,))
    return dataclasses.replace(specification, prior_precision=precision, estimated=estimated, asinh_slopes=False)


def intercepts_determined(right: Shaped[np.ndarray, " I"], observed: Shaped[np.ndarray, " I"]) -> float:
    """Share of the variance of intercepts, 0 to 1, that responses determine, by percent correct alone.

    A logit x = log((r + 1/2) / (n - r + 1/2)) has the error V = (n + 1)² / (n (r + 1/2) (n - r + 1/2)), and a variance
    s² besides, where s² = Σ w² (x - m)² / Σ w with w = s² / (s² + V), as in `reestimate`. The share is the reliability
    s² / (s² + mean V): a few items with few answers count by their large errors. An extreme item has no part in s², and
    the mean n V of the others over its n for V: it is as others but for the chance that it is extreme.
    """
    if not ((right > 0) & (right < observed)).any():
        return 0.0
    n, others = observed.astype(float), (right > 0) & (right < observed)
    of_answer = (n + 1) ** 2 / ((right + 0.5) * (n - right + 0.5))
    errors = np.where(others, of_answer, of_answer[others].mean()) / n
    x, error = np.log((right + 0.5) / (n - right + 0.5))[others], errors[others]
    variance = WEAK_INTERCEPTS.sd**2
    for _ in range(FIXED_POINTS):
        share = variance / (variance + error)
        mean = (share @ x) / share.sum()
        squares = (share**2) @ (x - mean) ** 2 + WEAK_INTERCEPTS.of_sd * WEAK_INTERCEPTS.sd**2
        variance = max(squares / (share.sum() + WEAK_INTERCEPTS.of_sd), LEAST_SD**2)
    return float(variance / (variance + errors.mean()))
