"""What an adaptive test may be asked for: when it ends, how it begins, how far it strays from the best item, quotas."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irtjax.arguments import not_negative, require_bounds, whole_number
from irtjax.errors import InputError
from irtjax.evaluation.choices import METHODS
from irtjax.evaluation.rules import IN_SEVERAL_DIMENSIONS, RULES
from irtjax.kernels.models import ItemParameters
from irtjax.populations.normal import Population
from irtjax.types import Bool, Float, Int

REASONS = ("", "max_items", "standard_error", "score_error", "change", "no_items")  # why a test ended, by its code
FEWEST_NODES = 5
ROUNDING = 1e-6  # of the sum of quotas


@dataclasses.dataclass(frozen=True)
class Stop:
    """When a test ends: after `max_items`, or as soon as another condition is met after `min_items`.

    Attributes:
        max_items: the largest number of items.
        standard_error: of the ability, in logits; with D > 1, of each of its dimensions.
        score_error: posterior standard deviation of the predicted score, a share of the bank. D = 1 only.
        change: of the ability by the last answer (or batch of answers), in logits.
        min_items: the smallest number of items.
    """

    max_items: int
    standard_error: float | None = None
    score_error: float | None = None
    change: float | None = None
    min_items: int = 1

    def __post_init__(self) -> None:
        """Refuses fields of another type than their annotations say."""
        require_bounds(self)


@dataclasses.dataclass(frozen=True)
class Randomesque:
    """A random one of the `best` items, instead of the best (Kingsbury and Zara 1989)."""

    best: int = 5

    def __post_init__(self) -> None:
        """Refuses fields of another type than their annotations say."""
        require_bounds(self)


@dataclasses.dataclass(frozen=True)
class Progressive:
    """The item of the largest (1 - s) R_i + s gain_i (Revuelta and Ponsoda 1998).

    R_i is uniform between 0 and the largest gain, and s the share of `max_items` that was asked: the first item is
    random, the last ones are chosen by their gain.
    """


@dataclasses.dataclass(frozen=True)
class Band:
    """The first item is a random one whose difficulty is between `low` and `high`, in logits."""

    low: float
    high: float

    def __post_init__(self) -> None:
        """Refuses fields of another type than their annotations say."""
        require_bounds(self)


def checked(
    bank: ItemParameters,
    rule: str,
    ability: str,
    population: Population,
    stop: Stop,
    exposure: Randomesque | Progressive | None,
    num_nodes: int | None,
) -> ItemParameters:
    """The bank as NumPy arrays.

    Raises:
        InputError: what `irtjax.evaluation.adaptive.adaptive_test` says, but for groups and starts.
    """
    bank = ItemParameters(*(np.asarray(leaf) for leaf in bank))
    num_items = len(bank.intercept)
    if not num_items:
        raise InputError("the `bank` is empty: give the parameters of one item at least")
    ends = np.isnan(bank.lower) | np.isnan(bank.upper) | (bank.lower >= bank.upper)
    bad = ~np.isfinite(bank.slope).all(axis=1) | ~np.isfinite(bank.intercept) | ends
    if bad.any():
        raise InputError(
            f"item {np.flatnonzero(bad)[0]} of the `bank` (1 of {bad.sum():,} such) has a slope or an intercept "
            "that is not finite, or asymptotes that cross: leave it out"
        )
    dims = bank.slope.shape[1]
    for name, value, known in (("rule", rule, tuple(RULES)), ("ability", ability, METHODS)):
        if value not in known:
            raise InputError(f"unknown `{name}` {value!r}, expected one of {', '.join(known)}")
    if dims > 1 and rule not in IN_SEVERAL_DIMENSIONS:
        raise InputError(
            f"`rule` {rule!r} is for one dimension, the bank has {dims}: expected {' or '.join(IN_SEVERAL_DIMENSIONS)}"
        )
    mean, sd = (np.asarray(x, float) for x in population)
    if mean.ndim or sd.ndim or not (np.isfinite(mean) and 0 < sd < math.inf):
        raise InputError(f"`population` of mean {mean} and sd {sd}: expected one finite number each, sd above 0")
    _require_stop(stop, num_items, dims)
    if isinstance(exposure, Randomesque):
        whole_number("randomesque", exposure.best, 1, num_items)
    if num_nodes is not None:
        whole_number("num_nodes", num_nodes, FEWEST_NODES)
    return bank


def _require_stop(stop: Stop, num_items: int, dims: int) -> None:
    whole_number("max_items", stop.max_items, 1)
    if stop.max_items > num_items:
        raise InputError(f"`max_items` {stop.max_items:,}, but the bank has {num_items:,} items: ask for fewer")
    whole_number("min_items", stop.min_items, 0, stop.max_items)
    for name in ("standard_error", "score_error", "change"):
        if getattr(stop, name) is not None:
            not_negative(name, getattr(stop, name))
    if dims > 1 and stop.score_error is not None:
        raise InputError(f"`score_error` is for one dimension, the bank has {dims}: use `standard_error`")


def grouped(
    num_items: int, groups: Sequence[Any] | np.ndarray | None, quotas: Mapping[Any, float] | None, max_items: int
) -> tuple[Int[np.ndarray, " I"], Float[np.ndarray, " G"]]:
    """Group (I,) of each item, by number, and share (G,) of each group in a test.

    Raises:
        InputError: groups that are not one an item; quotas that are negative, do not sum to 1 or are of unknown groups,
            or of groups that hold fewer than `max_items` items together.
    """
    if groups is None:
        if quotas is not None:
            raise InputError("`quotas` without `groups`: give the group of each item")
        return np.zeros(num_items, int), np.ones(1)
    labels = [label.item() if isinstance(label, np.generic) else label for label in groups]  # as messages show them
    if len(labels) != num_items:
        raise InputError(f"`groups` of {len(labels):,} items, expected one for each of the {num_items:,} of the bank")
    number: dict[Any, int] = {}
    which = np.array([number.setdefault(label, len(number)) for label in labels])
    sizes = np.bincount(which)
    if quotas is None:
        return which, sizes / num_items
    unknown = [label for label in quotas if label not in number]
    if unknown:
        raise InputError(f"`quotas`: group {unknown[0]!r} has no item: name groups that `groups` has")
    shares = np.array([not_negative(f"quotas[{label!r}]", quotas.get(label, 0.0)) for label in number])
    if abs(shares.sum() - 1) > ROUNDING:
        raise InputError(f"`quotas` sum to {shares.sum():.6g}, expected 1: they are shares of a test")
    possible = sizes[shares > 0].sum()
    if possible < max_items:
        raise InputError(f"`max_items` {max_items:,}, but groups with quotas have {possible:,} items: ask for fewer")
    return which, shares


def first_items(
    bank: ItemParameters, start: Band | Sequence[int] | np.ndarray | None, max_items: int
) -> tuple[Int[np.ndarray, " S"], Bool[np.ndarray, " _"]]:
    """Items (S,) that are asked first, and those (I,) that the first may be; (0,) for the choice of the rule.

    Raises:
        InputError: an item that the bank does not have, or twice the same; no item in the band.
    """
    if start is None:
        return np.zeros(0, int), np.zeros(0, bool)
    if isinstance(start, Band):
        if bank.slope.shape[1] > 1:
            raise InputError("`start` by a band of difficulties is for one dimension: give positions of items")
        if not start.low <= start.high:  # asked this way round, NaN is refused too
            raise InputError(f"`start` by a band from {start.low} to {start.high}: expected `low` at most `high`")
        with np.errstate(divide="ignore", invalid="ignore"):
            difficulty = -bank.intercept / bank.slope[:, 0]
        within = (difficulty >= start.low) & (difficulty <= start.high)
        if not within.any():
            raise InputError(f"`start`: no item has a difficulty from {start.low} to {start.high}: widen the band")
        return np.zeros(0, int), np.asarray(within)
    first = [whole_number("start", item, 0, len(bank.intercept) - 1) for item in start]
    if len(set(first)) < len(first):
        raise InputError("`start` has an item twice: name each once")
    if len(first) > max_items:
        raise InputError(f"`start` has {len(first):,} items, more than `max_items` {max_items:,}")
    return np.array(first, int), np.zeros(0, bool)
