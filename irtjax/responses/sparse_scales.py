"""Responses on scales of their own where each subject answered few items: what they come to, by sums over answers."""

import dataclasses
from typing import Any

import numpy as np
import scipy.sparse

from irtjax.responses.matrix import MISSING
from irtjax.responses.scaled import Answered, Scale
from irtjax.types import Bool, Float, Int, Shaped

OF_EACH = 2000  # answers to an item that are enough to start from


class SparseScales:
    """What `ScaledResponses` says of responses, as `SparseResponses` do."""

    starts: Int[np.ndarray, " ends"]
    items: Int[np.ndarray, " N"]
    answers: Shaped[np.ndarray, " N"]
    subject_ids: Shaped[np.ndarray, " J"]
    item_ids: Shaped[np.ndarray, " I"]
    scales: Any
    trials: Int[np.ndarray, " N"] | None
    subjects: Any

    @property
    def num_trials(self) -> int:
        """Trials of all responses; one of each that is no count."""
        return len(self.answers) if self.trials is None else int(self.trials.sum())

    def answered(self, chosen: Bool[np.ndarray, " I"] | None = None) -> Answered:
        """The responses to some of the items, one by one."""
        at = slice(None) if chosen is None else np.flatnonzero(chosen[self.items])
        trials = None if self.trials is None else self.trials[at]
        return Answered(self.subjects[at], self.items[at], self.answers[at], trials)

    def frequencies(self) -> Int[np.ndarray, "I C"]:
        """How often each category of each item was given; of items with categories."""
        most = max(scale.top for scale in self.scales) + 1
        of_items = (self.items.astype(np.int64) * most, np.asarray(self.answers, np.int64))
        return np.bincount(sum(of_items), minlength=len(self.item_ids) * most).reshape(-1, most)

    def columns(self, items: Int[np.ndarray, " n"]) -> tuple[Shaped[np.ndarray, "K n"], Int[np.ndarray, "K n"] | None]:
        """Answers to some items, those to each one below the other, and their trials; 2,000 of an item at most.

        They are from all over the subjects, and rows are of no subject.
        """
        chosen = np.zeros(len(self.item_ids), bool)
        chosen[items] = True
        found = self.answered(chosen)
        order = np.argsort(found.items, kind="stable")
        number = np.bincount(found.items, minlength=len(chosen))[items]
        begin, most = np.cumsum(number) - number, min(int(number.max(initial=0)), OF_EACH)
        nth = np.arange(most)[:, None]
        many = number > most
        place = np.where(many, nth * number // max(most, 1), nth)
        at = order[np.where(place < number, begin + place, 0)] if len(order) else np.zeros(place.shape, int)
        values = np.where(place < number, np.asarray(found.values)[at], MISSING)
        return values, None if found.trials is None else np.where(place < number, found.trials[at], 1)

    def categories(self, items: Int[np.ndarray, " n"]) -> Any:
        """Categories that subjects chose of some items, each 1 more, in an array of SciPy (J, n)."""
        own = self.choose_items(items)  # type: ignore[attr-defined]
        return scipy.sparse.csr_array((own.answers + 1, own.items, own.starts), (len(self.subject_ids), len(items)))

    def given_only(self, but: Bool[np.ndarray, " I"] | None = None) -> Any:
        """With the categories that nobody chose taken out of the scale of each item, but of some items."""
        changed = np.array([scale.labels is not None for scale in self.scales])
        if but is not None:
            changed &= ~but
        at = changed[self.items]
        most = max(scale.top for scale in self.scales) + 1
        cells = self.items[at].astype(np.int64) * most + np.asarray(self.answers[at], np.int64)
        used = np.bincount(cells, minlength=len(changed) * most).reshape(-1, most) > 0
        places = np.cumsum(used, axis=1) - 1
        answers = np.array(self.answers)
        answers[at] = places.ravel()[cells]
        scales = tuple(
            Scale(tuple(label for label, own in zip(scale.labels, row, strict=False) if own)) if chosen else scale
            for scale, row, chosen in zip(self.scales, used, changed, strict=True)
        )
        return dataclasses.replace(self, answers=answers, scales=scales)  # type: ignore[type-var]

    def worths(self) -> Float[np.ndarray, " N"]:
        """What each response is worth: its grade, successes of trials as a share, or the share."""
        worths = [None if scale.labels is None else scale.worth for scale in self.scales]
        values = np.array(self.answers, float)
        if self.trials is not None:
            values = values / self.trials
        most = max((len(worth) for worth in worths if worth is not None), default=0)
        table = np.array([np.zeros(most) if one is None else np.pad(one, (0, most - len(one))) for one in worths])
        at = np.array([worth is not None for worth in worths])[self.items]
        values[at] = table[self.items[at], np.asarray(self.answers[at], int)]
        return values

    def shares(self) -> Float[np.ndarray, " N"]:
        """How far each response is on the way from the lowest to the highest of its item."""
        low, high = np.array([(0.0, 1.0) if one.labels is None else one.worth[[0, -1]] for one in self.scales]).T
        return (self.worths() - low[self.items]) / (high - low)[self.items]

    def mean(self, axis: int) -> Float[np.ndarray, " N"]:
        """Means of what responses are worth, NaN where there are none: grades, or shares of successes."""
        of, size = (self.items, len(self.item_ids)) if axis == 0 else (self.subjects, len(self.subject_ids))
        total, observed = np.bincount(of, self.worths(), size), np.bincount(of, minlength=size)
        return np.divide(total, observed, out=np.full(size, np.nan), where=observed > 0)
