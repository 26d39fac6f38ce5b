"""From the models of items to what is free of them, under which priors, and where a fit starts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import logit

from irtjax.arguments import whole_number
from irtjax.choices import OF_RIGHT_WRONG as TYPES
from irtjax.errors import InputError
from irtjax.estimation.priors import (
    ASINH_SLOPE_PRIOR,
    ItemPriors,
    Priors,
    check_item_priors,
)
from irtjax.estimation.problem import Specification, compact
from irtjax.kernels.models import ItemParameters
from irtjax.types import Bool, Float, Int

_FREE = {  # slope, intercept, lower, upper
    "rasch": (False, True, False, False),
    "1pl": (True, True, False, False),
    "2pl": (True, True, False, False),
    "3pl": (True, True, True, False),
    "4pl": (True, True, True, True),
}


# Logits from 0 and 1. The likelihood has several maxima: from the 2PL estimate and here the highest known one was
# reached on every data set tried; from c = 0.2 it was not.
START_ASYMPTOTE = 3.0
MOST_DIMS = 6  # beyond it, posteriors on a grid would have millions of nodes each
NO_PRIORS = Priors()  # but those of asymptotes
FEWEST = 50  # items with a parameter of their own, or its prior is not estimated from them


def item_types(model: str | Sequence[str], num_items: int) -> tuple[str, ...]:
    """The type of each item, from one type for all or a sequence of I.

    Raises:
        InputError: an unknown type, a wrong number of types, or types that cannot go together.
    """
    types = (model,) * num_items if isinstance(model, str) else tuple(model)
    unknown = sorted(set(types) - set(TYPES))
    if unknown:
        raise InputError(f"unknown model {unknown[0]!r}, expected one of {', '.join(TYPES)}")
    if len(types) != num_items:
        raise InputError(f"{len(types)} item types for {num_items} items")
    if "rasch" in types and len(set(types)) > 1:
        raise InputError("rasch items cannot be mixed with others: give them the type 1pl")
    return types


def few_with_asymptotes(types: Sequence[str] | np.ndarray, guessing: Float[np.ndarray, " I"] | None) -> bool:
    """Whether some items have asymptotes, held or free, and too few are there for priors of what these trade with."""
    held = guessing is not None and bool((np.nan_to_num(guessing) > 0).any())
    return len(types) < FEWEST and (held or bool(set(types) & {"3pl", "4pl"}))


def check_dims(dims: int, num_items: int) -> None:
    """Refuses a number of dimensions that cannot be fitted.

    Raises:
        InputError: it is not an integer, out of range, or there are fewer items.
    """
    whole_number("dims", dims, 1, MOST_DIMS)
    if dims > num_items:
        raise InputError(f"`dims` {dims} for {num_items} items: expected no more dimensions than items")


def specify(
    types: Sequence[str] | np.ndarray,
    *,
    dims: int = 1,
    anchored: Bool[np.ndarray, " I"] | None = None,
    guessing: Float[np.ndarray, " I"] | None = None,
    priors: Priors = NO_PRIORS,
    estimate: Sequence[str] = (),
) -> Specification:
    """Builds a specification.

    Args:
        types: of the I items, see `item_types`. "rasch" has slope 1 and a free population variance, "1pl" one common
            slope and variance 1; the two are the same model.
        dims: D; with D > 1 slopes above the diagonal of the first D items are held at 0, which fixes the rotation.
        anchored: (I,) bool; items held at given parameters. The mean and variance of the population are then free.
        guessing: (I,) at which lower asymptotes are held; NaN where the type decides.
        priors: on slopes, intercepts, logit c and logit d. `ItemPriors` of slopes are on asinh slope.
        estimate: which of "slope", "intercept", "guessing" and "upper" have a prior that is estimated, from the given
            one on; those of asymptotes, and all with D > 1 or where there are asymptotes, if 50 items have such a
            parameter. A slope that is shared then has none. With D = 1 that of slopes is normal on the scale asinh
            slope, whatever the given one.

    Raises:
        InputError: dimensions, anchors or priors that do not go with the types.
    """
    check_dims(dims, len(types))
    anchored = np.zeros(len(types), bool) if anchored is None else np.asarray(anchored, bool)
    has_anchors = bool(anchored.any())
    _check_slopes(types, dims, priors.slope, "slope" in estimate)
    if has_anchors and dims > 1:
        raise InputError("anchor items need dims 1")
    free = _free(types, dims, anchored, guessing)
    shared = np.array([kind == "1pl" for kind in types]) & ~anchored
    own = free & ~(shared[:, None] & (np.arange(free.shape[1]) == 0))
    columns = {"slope": tuple(range(dims)), "intercept": (dims,), "guessing": (dims + 1,), "upper": (dims + 2,)}
    any_number = dims == 1 and not few_with_asymptotes(types, guessing)
    fewest = {name: 1 if any_number and name in ("slope", "intercept") else FEWEST for name in columns}
    estimated = tuple(columns[name] for name in estimate if own[:, columns[name][0]].sum() >= fewest[name])

    mean, precision = np.zeros(free.shape), np.zeros(free.shape)
    for name, prior in priors._asdict().items():
        if isinstance(prior, ItemPriors):
            check_item_priors(prior, len(types), f"{name}_prior")
        if prior is not None:
            mean[:, columns[name]], precision[:, columns[name]] = (np.reshape(leaf, (-1, 1)) for leaf in prior)
            precision[:, columns[name]] **= -2.0
    # one slope has one prior, however many items share it
    precision[shared, 0] *= 0.0 if "slope" in estimate else 1 / max(shared.sum(), 1)
    # of a few 4PL items the same prior, held: nothing else keeps their slopes from running off to infinity
    asinh_slopes = dims == 1 and "slope" in estimate and ((0,) in estimated or "4pl" in types)
    if asinh_slopes:
        mean[own[:, 0], 0], precision[own[:, 0], 0] = ASINH_SLOPE_PRIOR.mean, ASINH_SLOPE_PRIOR.sd**-2
    return Specification(
        free=compact(free),
        shared=shared,
        prior_mean=compact(mean),
        prior_precision=compact(np.where(free, precision, 0.0)),
        dims=dims,
        has_shared=bool(shared.any()),
        mean_fixed=not has_anchors,
        sd_fixed=not has_anchors and "rasch" not in types,
        free_slopes=bool(free[:, :dims].any()),
        estimated=estimated,
        asinh_slopes=asinh_slopes or isinstance(priors.slope, ItemPriors),
    )


def _check_slopes(types: Sequence[str] | np.ndarray, dims: int, prior: Any, estimated: bool) -> None:
    """Refuses types and priors of slopes that do not go together.

    Raises:
        InputError: slopes that are shared or held in several dimensions or under a prior of each; a prior that is not
            the same after a rotation.
    """
    common = bool(set(types) & {"rasch", "1pl"})
    if dims > 1 and common:
        raise InputError(f"dims {dims} needs the 2PL, 3PL or 4PL: items of the 1PL have no slopes of their own")
    if isinstance(prior, ItemPriors):
        if dims > 1 or common:
            raise InputError("`slope_prior` of each item: expected `dims` 1, and items with slopes of their own")
    elif dims > 1 and prior is not None and prior.mean != 0 and not estimated:
        raise InputError(f"dims {dims} needs a slope prior of mean 0: any other prefers one rotation over another")


def _free(
    types: Sequence[str] | np.ndarray,
    dims: int,
    anchored: Bool[np.ndarray, " I"],
    guessing: Float[np.ndarray, " I"] | None,
) -> Bool[np.ndarray, "I K"]:
    """Which parameters are estimated."""
    flags = np.array([_FREE[kind] for kind in types])
    free = np.concatenate([np.repeat(flags[:, :1], dims, axis=1), flags[:, 1:]], axis=1)
    for item in range(dims - 1):
        free[item, item + 1 : dims] = False
    if guessing is not None:
        free[~np.isnan(guessing), dims + 1] = False
    free[anchored] = False
    return free


def start_items(
    specification: Specification,
    right: Int[np.ndarray, " I"],
    observed: Int[np.ndarray, " I"],
    guessing: Float[np.ndarray, " I"] | None = None,
) -> ItemParameters:
    """Slope 1, the intercept from the logit of percent correct, free asymptotes at 0.05 and 0.95.

    Args:
        specification: decides which slopes and asymptotes are free; others are 1, 0 and 1.
        right: (I,) right answers.
        observed: (I,) observed answers.
        guessing: (I,) lower asymptotes that are held; NaN where they are not. Right answers by guessing are taken out
            of percent correct.
    """
    dims, slope = specification.dims, start_slopes(np.asarray(specification.free), specification.dims)
    lower = np.where(specification.free[:, dims + 1], -START_ASYMPTOTE, -np.inf)
    known: np.ndarray | float = 0.0
    if guessing is not None:
        held = ~np.isnan(guessing)
        lower[held], known = logit(guessing[held]), np.where(held, guessing, 0.0)
    able = np.maximum(right - known * observed, 0.0) / (1 - known)
    return ItemParameters(
        slope=compact(slope),
        # a normal population of variance 1 flattens logits by about sqrt(1 + 1/2.89)
        intercept=np.log((able + 0.5) / (observed - able + 0.5)) * np.sqrt(1 + 1 / 2.89),
        lower=compact(lower),
        upper=compact(np.where(specification.free[:, dims + 2], START_ASYMPTOTE, np.inf)),
    )


def start_slopes(free: Bool[np.ndarray, "I K"], dims: int) -> Float[np.ndarray, "I D"]:
    """Slopes of 1, free or held; with D > 1 tilted, as equal ones would be a saddle point."""
    slope = np.where(free[:, :dims], 1.0 / np.sqrt(dims), 0.0)
    slope[:, 0] = np.where(free[:, 0], slope[:, 0], 1.0)
    if dims > 1:
        angle = np.linspace(0.2, np.pi / 2 - 0.2, len(free))
        tilt = np.stack([np.cos(angle), *[np.sin(angle) * np.cos(0.7 * k) for k in range(dims - 1)]], axis=1)
        slope = np.where(free[:, :dims], tilt, 0.0)
    return slope
