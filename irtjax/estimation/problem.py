"""Which parameters of which item are estimated, shared or held, how the scale is identified, and in what order.

Arrays of item parameters (I, K) have the columns slope_1 … slope_D, intercept, lower, upper, so that K is D + 3, or
D + 1 where no item has asymptotes. `Layout` numbers the free ones, and those of the population, in one vector.
"""

import dataclasses
import functools
from collections.abc import Sequence

import jax
import numpy as np
from scipy.special import logit

from irtjax.arguments import whole_number
from irtjax.errors import InputError
from irtjax.estimation.priors import (
    ASINH_SLOPE_PRIOR,
    GUESSING_PRIOR,
    UPPER_PRIOR,
    ItemPriors,
    NormalPrior,
    check_item_priors,
)
from irtjax.kernels.models import ItemParameters
from irtjax.types import AnyArray, Bool, Float, Int

TYPES = ("rasch", "1pl", "2pl", "3pl", "4pl")
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
FEWEST = 50  # items with a parameter of their own, or its prior is not estimated from them


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=("free", "shared", "prior_mean", "prior_precision"),
    meta_fields=("has_shared", "mean_fixed", "sd_fixed", "free_slopes", "estimated", "asinh_slopes"),
)
@dataclasses.dataclass(frozen=True)
class Specification:
    """What is estimated, per item i and parameter k in the order slope_1 … slope_D, intercept, lower, upper.

    A pytree: its arrays are traced, its flags are static.

    Attributes:
        free: (I, K) bool, estimated; a parameter that is not keeps its starting value.
        shared: (I,) bool, the item's slope is the one that all 1PL items have in common.
        prior_mean: (I, K) of normal priors.
        prior_precision: (I, K), 0 where there is none.
        has_shared: whether any item's slope is shared.
        mean_fixed: the population mean is 0 by convention: what the E-step finds is folded into the intercepts.
        sd_fixed: likewise the standard deviation 1, folded into the slopes. Where it is not folded, it is estimated.
        free_slopes: whether any slope is free.
        estimated: columns whose prior is estimated (`estimation.empirical_priors`); those that share its standard
            deviation together.
        asinh_slopes: the prior of slopes is one of asinh slope (`priors.to_prior_scale`).
    """

    free: AnyArray
    shared: AnyArray
    prior_mean: AnyArray
    prior_precision: AnyArray
    has_shared: bool
    mean_fixed: bool
    sd_fixed: bool
    free_slopes: bool
    estimated: tuple[tuple[int, ...], ...] = ()
    asinh_slopes: bool = False

    @property
    def dims(self) -> int:
        """D."""
        return self.free.shape[1] - 3

    def without_rotation(self) -> "Specification":
        """The same, but with the slopes free that are held only to fix the rotation, under the prior of the others."""
        dims = self.dims
        free, mean, precision = (np.array(leaf) for leaf in (self.free, self.prior_mean, self.prior_precision))
        fixed = free[:, :1] & ~free[:, :dims]
        free[:, :dims] |= fixed
        for leaf in (mean, precision):
            leaf[:, :dims] = np.where(fixed, leaf[:, :1], leaf[:, :dims])
        return dataclasses.replace(self, free=free, prior_mean=mean, prior_precision=precision)


def as_array(items: ItemParameters) -> Float[AnyArray, "I K"]:
    """(I, D + 3): slopes, intercept, lower, upper."""
    xp = items.slope.__array_namespace__()
    return xp.concatenate([items.slope, *(leaf[:, None] for leaf in items[1:])], axis=1)


def as_items(array: Float[AnyArray, "I K"]) -> ItemParameters:
    """The inverse of `as_array`."""
    dims = array.shape[1] - 3
    return ItemParameters(array[:, :dims], array[:, dims], array[:, dims + 1], array[:, dims + 2])


@dataclasses.dataclass(frozen=True)
class Layout:
    """Position of every free parameter in one vector of P: items' own, the shared slope, means and log sds.

    Attributes:
        items: (I, K) position of each item parameter, -1 where it is held. Items that share a slope share its position.
        mean: (D,) position of the population's means, -1 where they are fixed.
        log_sd: (D,) likewise of the logarithms of its standard deviations.
        num_own: parameters of single items; the rest is common to all.
        size: P.
    """

    items: Int[np.ndarray, "I K"]
    mean: Int[np.ndarray, " D"]
    log_sd: Int[np.ndarray, " D"]
    num_own: int
    size: int

    def gather(self, vector: Float[np.ndarray, " P"]) -> Float[np.ndarray, "I K"]:
        """The entries of a vector by item, 0 where a parameter is held."""
        return np.where(self.items >= 0, vector[self.items], 0.0)

    def add_up(self, array: Float[np.ndarray, "I K"]) -> Float[np.ndarray, " P"]:
        """A gradient by item as a vector, that of the shared slope summed over its items; 0 for the population."""
        free = self.items[:, : array.shape[1]] >= 0
        return np.bincount(self.items[:, : array.shape[1]][free], array[free], self.size).astype(array.dtype)


def layout(specification: Specification) -> Layout:
    """The layout of a specification."""
    free, shared = np.asarray(specification.free), np.asarray(specification.shared)
    index = np.full(free.shape, -1)
    own = free.copy()
    own[:, 0] &= ~shared
    num_own = size = int(own.sum())
    index[own] = np.arange(num_own)
    if specification.has_shared:
        index[shared, 0] = size
        size += 1
    population: list[np.ndarray] = []
    for fixed in (specification.mean_fixed, specification.sd_fixed):
        population.append(np.full(specification.dims, -1) if fixed else np.arange(size, size + specification.dims))
        size += 0 if fixed else specification.dims
    mean, log_sd = population
    return Layout(index, mean, log_sd, num_own, size)


def num_parameters(specification: Specification) -> int:
    """Free parameters: of the items, and of the population where it is not fixed."""
    return layout(specification).size


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
    slope_prior: NormalPrior | ItemPriors | None = None,
    intercept_prior: NormalPrior | ItemPriors | None = None,
    guessing_prior: NormalPrior | None = GUESSING_PRIOR,
    upper_prior: NormalPrior | None = UPPER_PRIOR,
    estimate: Sequence[str] = (),
) -> Specification:
    """Builds a specification.

    Args:
        types: of the I items, see `item_types`. "rasch" has slope 1 and a free population variance, "1pl" one common
            slope and variance 1; the two are the same model.
        dims: D; with D > 1 slopes above the diagonal of the first D items are held at 0, which fixes the rotation.
        anchored: (I,) bool; items held at given parameters. The mean and variance of the population are then free.
        guessing: (I,) at which lower asymptotes are held; NaN where the type decides.
        slope_prior: on slopes, or on asinh slope of each item, None for none.
        intercept_prior: on intercepts, or on that of each item, None for none.
        guessing_prior: on logit c of 3PL and 4PL items.
        upper_prior: on logit d of 4PL items.
        estimate: which of "slope", "intercept", "guessing" and "upper" have a prior that is estimated, from the given
            one on; those of asymptotes, and all with D > 1 or where there are asymptotes, if 50 items have such a
            parameter. A slope that is shared then has none. With D = 1 that of slopes is normal on the scale asinh
            slope, whatever the given one.

    Raises:
        InputError: dimensions or anchors that do not go with the types.
    """
    num_items = len(types)
    check_dims(dims, num_items)
    if dims > 1 and set(types) & {"rasch", "1pl"}:
        raise InputError(f"dims {dims} needs the 2PL, 3PL or 4PL: items of the 1PL have no slopes of their own")
    flags = np.array([_FREE[kind] for kind in types])
    free = np.concatenate([np.repeat(flags[:, :1], dims, axis=1), flags[:, 1:]], axis=1)
    for item in range(dims - 1):
        free[item, item + 1 : dims] = False
    if guessing is not None:
        free[~np.isnan(guessing), dims + 1] = False
    prior_mean, prior_precision = np.zeros(free.shape), np.zeros(free.shape)
    own_slopes = slope_prior if isinstance(slope_prior, ItemPriors) else None
    same_slopes = None if isinstance(slope_prior, ItemPriors) else slope_prior
    if own_slopes is not None and (dims > 1 or not flags[:, 0].all() or "1pl" in types):
        raise InputError("`slope_prior` of each item: expected `dims` 1, and items with slopes of their own")
    for prior, columns in (
        (same_slopes, slice(0, dims)),
        (None if isinstance(intercept_prior, ItemPriors) else intercept_prior, dims),
        (guessing_prior, dims + 1),
        (upper_prior, dims + 2),
    ):
        if prior is not None:
            prior_mean[:, columns], prior_precision[:, columns] = prior.mean, prior.sd**-2
    for name, priors, column in (
        ("slope", own_slopes, 0),
        ("intercept", intercept_prior if isinstance(intercept_prior, ItemPriors) else None, dims),
    ):
        check_item_priors(priors, num_items, f"{name}_prior")
        if priors is not None:
            prior_mean[:, column], prior_precision[:, column] = priors.mean, np.asarray(priors.sd) ** -2.0
    shared = np.array([kind == "1pl" for kind in types])
    if dims > 1 and same_slopes is not None and same_slopes.mean != 0 and "slope" not in estimate:
        raise InputError(f"dims {dims} needs a slope prior of mean 0: any other prefers one rotation over another")
    anchored = np.zeros(num_items, bool) if anchored is None else np.asarray(anchored, bool)
    free[anchored] = False
    shared &= ~anchored
    has_anchors = bool(anchored.any())
    if has_anchors and dims > 1:
        raise InputError("anchor items need dims 1")
    # one slope has one prior, however many items share it
    prior_precision[shared, 0] *= 0.0 if "slope" in estimate else 1 / max(shared.sum(), 1)
    groups = {"slope": tuple(range(dims)), "intercept": (dims,), "guessing": (dims + 1,), "upper": (dims + 2,)}
    own = free & ~(shared[:, None] & (np.arange(free.shape[1]) == 0))
    any_number = dims == 1 and not few_with_asymptotes(types, guessing)
    fewest = {name: 1 if any_number and name in ("slope", "intercept") else FEWEST for name in groups}
    estimated = tuple(groups[name] for name in estimate if own[:, groups[name][0]].sum() >= fewest[name])
    # of a few 4PL items the same prior, held: nothing else keeps their slopes from running off to infinity
    asinh_slopes = dims == 1 and "slope" in estimate and ((0,) in estimated or "4pl" in types)
    if asinh_slopes:
        prior_mean[own[:, 0], 0], prior_precision[own[:, 0], 0] = ASINH_SLOPE_PRIOR.mean, ASINH_SLOPE_PRIOR.sd**-2
    prior_precision = np.where(free, prior_precision, 0.0)
    return Specification(
        free=_compact(free),
        shared=shared,
        prior_mean=_compact(prior_mean),
        prior_precision=_compact(prior_precision),
        has_shared=bool(shared.any()),
        mean_fixed=not has_anchors,
        sd_fixed=not has_anchors and "rasch" not in types,
        free_slopes=bool(free[:, :dims].any()),
        estimated=estimated,
        asinh_slopes=asinh_slopes or own_slopes is not None,
    )


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
    num_items, dims = len(right), specification.dims
    slope = np.where(specification.free[:, :dims], 1.0 / np.sqrt(dims), 0.0)
    slope[:, 0] = np.where(specification.free[:, 0], slope[:, 0], 1.0)
    if dims > 1:  # equal slopes in all dimensions would be a saddle point: tilt them, item by item
        angle = np.linspace(0.2, np.pi / 2 - 0.2, num_items)
        tilt = np.stack([np.cos(angle), *[np.sin(angle) * np.cos(0.7 * k) for k in range(dims - 1)]], axis=1)
        slope = np.where(specification.free[:, :dims], tilt, 0.0)
    lower = np.where(specification.free[:, dims + 1], -START_ASYMPTOTE, -np.inf)
    known: np.ndarray | float = 0.0
    if guessing is not None:
        held = ~np.isnan(guessing)
        lower[held], known = logit(guessing[held]), np.where(held, guessing, 0.0)
    able = np.maximum(right - known * observed, 0.0) / (1 - known)
    return ItemParameters(
        slope=_compact(slope),
        # a normal population of variance 1 flattens logits by about sqrt(1 + 1/2.89)
        intercept=np.log((able + 0.5) / (observed - able + 0.5)) * np.sqrt(1 + 1 / 2.89),
        lower=_compact(lower),
        upper=_compact(np.where(specification.free[:, dims + 2], START_ASYMPTOTE, np.inf)),
    )


def _compact(array: np.ndarray) -> np.ndarray:
    """The same, in the memory of one row where all are equal: there may be millions."""
    return np.broadcast_to(array[:1].copy(), array.shape) if (array == array[:1]).all() else array


def without_asymptotes(items: ItemParameters, specification: Specification) -> tuple[ItemParameters, Specification]:
    """The same items and specification with all free asymptotes held at 0 and 1."""
    dims = specification.dims
    free = np.array(specification.free)
    free[:, dims + 1 :] = False
    bare = items._replace(
        lower=_compact(np.where(specification.free[:, dims + 1], -np.inf, items.lower)),
        upper=_compact(np.where(specification.free[:, dims + 2], np.inf, items.upper)),
    )
    free, precision = _compact(free), _compact(np.where(free, specification.prior_precision, 0.0))
    estimated = tuple(group for group in specification.estimated if max(group) <= dims)
    return bare, dataclasses.replace(specification, free=free, prior_precision=precision, estimated=estimated)
