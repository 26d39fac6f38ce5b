"""Which parameters of which item are estimated, shared or held, how the scale is identified, and in what order.

Arrays of item parameters (I, K) have the columns slope_1 … slope_D, intercept, and the others of the model, such as
lower and upper. K is D + 1 + L, or D + 1 where no item has others. `Layout` numbers the free ones, and those of the
population, in one vector.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from irtjax.estimation.priors import NOTHING, Weak
from irtjax.item_models.protocol import Items, PredictorParameters
from irtjax.kernels.models import ItemParameters
from irtjax.types import AnyArray, Bool, Float, Int


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=("free", "shared", "prior_mean", "prior_precision", "tied"),
    meta_fields=(
        "dims",
        "num_groups",
        "num_predictors",
        "has_shared",
        "mean_fixed",
        "sd_fixed",
        "free_slopes",
        "estimated",
        "asinh_slopes",
        "common_others",
        "weak_others",
        "tied_columns",
    ),
)
@dataclasses.dataclass(frozen=True)
class Specification:
    """What is estimated, per item i and parameter k in the order slope_1 … slope_D, intercept, others.

    A pytree: its arrays are traced, its flags are static.

    Attributes:
        free: (I, K) bool, estimated; a parameter that is not keeps its starting value.
        shared: (I,) bool, the item's slope is the one that all 1PL items have in common.
        prior_mean: (I, K) of normal priors.
        prior_precision: (I, K), 0 where there is none.
        dims: D.
        has_shared: whether any item's slope is shared.
        mean_fixed: the population mean is 0 by convention: what the E-step finds is folded into the intercepts.
        sd_fixed: its standard deviation is 1 by convention, and folded into the slopes. Unfolded, it is estimated.
        free_slopes: whether any slope is free.
        estimated: columns whose prior is estimated (`estimation.empirical_priors`); those that share its standard
            deviation together.
        asinh_slopes: the prior of slopes is one of asinh slope (`priors.to_prior_scale`).
        common_others: columns after the intercept in which all items where they are free have one parameter in common.
        weak_others: what is known beforehand of the estimated priors of columns after the intercept.
        num_groups: G populations of subjects; means and standard deviations of all but the first are free.
        num_predictors: C predictors of the mean ability of each subject, whose coefficients are free; there is one
            population then, and its mean is the coefficient of a predictor or 0.
        tied_columns: T columns in which some items have one parameter in common.
        tied: (T, I) which items these are; all of them free there, and no two sets of a column have one in common.
    """

    free: AnyArray
    shared: AnyArray
    prior_mean: AnyArray
    prior_precision: AnyArray
    dims: int
    has_shared: bool
    mean_fixed: bool
    sd_fixed: bool
    free_slopes: bool
    estimated: tuple[tuple[int, ...], ...] = ()
    asinh_slopes: bool = False
    common_others: tuple[int, ...] = ()
    weak_others: Weak = NOTHING
    num_groups: int = 1
    num_predictors: int = 0
    tied_columns: tuple[int, ...] = ()
    tied: Any = ()

    @property
    def common(self) -> list[tuple[int, AnyArray]]:
        """Columns with the items (I,) that have a parameter in common there."""
        found = [(0, self.shared)] if self.has_shared else []
        found += [(column, self.free[:, column]) for column in self.common_others]
        return found + [(column, self.tied[at] & self.free[:, column]) for at, column in enumerate(self.tied_columns)]

    def has_own(self, column: int) -> AnyArray:
        """Which items (I,) have a free parameter there that is theirs alone."""
        own = self.free[:, column]
        for at, items in self.common:
            if at == column and at not in self.common_others:
                own = own & ~items
        return own

    def without_rotation(self) -> "Specification":
        """The same, but with the slopes free that are held only to fix the rotation, under the prior of the others."""
        dims = self.dims
        free, mean, precision = (np.array(leaf) for leaf in (self.free, self.prior_mean, self.prior_precision))
        fixed = free[:, :1] & ~free[:, :dims]
        free[:, :dims] |= fixed
        for leaf in (mean, precision):
            leaf[:, :dims] = np.where(fixed, leaf[:, :1], leaf[:, :dims])
        return dataclasses.replace(self, free=free, prior_mean=mean, prior_precision=precision)


def as_array(items: Items) -> Float[AnyArray, "I K"]:
    """(I, K): slopes, intercept, others."""
    xp = items.slope.__array_namespace__()
    others = [items.others] if isinstance(items, PredictorParameters) else [items.lower[:, None], items.upper[:, None]]
    return xp.concatenate([items.slope, items.intercept[:, None], *others], axis=1)


def as_items(array: Float[AnyArray, "I K"], like: Items | None = None) -> Any:
    """The inverse of `as_array`; `like` items of the same kind, or right/wrong ones."""
    if isinstance(like, PredictorParameters):
        dims = like.slope.shape[1]
        return like._replace(slope=array[:, :dims], intercept=array[:, dims], others=array[:, dims + 1 :])
    dims = array.shape[1] - 3
    return ItemParameters(array[:, :dims], array[:, dims], array[:, dims + 1], array[:, dims + 2])


@dataclasses.dataclass(frozen=True)
class Layout:
    """Position of every free parameter in one vector of P: items' own, those in common, means and log sds.

    Attributes:
        items: (I, K) position of each item parameter, -1 where it is held. Items that share one share its position.
        mean: (D,) position of the population's means, -1 where they are fixed; (G, D) of several groups; (C, D) of
            coefficients of predictors.
        log_sd: (D,), or (G, D) of several groups, position of the logarithms of the standard deviations, -1 where they
            are fixed.
        num_own: parameters of single items; the rest is common to all.
        size: P.
    """

    items: Int[np.ndarray, "I K"]
    mean: Int[np.ndarray, "*G D"]
    log_sd: Int[np.ndarray, "*H D"]
    num_own: int
    size: int

    @property
    def own(self) -> Bool[np.ndarray, "I K"]:
        """Which parameters are free and of one item alone."""
        return (self.items >= 0) & (self.items < self.num_own)

    @property
    def population(self) -> Int[np.ndarray, " M"]:
        """Positions of all means and then of all standard deviations."""
        return np.concatenate([self.mean.ravel(), self.log_sd.ravel()])

    def gather(self, vector: Float[np.ndarray, " P"]) -> Float[np.ndarray, "I K"]:
        """The entries of a vector by item, 0 where a parameter is held."""
        return np.where(self.items >= 0, vector[self.items], 0.0)

    def as_vector(self, items: Items) -> Float[np.ndarray, " P"]:
        """The free parameters of items; 0 for the population."""
        result, free = np.zeros(self.size), self.items >= 0
        result[self.items[free]] = as_array(items)[free]
        return result

    def add_up(self, array: Float[np.ndarray, "I K"]) -> Float[np.ndarray, " P"]:
        """A gradient by item as a vector, those in common summed over their items; 0 for the population."""
        free = self.items[:, : array.shape[1]] >= 0
        return np.bincount(self.items[:, : array.shape[1]][free], array[free], self.size).astype(array.dtype)


def layout(specification: Specification) -> Layout:
    """The layout of a specification."""
    free, common = np.asarray(specification.free), specification.common
    index = np.full(free.shape, -1)
    own = free.copy()
    for column, items in common:
        own[:, column] &= ~np.asarray(items)
    num_own = size = int(own.sum())
    index[own] = np.arange(num_own)
    for column, items in common:
        if np.any(items):
            index[np.asarray(items), column] = size
            size += 1
    of_items, population = size, []
    for fixed in (specification.mean_fixed, specification.sd_fixed):
        places = np.full((specification.num_groups, specification.dims), -1)
        some = places[int(fixed) :]  # of the first group alone they may be fixed
        some[:] = np.arange(size, size + some.size).reshape(some.shape)
        size += some.size
        population.append(places if specification.num_groups > 1 else places[0])
    mean, log_sd = population
    if specification.num_predictors:
        before = int((mean >= 0).sum())
        shape = specification.num_predictors, specification.dims
        mean = of_items + np.arange(shape[0] * shape[1]).reshape(shape)
        log_sd = np.where(log_sd >= 0, log_sd - before + mean.size, -1)
        size += mean.size - before
    return Layout(index, mean, log_sd, num_own, size)


def with_ties(
    specification: Specification, items: Items, ties: Sequence[tuple[int, Int[np.ndarray, " n"]]]
) -> tuple[Specification, Items]:
    """Some items with one parameter in common in a column, from the mean of their starts on.

    A parameter in common has a prior once, and none that is estimated.

    Args:
        specification: in which these are free.
        items: to start from.
        ties: columns, and the numbers of the items.
    """
    free, precision, array = (
        np.array(leaf) for leaf in (specification.free, specification.prior_precision, as_array(items))
    )
    estimated = {column for group in specification.estimated for column in group}
    ties = [(column, some[free[some, column]]) for column, some in ties]
    ties = [(column, some) for column, some in ties if len(some) > 1]
    tied = np.zeros((len(ties), len(free)), bool)
    for at, (column, some) in enumerate(ties):
        tied[at, some] = True
        array[some, column] = array[some, column].mean()
        precision[some, column] = 0.0 if column in estimated else precision[some, column] / len(some)
    columns = tuple(column for column, _ in ties)
    held = dataclasses.replace(specification, prior_precision=precision, tied=tied, tied_columns=columns)
    return held, as_items(array, items)


def with_held(specification: Specification, places: Layout, held: Bool[np.ndarray, " P"]) -> Specification:
    """The specification in which the parameters that are held are not free."""
    if not held.any():
        return specification
    free = np.asarray(specification.free) & ~((places.items >= 0) & held[places.items])
    shared = np.asarray(specification.shared) & free[:, 0]
    return dataclasses.replace(specification, free=free, shared=shared, has_shared=bool(shared.any()))


def num_parameters(specification: Specification) -> int:
    """Free parameters: of the items, and of the population where it is not fixed."""
    return layout(specification).size


def compact(array: np.ndarray) -> np.ndarray:
    """The same, in the memory of one row where all are equal: there may be millions."""
    return np.broadcast_to(array[:1].copy(), array.shape) if (array == array[:1]).all() else array


def without_asymptotes(items: ItemParameters, specification: Specification) -> tuple[ItemParameters, Specification]:
    """The same items and specification with all free asymptotes held at 0 and 1."""
    dims = specification.dims
    free = np.array(specification.free)
    free[:, dims + 1 :] = False
    bare = items._replace(
        lower=compact(np.where(specification.free[:, dims + 1], -np.inf, items.lower)),
        upper=compact(np.where(specification.free[:, dims + 2], np.inf, items.upper)),
    )
    free, precision = compact(free), compact(np.where(free, specification.prior_precision, 0.0))
    estimated = tuple(group for group in specification.estimated if max(group) <= dims)
    return bare, dataclasses.replace(specification, free=free, prior_precision=precision, estimated=estimated)
