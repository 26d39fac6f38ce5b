"""Responses on scales of their own: grades, categories, counts, shares."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from irtjax.arguments import require_bounds
from irtjax.errors import InputError
from irtjax.responses.masks import unmasked
from irtjax.responses.matrix import MISSING, as_ids, require_unique
from irtjax.types import Bool, Float, Int, Shaped

BETWEEN = "|"  # labels in a cell of a table
TOGETHER = 2**22  # responses whose worth is looked up at once


@dataclasses.dataclass(frozen=True)
class Scale:
    """What the responses to an item can be.

    Attributes:
        labels: of the categories, in order where they have one: numbers or texts. None of counts, shares and numbers.
        origin: the number that a stored 0 stands for; numbers of any size are stored as (y - origin) / unit.
        unit: of what is stored.
    """

    labels: tuple[Any, ...] | None = None
    origin: float = 0.0
    unit: float = 1.0

    def __post_init__(self) -> None:
        """Refuses fields of another type than their annotations say."""
        require_bounds(self)

    @property
    def is_own(self) -> bool:
        """Whether what is stored is the response itself."""
        return self.origin == 0 and self.unit == 1

    def at(self, stored: float) -> float:
        """The number that is stored so."""
        return self.origin + self.unit * stored

    @property
    def top(self) -> int:
        """K, the highest category; 1 without categories."""
        return 1 if self.labels is None else len(self.labels) - 1

    @property
    def text(self) -> str:
        """The labels in one cell of a table, lowest first; empty without categories."""
        return BETWEEN.join(str(label) for label in self.labels or ())

    @property
    def worth(self) -> Float[np.ndarray, " C"]:
        """What each category is worth: its label where all are numbers, else its place."""
        assert self.labels is not None
        numbers = all(isinstance(label, int | float) for label in self.labels)
        return np.array(self.labels if numbers else range(len(self.labels)), float)

    def worth_of(self, other: "Scale") -> Float[np.ndarray, " C"]:
        """What the categories of another scale, all of which this one has, are worth on it."""
        assert self.labels is not None
        assert other.labels is not None
        return self.worth[[self.labels.index(label) for label in other.labels]]


class Answered(NamedTuple):
    """N responses, one by one.

    Attributes:
        subjects: (N,) who answered.
        items: (N,) what.
        values: (N,) as `ScaledResponses` has them.
        trials: (N,) of each; None where there are no counts.
    """

    subjects: Int[np.ndarray, " N"]
    items: Int[np.ndarray, " N"]
    values: Shaped[np.ndarray, " N"]
    trials: Int[np.ndarray, " N"] | None


@dataclasses.dataclass(frozen=True, eq=False)
class ScaledResponses:
    """Responses of J subjects to I items, each item on its own scale.

    Attributes:
        values: (J, I) number of the category, from 0; successes; or the share itself. -1 where it is missing.
        subject_ids: (J,) strings, unique.
        item_ids: (I,) strings, unique.
        scales: of each item.
        trials: (J, I) of each count; None where there are no counts.
        averaged: the most responses that a value which is no count is the mean of.

    Raises:
        InputError: ids that do not name rows and columns, or as many scales as there are not items.
    """

    values: Shaped[np.ndarray, "J I"]
    subject_ids: Shaped[np.ndarray, " J"]
    item_ids: Shaped[np.ndarray, " I"]
    scales: tuple[Scale, ...]
    trials: Int[np.ndarray, "J I"] | None = None
    averaged: int = dataclasses.field(default=1, compare=False)

    def __post_init__(self) -> None:
        subjects, items = as_ids(self.subject_ids, "subject"), as_ids(self.item_ids, "item")
        values = np.array(unmasked(self.values))
        if values.dtype.kind not in "biuf":
            raise InputError(f"responses of type {values.dtype}, expected numbers")
        require_unique(subjects, items, values.shape)
        if len(self.scales) != len(items):
            raise InputError(f"{len(self.scales)} scales of {len(items)} items")
        for name, leaf in (
            ("values", np.where(np.isnan(values), MISSING, values) if values.dtype.kind == "f" else values),
            ("subject_ids", subjects.copy()),
            ("item_ids", items.copy()),
        ):
            leaf.setflags(write=False)
            object.__setattr__(self, name, leaf)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScaledResponses):
            return NotImplemented
        fields = (field.name for field in dataclasses.fields(self) if field.compare)
        return all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in fields if name != "scales"
        ) and (self.scales == other.scales)

    def __hash__(self) -> int:
        return hash((self.values.shape, self.scales, str(self.item_ids[0]), np.asarray(self.values)[0].tobytes()))

    @property
    def num_subjects(self) -> int:
        """J."""
        return self.values.shape[0]

    @property
    def num_items(self) -> int:
        """I."""
        return self.values.shape[1]

    @property
    def observed(self) -> Bool[np.ndarray, "J I"]:
        """Which responses there are."""
        return np.asarray(self.values) >= 0

    def read(self) -> "ScaledResponses":
        """Itself: all responses are in memory already."""
        return self

    @property
    def num_trials(self) -> int:
        """Trials of all responses; one of each that is no count."""
        observed = self.observed
        return int(observed.sum() if self.trials is None else np.where(observed, self.trials, 0).sum())

    def answered(self, chosen: Bool[np.ndarray, " I"] | None = None) -> Answered:
        """The responses to some of the items, one by one."""
        places = np.arange(self.num_items) if chosen is None else np.flatnonzero(chosen)
        values = np.asarray(self.values)[:, places]
        subjects, at = np.nonzero(values >= 0)
        trials = None if self.trials is None else self.trials[:, places][subjects, at]
        return Answered(subjects, places[at], values[subjects, at], trials)

    def columns(self, items: Int[np.ndarray, " n"]) -> tuple[Shaped[np.ndarray, "J n"], Int[np.ndarray, "J n"] | None]:
        """Answers to some items, those to each one below the other, and their trials."""
        return np.asarray(self.values)[:, items], None if self.trials is None else self.trials[:, items]

    def categories(self, items: Int[np.ndarray, " n"]) -> Any:
        """Categories that subjects chose of some items, each 1 more, in an array of SciPy (J, n)."""
        return scipy.sparse.csr_array(np.asarray(self.values)[:, items].astype(int) + 1)

    def frequencies(self) -> Int[np.ndarray, "I C"]:
        """How often each category of each item was given; of items with categories."""
        most = max(scale.top for scale in self.scales) + 1
        return np.stack([(np.asarray(self.values) == k).sum(axis=0) for k in range(most)], axis=1)

    def worths(self) -> Float[np.ndarray, "J I"]:
        """What each response is worth: its grade, successes of trials as a share, or the share; NaN where missing."""
        return self.worths_on([None if scale.labels is None else scale.worth for scale in self.scales])

    def worths_on(self, of_items: Sequence[Float[np.ndarray, " _"] | None]) -> Float[np.ndarray, "J I"]:
        """The same, by what the categories of each item are worth; None of counts and shares."""
        observed = self.observed
        values = np.where(observed, self.values, np.nan)
        if self.trials is not None:
            values = values / self.trials
        for i, worth in enumerate(of_items):
            if worth is not None:
                at = observed[:, i]
                values[at, i] = worth[np.asarray(self.values)[at, i].astype(int)]
            elif not self.scales[i].is_own:
                values[:, i] = self.scales[i].origin + self.scales[i].unit * values[:, i]
        return values

    def mean(self, axis: int) -> Float[np.ndarray, " N"]:
        """Means of what responses are worth, NaN where there are none: grades, or shares of successes."""
        total, observed = self._sums(axis, lambda part: part.worths())
        return np.divide(total, observed, out=np.full(len(observed), np.nan), where=observed > 0)

    def counts(self, axis: int) -> tuple[Float[np.ndarray, " N"], Int[np.ndarray, " N"]]:
        """Sums of responses as shares of the way from the lowest to the highest, and numbers of responses."""

        def shares(part: "ScaledResponses") -> Float[np.ndarray, "J N"]:
            ends = np.array(
                [
                    (scale.at(0.0), scale.at(1.0)) if scale.labels is None else scale.worth[[0, -1]]
                    for scale in part.scales
                ],
                float,
            ).T
            return (part.worths() - ends[0]) / (ends[1] - ends[0])

        return self._sums(axis, shares)

    def _sums(
        self, axis: int, numbers: Callable[["ScaledResponses"], Float[np.ndarray, "J N"]]
    ) -> tuple[Float[np.ndarray, " N"], Int[np.ndarray, " N"]]:
        """Sums of numbers of responses, some items at a time, and how many there are."""
        size = max(1, TOGETHER // self.num_subjects)
        parts = [self]
        if size < self.num_items:
            parts = [
                self.choose_items(np.arange(at, min(at + size, self.num_items)))
                for at in range(0, self.num_items, size)
            ]
        totals = [np.nansum(numbers(part), axis=axis) for part in parts]
        observed = [part.observed.sum(axis=axis) for part in parts]
        if axis == 0:
            return np.concatenate(totals), np.concatenate(observed)
        return sum(totals[1:], totals[0]), sum(observed[1:], observed[0])

    def choose_items(self, chosen: Shaped[np.ndarray, " chosen"]) -> "ScaledResponses":
        """The responses to some of the items, by a mask (I,) or by positions."""
        places = np.arange(self.num_items)[chosen]
        trials = None if self.trials is None else self.trials[:, places]
        scales = tuple(self.scales[i] for i in places)
        return ScaledResponses(self.values[:, places], self.subject_ids, self.item_ids[places], scales, trials)

    def choose_subjects(self, chosen: Shaped[np.ndarray, " chosen"]) -> "ScaledResponses":
        """The responses of some of the subjects, by a mask (J,) or by positions."""
        trials = None if self.trials is None else self.trials[chosen]
        return ScaledResponses(self.values[chosen], self.subject_ids[chosen], self.item_ids, self.scales, trials)

    def with_responses(self) -> "ScaledResponses":
        """The subjects who have any."""
        there = np.asarray(self.observed.any(axis=1))
        return self if there.all() else self.choose_subjects(there)

    def given_only(self, but: Bool[np.ndarray, " I"] | None = None) -> "ScaledResponses":
        """With the categories that nobody chose taken out of the scale of each item, but of some items."""
        values, observed, scales = np.array(self.values), self.observed, []
        for i, scale in enumerate(self.scales):
            if scale.labels is None or (but is not None and but[i]):
                scales.append(scale)
                continue
            used = np.unique(values[observed[:, i], i]).astype(int)
            places = np.full(len(scale.labels) + 1, MISSING)
            places[used] = np.arange(len(used))
            values[:, i] = places[values[:, i].astype(int)]
            scales.append(Scale(tuple(scale.labels[k] for k in used)))
        return dataclasses.replace(self, values=values, scales=tuple(scales))


def smallest(array: Shaped[np.ndarray, "..."]) -> Shaped[np.ndarray, "..."]:
    """Responses or trials as programs read them: integers in as few bytes as they need, shares in float32."""
    if array.dtype.kind == "f" and not all(scaled == np.floor(scaled) for scaled in (array.max(), array.min())):
        return array.astype(np.float32)
    if array.dtype.kind == "f" and ((array > 0) & (array < 1)).any():
        return array.astype(np.float32)
    return array.astype(next(kind for kind in (np.int8, np.int16, np.int32) if array.max() <= np.iinfo(kind).max))
