"""Responses that several judges gave, each on the scale of its item: one column for each pair of item and judge."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from irtjax.errors import InputError
from irtjax.responses.formats.given import Given
from irtjax.responses.scaled import MISSING, ScaledResponses
from irtjax.responses.scaling import Labels, as_scaled
from irtjax.types import Bool, Float, Int, Shaped

SHOWN = 5  # judges that a message names


class Judged(NamedTuple):
    """Responses of J subjects to I items by R judges.

    Attributes:
        of_rows: one row for each subject and judge that there are, on the scales of the items.
        subjects: (rows,) which subject.
        judges: (rows,) which judge.
        subject_ids: (J,).
        judge_ids: (R,).
    """

    of_rows: ScaledResponses
    subjects: Int[np.ndarray, " rows"]
    judges: Int[np.ndarray, " rows"]
    subject_ids: Shaped[np.ndarray, " J"]
    judge_ids: Shaped[np.ndarray, " R"]

    @property
    def num_subjects(self) -> int:
        """J."""
        return len(self.subject_ids)

    @property
    def num_items(self) -> int:
        """I."""
        return self.of_rows.num_items

    @property
    def item_ids(self) -> Shaped[np.ndarray, " I"]:
        """Of the items."""
        return self.of_rows.item_ids

    def by_judge_and_item(self) -> Bool[np.ndarray, "R I"]:
        """Whether a judge gave any response to an item."""
        found = np.zeros((len(self.judge_ids), self.of_rows.num_items), bool)
        np.logical_or.at(found, self.judges, self.of_rows.observed)
        return found

    def means(self) -> tuple[Int[np.ndarray, " R"], Float[np.ndarray, " R"]]:
        """Of each judge the number of responses, and the mean of what they are worth."""
        worth, seen = np.nan_to_num(self.of_rows.worths()).sum(axis=1), self.of_rows.observed.sum(axis=1)
        size = len(self.judge_ids)
        number = np.bincount(self.judges, seen, size).astype(int)
        return number, np.bincount(self.judges, worth, size) / np.maximum(number, 1)


def by_judge(given: Given) -> tuple[Given, Int[np.ndarray, " rows"], Int[np.ndarray, " rows"]]:
    """Responses with a subject for each subject and judge that there are; and who of both each of these is.

    Raises:
        InputError: nothing says who judged.
    """
    if given.facet is None:
        raise InputError("nothing says who judged: expected a table with one row per response and a column of judges")
    pairs, rows = np.unique(given.subjects.astype(int) * len(given.facet_ids) + given.facet, return_inverse=True)
    subjects, judges = np.divmod(pairs, len(given.facet_ids))
    ids = [f"{given.subject_ids[j]} by {given.facet_ids[r]}" for j, r in zip(subjects, judges, strict=True)]
    if len(set(ids)) < len(ids):  # of ids that have such words themselves
        ids = [f"{at}: {one}" for at, one in enumerate(ids)]
    return given._replace(subject_ids=ids, subjects=rows.astype(np.int32)), subjects, judges


def as_judged(given: Given, wanted: Sequence[str], grades: Labels = None, trials: object = None) -> Judged:
    """Responses by judge, on the scales of their items (`irtjax.responses.scaling.as_scaled`).

    Several responses of a judge are counts or their mean, as there.

    Raises:
        InputError: as there; or nothing says who judged.
    """
    rows, subjects, judges = by_judge(given)
    scaled = as_scaled(rows, wanted, grades, trials=trials)
    return Judged(scaled, subjects, judges, np.array(given.subject_ids), np.array(given.facet_ids))


def pooled(judged: Judged, rows: ScaledResponses) -> ScaledResponses:
    """The responses of subjects to items whoever judged: sums of counts; else means, of grades the nearest one.

    Args:
        judged: the responses.
        rows: the same, perhaps without categories that nobody was given.
    """
    size = len(judged.subject_ids), rows.num_items
    numbers, sums, trials = np.zeros(size, int), np.zeros(size), np.zeros(size, int)
    seen = rows.observed
    of_rows = seen if rows.trials is None else np.where(seen, rows.trials, 0)
    worth = np.where(seen, rows.values, 0).astype(float)
    for i, scale in enumerate(rows.scales):
        if scale.labels is not None:
            worth[seen[:, i], i] = scale.worth[np.asarray(rows.values)[seen[:, i], i].astype(int)]
    for total, part in ((numbers, seen), (sums, worth), (trials, of_rows)):
        np.add.at(total, judged.subjects, part)
    values = np.where(numbers > 0, sums, MISSING)
    for i, scale in enumerate(rows.scales):
        there = numbers[:, i] > 0
        if scale.labels is not None:
            middles = (scale.worth[1:] + scale.worth[:-1]) / 2
            values[there, i] = np.searchsorted(middles, sums[there, i] / numbers[there, i], side="right")
        elif rows.trials is None:
            values[there, i] /= numbers[there, i]
    return ScaledResponses(
        values, judged.subject_ids, rows.item_ids, rows.scales, None if rows.trials is None else np.maximum(trials, 1)
    )


def require_comparable(judged: Judged) -> None:
    """Refuses judges whose severity nothing tells from the difficulty of the items.

    Raises:
        InputError: names them.
    """
    names, numbers = judged.judge_ids, judged.means()[0]
    if len(names) < 1 or (numbers == 0).any():
        raise InputError(f"judge {str(names[np.argmin(numbers)])!r} gave no response: leave it out")
    apart = _apart(judged.by_judge_and_item())
    if apart.any():
        raise InputError(
            f"{named(names[apart])} with no item in common with the others, so that nothing tells severity from "
            "difficulty: have some items judged by both, or fit them apart"
        )
    for value, what in ((0, "lowest"), (1, "highest")):
        at_end = np.array([_all_at(judged, judge, value) for judge in range(len(names))])
        if at_end.any() and len(names) > 1:
            raise InputError(
                f"{named(names[at_end])} with the {what} response to everything: no severity is the likeliest: "
                "leave it out"
            )


def without_common_subjects(judged: Judged) -> list[str]:
    """Judges with no subject in common with others: their severity rests on subjects being alike."""
    found = np.zeros((len(judged.judge_ids), len(judged.subject_ids)), bool)
    found[judged.judges, judged.subjects] = True
    return judged.judge_ids[_apart(found)].tolist()


def named(names: Shaped[np.ndarray, " n"]) -> str:
    """Judges, as messages name them."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"judge{'s' * (len(names) > 1)} {', '.join(repr(str(name)) for name in names[:SHOWN])}{more}"


def _all_at(judged: Judged, judge: int, end: int) -> bool:
    rows = judged.of_rows.choose_subjects(judged.judges == judge)
    ends = np.array([0 if not end else scale.top for scale in rows.scales])[None, :]
    if rows.trials is not None and end:
        ends = np.where([[scale.labels is None for scale in rows.scales]], rows.trials, ends)
    return bool((np.asarray(rows.values) == ends)[rows.observed].all())


def _apart(beside: Bool[np.ndarray, "R n"]) -> Bool[np.ndarray, " R"]:
    """Rows that share no column, even by way of others, with the largest group of rows."""
    group = np.arange(len(beside))
    for column in beside.T:
        together = np.unique(group[column])
        group[np.isin(group, together[1:])] = together[0] if together.size else 0
    labels, sizes = np.unique(group, return_counts=True)
    return group != labels[np.argmax(sizes)]
