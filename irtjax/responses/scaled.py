"""Responses on scales of their own: grades, categories, counts, shares."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from irtjax.errors import InputError
from irtjax.responses.matrix import as_ids, require_unique
from irtjax.types import Bool, Float, Int, Shaped

MISSING = -1
BETWEEN = "|"  # labels in a cell of a table


@dataclasses.dataclass(frozen=True)
class Scale:
    """What the responses to an item can be.

    Attributes:
        labels: of the categories, in order where they have one: numbers or texts. None of counts and shares.
    """

    labels: tuple[Any, ...] | None = None

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


@dataclasses.dataclass(frozen=True, eq=False)
class ScaledResponses:
    """Responses of J subjects to I items, each item on its own scale.

    Attributes:
        values: (J, I) number of the category, from 0; successes; or the share itself. -1 where it is missing.
        subject_ids: (J,) strings, unique.
        item_ids: (I,) strings, unique.
        scales: of each item.
        trials: (J, I) of each count; None where there are no counts.

    Raises:
        InputError: ids that do not name rows and columns, or as many scales as there are not items.
    """

    values: Float[np.ndarray, "J I"] | Int[np.ndarray, "J I"]
    subject_ids: Shaped[np.ndarray, " J"]
    item_ids: Shaped[np.ndarray, " I"]
    scales: tuple[Scale, ...]
    trials: Int[np.ndarray, "J I"] | None = None

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
        values = np.where(self.observed, self.values, np.nan)
        if self.trials is not None:
            values = values / self.trials
        for i, scale in enumerate(self.scales):
            if scale.labels is not None:
                at = self.observed[:, i]
                values[at, i] = scale.worth[np.asarray(self.values)[at, i].astype(int)]
        return values

    def mean(self, axis: int) -> Float[np.ndarray, " N"]:
        """Means of what responses are worth, NaN where there are none: grades, or shares of successes."""
        worths = self.worths()
        observed = self.observed.sum(axis=axis)
        return np.divide(np.nansum(worths, axis=axis), observed, out=np.full(len(observed), np.nan), where=observed > 0)

    def counts(self, axis: int) -> tuple[Float[np.ndarray, " N"], Int[np.ndarray, " N"]]:
        """Sums of responses as shares of the way from the lowest to the highest, and numbers of responses."""
        worths = self.worths()
        ends = np.array([(0, 1) if scale.labels is None else scale.worth[[0, -1]] for scale in self.scales], float).T
        return np.nansum((worths - ends[0]) / (ends[1] - ends[0]), axis=axis), self.observed.sum(axis=axis)

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

    def given_only(self) -> "ScaledResponses":
        """With the categories that nobody chose taken out of the scale of each item."""
        values, scales = np.array(self.values), []
        for i, scale in enumerate(self.scales):
            if scale.labels is None:
                scales.append(scale)
                continue
            used = np.unique(values[self.observed[:, i], i]).astype(int)
            places = np.full(len(scale.labels) + 1, MISSING)
            places[used] = np.arange(len(used))
            values[:, i] = places[values[:, i].astype(int)]
            scales.append(Scale(tuple(scale.labels[k] for k in used)))
        return dataclasses.replace(self, values=values, scales=tuple(scales))


def of_grades(
    table: Float[np.ndarray, "J I"], subject_ids: Sequence[str], item_ids: Sequence[str], labels: Sequence[Any] = ()
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
            f"subject {str(subject_ids[j])!r}, item {str(item_ids[i])!r}: grade {array[j, i]:g}, expected one of "
            + ", ".join(f"{label:g}" for label in known)
        )
    scale = Scale(tuple(int(label) if label == int(label) else float(label) for label in known))
    values = np.where(there, places, MISSING).astype(np.int8)
    return ScaledResponses(values, np.array(subject_ids), np.array(item_ids), (scale,) * array.shape[1])
