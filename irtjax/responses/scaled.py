"""Responses on scales of their own: grades, categories, counts, shares."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irtjax.errors import InputError
from irtjax.responses.matrix import MISSING, as_ids, require_unique
from irtjax.types import Bool, Float, Int, Shaped

BETWEEN = "|"  # labels in a cell of a table
TOGETHER = 2**22  # responses whose worth is looked up at once
Ids = Sequence[str] | np.ndarray


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

    values: Float[np.ndarray, "J I"] | Int[np.ndarray, "J I"]
    subject_ids: Shaped[np.ndarray, " J"]
    item_ids: Shaped[np.ndarray, " I"]
    scales: tuple[Scale, ...]
    trials: Int[np.ndarray, "J I"] | None = None
    averaged: int = dataclasses.field(default=1, compare=False)

    def __post_init__(self) -> None:
        subjects, items = as_ids(self.subject_ids, "subject"), as_ids(self.item_ids, "item")
        require_unique(subjects, items, self.values.shape)
        if len(self.scales) != len(items):
            raise InputError(f"{len(self.scales)} scales of {len(items)} items")
        for name, leaf in (
            ("values", np.array(self.values)),
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


def of_grades(
    table: Float[np.ndarray, "J I"], subject_ids: Ids, item_ids: Ids, labels: Sequence[Any] = ()
) -> ScaledResponses:
    """Grades on one scale.

    Args:
        table: grades as they were given, NaN where missing.
        subject_ids: of the rows.
        item_ids: of the columns.
        labels: all grades of the scale, in order; by default those that occur.

    Raises:
        InputError: a grade that is not of the scale.
    """
    array = np.asarray(table, float)
    there = np.isfinite(array)
    known = np.unique(array[there]) if not len(labels) else np.array(labels, float)
    places = np.searchsorted(known, array)
    found = there & (known[np.minimum(places, len(known) - 1)] == array)
    if (there & ~found).any():
        j, i = np.argwhere(there & ~found)[0]
        raise InputError(
            f"{_cell(j, i, subject_ids, item_ids)}: grade {array[j, i]:g}, expected one of "
            + ", ".join(f"{label:g}" for label in known)
        )
    scale = Scale(tuple(int(label) if label == int(label) else float(label) for label in known))
    values = np.where(there, places, MISSING).astype(np.int8)
    return ScaledResponses(values, np.array(subject_ids), np.array(item_ids), (scale,) * array.shape[1])


def of_counts(
    successes: Float[np.ndarray, "J I"] | Int[np.ndarray, "J I"],
    trials: Any,
    subject_ids: Ids,
    item_ids: Ids,
) -> ScaledResponses:
    """Successes of a number of trials.

    Args:
        successes: k, NaN where missing.
        trials: n, of all, of each item (I,), of each subject (J, 1) or of each response (J, I).
        subject_ids: of the rows.
        item_ids: of the columns.

    Raises:
        InputError: what is no number of successes, or no trials of a response; names subject and item.
    """
    k = np.asarray(successes, float)
    try:
        n = np.broadcast_to(np.asarray(trials, float), k.shape)
    except ValueError as error:
        message = f"trials {np.shape(trials)} of responses {k.shape}: expected one number, (I,), (J, 1) or (J, I)"
        raise InputError(message) from error
    there = ~np.isnan(k)
    whole = np.isfinite(n) & (n >= 1) & (n == np.floor(n))
    for bad, expected in (
        (there & ~whole, "expected a whole number of trials, 1 or more"),
        (there & ~(np.isfinite(k) & (k >= 0) & (k == np.floor(k))), "expected a whole number of successes, 0 or more"),
        (there & (k > n), "more successes than trials"),
    ):
        if bad.any():
            j, i = np.argwhere(bad)[0]
            raise InputError(f"{_cell(j, i, subject_ids, item_ids)}: {k[j, i]:g} of {n[j, i]:g}, {expected}")
    values, trials = np.where(there, k, MISSING).astype(np.int32), np.where(there, n, 1).astype(np.int32)
    return ScaledResponses(values, np.array(subject_ids), np.array(item_ids), (Scale(),) * k.shape[1], trials)


def of_shares(
    table: Float[np.ndarray, "J I"], subject_ids: Ids, item_ids: Ids, *, ends: bool = True
) -> ScaledResponses:
    """Shares from 0 to 1, NaN where missing.

    Args:
        table: the shares.
        subject_ids: of the rows.
        item_ids: of the columns.
        ends: whether a share may be exactly 0 or 1.

    Raises:
        InputError: a share that is less than 0 or more than 1, or an end where there may be none.
    """
    shares = np.asarray(table, float)
    there = ~np.isnan(shares)
    inside = (shares >= 0) & (shares <= 1) if ends else (shares > 0) & (shares < 1)
    if (there & ~inside).any():
        j, i = np.argwhere(there & ~inside)[0]
        expected = "expected a share from 0 to 1" if ends else "expected a share between 0 and 1, not one of them"
        raise InputError(f"{_cell(j, i, subject_ids, item_ids)}: {shares[j, i]:g}, {expected}")
    values = np.where(there, shares, MISSING)
    return ScaledResponses(values, np.array(subject_ids), np.array(item_ids), (Scale(),) * shares.shape[1])


def beside(*parts: ScaledResponses) -> ScaledResponses:
    """One test out of the items of several, answered by the same subjects.

    Raises:
        InputError: the subjects are others, or in another order.
    """
    first = parts[0]
    if any(not np.array_equal(part.subject_ids, first.subject_ids) for part in parts):
        raise InputError("tests side by side need the same subjects in the same order")
    trials = [np.ones(part.values.shape, np.int32) if part.trials is None else part.trials for part in parts]
    return ScaledResponses(
        np.concatenate([part.values for part in parts], axis=1),
        first.subject_ids,
        np.concatenate([part.item_ids for part in parts]),
        sum((part.scales for part in parts), ()),
        None if all(part.trials is None for part in parts) else np.concatenate(trials, axis=1),
    )


def _cell(j: Any, i: Any, subject_ids: Ids, item_ids: Ids) -> str:
    return f"subject {str(subject_ids[j])!r}, item {str(item_ids[i])!r}"


def reversed_items(responses: Any, item_ids: Sequence[str]) -> Any:
    """Responses in which some items are scored the other way round: the highest grade is the lowest.

    Args:
        responses: grades, or a matrix of right and wrong answers.
        item_ids: of these items.

    Raises:
        InputError: one of the items has counts or shares.
    """
    turned, values = np.isin(responses.item_ids, list(item_ids)), np.array(responses.values)
    if not isinstance(responses, ScaledResponses):
        return dataclasses.replace(responses, values=np.where(turned & (values >= 0), 1 - values, values))
    scales = list(responses.scales)
    for i in np.flatnonzero(turned):
        labels = scales[i].labels
        if labels is None:
            raise InputError(f"item {str(responses.item_ids[i])!r} has counts or shares: grades alone are reversed")
        if all(isinstance(label, int | float) for label in labels):
            scales[i] = Scale(tuple(labels[0] + labels[-1] - label for label in reversed(labels)))
        else:
            scales[i] = Scale(tuple(reversed(labels)))
        values[:, i] = np.where(values[:, i] >= 0, len(labels) - 1 - values[:, i], MISSING)
    return dataclasses.replace(responses, values=values, scales=tuple(scales))
