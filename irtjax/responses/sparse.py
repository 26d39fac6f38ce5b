"""Responses where each subject answered few of the items: one entry for each answer, none for what is missing."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from irtjax.arguments import checks_types
from irtjax.errors import InputError, NotScoredError
from irtjax.responses.compressed_rows import rows_of, sorted_answers
from irtjax.responses.matrix import MISSING, ResponseMatrix, as_ids, described, require_unique
from irtjax.responses.scaled import Scale, ScaledResponses
from irtjax.responses.sparse_scales import SparseScales
from irtjax.responses.sparse_values import SparseValues
from irtjax.responses.triples import in_rows
from irtjax.types import Int, Shaped

MOST_DENSE = 2**33  # bytes of a matrix that is made of the answers
FEW, LARGE = 0.1, 2**22  # share of cells with an answer, below which a matrix of more cells is held by the answer


@dataclasses.dataclass(frozen=True, init=False, eq=False)
class SparseResponses(SparseScales):
    """Responses of J subjects to I items, N of them, in compressed rows: subject by subject, items in their order.

    It takes 5 bytes for an answer that is right or wrong, and nothing for what is missing. Its arrays cannot be
    written to. Those that are given are not copied if they have these types. Two are equal if they hold the same
    answers under the same ids in the same order.

    Attributes:
        starts: (J + 1,) where the answers of each subject begin; N at the end.
        items: (N,) int32 the item of each answer, rising within a subject.
        answers: (N,) int8, 1 right and 0 wrong; or what `ScaledResponses` holds of other responses.
        subject_ids: (J,) strings, unique.
        item_ids: (I,) strings, unique.
        scales: (I,) of the items; None where answers are right or wrong.
        trials: (N,) of each count; None where there are no counts.
        averaged: the most responses that a value which is no count is the mean of.

    Raises:
        InputError: no subjects or no items, arrays that do not go together, an item that is none, an answer other than
            0 and 1 without scales, or an id that occurs twice.
    """

    starts: Int[np.ndarray, " ends"]
    items: Int[np.ndarray, " N"]
    answers: Shaped[np.ndarray, " N"]
    subject_ids: Shaped[np.ndarray, " J"]
    item_ids: Shaped[np.ndarray, " I"]
    scales: Any = None
    trials: Int[np.ndarray, " N"] | None = None
    averaged: int = 1

    @checks_types
    def __init__(
        self,
        starts: Int[np.ndarray, " ends"],
        items: Int[np.ndarray, " N"],
        answers: Shaped[np.ndarray, " N"],
        subject_ids: np.ndarray | Sequence[str],
        item_ids: np.ndarray | Sequence[str],
        scales: tuple[Scale, ...] | None = None,
        trials: Int[np.ndarray, " N"] | None = None,
        averaged: int = 1,
    ) -> None:
        subjects, names = as_ids(subject_ids, "subject"), as_ids(item_ids, "item")
        starts, items = np.asarray(starts, np.int64), np.asarray(items)
        if len(starts) != len(subjects) + 1 or starts[0] or (np.diff(starts) < 0).any() or starts[-1] != len(items):
            raise InputError(f"starts of {len(subjects):,} subjects do not rise from 0 to {len(items):,}")
        if len(answers) != len(items):
            raise InputError(f"{len(items):,} items and {len(answers):,} answers, expected as many")
        require_unique(subjects, names, (len(subjects), len(names)))
        if len(items) and not (items.min() >= 0 and items.max() < len(names)):
            raise InputError(f"items from {items.min()} to {items.max()}, expected 0 to {len(names) - 1}")
        if scales is None:
            _require_scored(np.asarray(answers), items, starts, subjects, names)
        elif len(scales) != len(names):
            raise InputError(f"{len(scales)} scales of {len(names)} items")
        own: dict[str, Any] = {
            "starts": starts,
            "items": np.asarray(items, np.int32),
            "answers": np.asarray(answers, np.int8 if scales is None else None),
            "subject_ids": subjects,
            "item_ids": names,
            "trials": trials,
        }
        for name, leaf in own.items():
            if leaf is not None:
                leaf = leaf.view()
                leaf.setflags(write=False)
            object.__setattr__(self, name, leaf)
        object.__setattr__(self, "scales", scales)
        object.__setattr__(self, "averaged", averaged)

    @classmethod
    @checks_types
    def from_triples(
        cls,
        subjects: Any,
        items: Any,
        answers: Any,
        subject_ids: np.ndarray | Sequence[str],
        item_ids: np.ndarray | Sequence[str],
        *,
        repeats: str = "refuse",
    ) -> "SparseResponses":
        """Right and wrong answers out of positions: answer n is that of `subjects[n]` to `items[n]`, in any order.

        Args:
            subjects: (N,) positions in `subject_ids`.
            items: (N,) positions in `item_ids`.
            answers: (N,) 1 right, 0 wrong; those that are -1 or NaN are missing, and left out.
            subject_ids: of J subjects.
            item_ids: of I items.
            repeats: "refuse" a second answer of a subject to an item, or take the "last" one.

        Raises:
            InputError: arrays of different lengths, a position that is none, a second answer that is refused, or an
                answer that is not right or wrong; names subject and item.
        """
        checked = in_rows(subjects, items, answers, subject_ids, item_ids, repeats)
        return cls(*checked, subject_ids, item_ids)

    @classmethod
    @checks_types
    def from_scipy(
        cls, matrix: Any, subject_ids: Any = None, item_ids: Any = None, *, repeats: str = "refuse"
    ) -> "SparseResponses":
        """Right and wrong answers out of a SciPy sparse array of subjects × items, each entry of which is one answer.

        A wrong answer is an entry of 0 that is stored. Where no 0 is stored, -1 is wrong: most formats and operations
        drop zeros. Subjects and items without ids are called subject_1, subject_2, …, item_1, item_2, ….

        Raises:
            InputError: another type; all entries are right, so that it is not known which answers are wrong; or see
                `from_triples`.
        """
        if not scipy.sparse.issparse(matrix):
            raise InputError(f"responses of type {type(matrix).__name__}, expected a sparse array of SciPy")
        given = matrix.tocoo()
        subjects, items = given.coords if hasattr(given, "coords") else (given.row, given.col)
        answers = np.asarray(given.data)
        if answers.size and not (answers == 0).any():
            if (answers == 1).all():
                raise InputError("all entries of the sparse array are 1: store wrong answers as 0 or -1")
            answers = np.where(answers == MISSING, 0, answers)
        number_of = [f"subject_{j}" for j in range(1, given.shape[0] + 1)] if subject_ids is None else subject_ids
        names = [f"item_{i}" for i in range(1, given.shape[1] + 1)] if item_ids is None else item_ids
        return cls.from_triples(subjects, items, answers, number_of, names, repeats=repeats)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SparseResponses):
            return NotImplemented
        return all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("starts", "items", "answers", "subject_ids", "item_ids", "trials")
        ) and (self.scales == other.scales)

    def __hash__(self) -> int:
        return hash((len(self.answers), str(self.item_ids[0]), str(self.subject_ids[0]), self.items[:64].tobytes()))

    def __repr__(self) -> str:
        right, observed = self.counts(axis=0)
        return described("SparseResponses", self.num_subjects, self.num_items, right, observed)

    @property
    def num_subjects(self) -> int:
        """J."""
        return len(self.subject_ids)

    @property
    def num_items(self) -> int:
        """I."""
        return len(self.item_ids)

    @property
    def num_answers(self) -> int:
        """N."""
        return len(self.answers)

    @property
    def density(self) -> float:
        """Share of all cells that were answered."""
        return self.num_answers / (self.num_subjects * self.num_items)

    @functools.cached_property
    def subjects(self) -> Int[np.ndarray, " N"]:
        """Who gave each answer."""
        return np.repeat(np.arange(self.num_subjects, dtype=np.int32), np.diff(self.starts))

    @functools.cached_property
    def values(self) -> SparseValues:
        """Read like an array (J, I): blocks of it are made when they are asked for."""
        return SparseValues(self)

    def counts(self, axis: int) -> tuple[Shaped[np.ndarray, " N"], Int[np.ndarray, " N"]]:
        """Numbers of right answers and of observed answers, summed over subjects (axis 0) or items (axis 1).

        On other scales in place of the former sums of responses as shares of the way from the lowest to the highest.
        """
        observed = np.bincount(self.items, minlength=self.num_items) if axis == 0 else np.diff(self.starts)
        shares = self.answers if self.scales is None else self.shares()
        if axis == 0:
            total = np.bincount(self.items, shares, self.num_items)
        else:
            total = np.add.reduceat(np.append(shares, 0), self.starts[:-1], dtype=float)
            total[observed == 0] = 0
        return (total.astype(int) if self.scales is None else total), observed

    def read(self) -> Any:
        """The matrix of all cells, missing ones included.

        Raises:
            InputError: it would be larger than 8 GB.
        """
        if self.num_subjects * self.num_items * np.asarray(self.answers).itemsize > MOST_DENSE:
            raise InputError(
                f"{self.num_subjects:,} subjects × {self.num_items:,} items with {self.num_answers:,} answers: this "
                "needs the whole matrix, which does not fit into memory: take fewer subjects or items "
                "(`choose_subjects`, `choose_items`)"
            )
        values = self.values[:, :]
        if self.scales is None:
            return ResponseMatrix(values, self.subject_ids, self.item_ids)
        trials = None
        if self.trials is not None:
            trials = np.ones(values.shape, np.int32)
            trials[self.subjects, self.items] = self.trials
        return ScaledResponses(values, self.subject_ids, self.item_ids, self.scales, trials, self.averaged)

    def choose_items(self, chosen: Shaped[np.ndarray, " chosen"]) -> "SparseResponses":
        """The responses to some of the items, by a mask (I,) or by positions."""
        places = np.arange(self.num_items)[chosen]
        where = np.full(self.num_items, -1, np.int32)
        where[places] = np.arange(len(places), dtype=np.int32)
        kept = where[self.items] >= 0
        starts, items, answers = sorted_answers(
            self.subjects[kept], where[self.items[kept]], np.flatnonzero(kept), (self.num_subjects, len(places))
        )
        scales = None if self.scales is None else tuple(self.scales[i] for i in places)
        trials = None if self.trials is None else self.trials[answers]
        return SparseResponses(
            starts, items, self.answers[answers], self.subject_ids, self.item_ids[places], scales, trials
        )

    def choose_subjects(self, chosen: Shaped[np.ndarray, " chosen"] | slice) -> "SparseResponses":
        """The responses of some of the subjects, by a mask (J,), by positions or a slice."""
        places = np.arange(self.num_subjects)[chosen]
        starts, at = rows_of(self.starts, places)
        trials = None if self.trials is None else self.trials[at]
        return SparseResponses(
            starts, self.items[at], self.answers[at], self.subject_ids[places], self.item_ids, self.scales, trials
        )

    def choose_answers(self, chosen: Shaped[np.ndarray, " N"]) -> "SparseResponses":
        """Some of the answers, by a mask (N,); all subjects and items stay."""
        return dataclasses.replace(
            self,
            starts=np.concatenate([[0], np.cumsum(chosen)])[self.starts],
            items=self.items[chosen],
            answers=self.answers[chosen],
            trials=None if self.trials is None else self.trials[chosen],
        )

    def transposed(self) -> "SparseResponses":
        """With subjects for items, and items for subjects; of right and wrong answers."""
        if self.scales is not None:
            raise InputError("only right and wrong answers can be transposed")
        starts, items, answers = sorted_answers(
            self.items, self.subjects, self.answers, (self.num_items, self.num_subjects)
        )
        return SparseResponses(starts, items, answers, self.item_ids, self.subject_ids)

    def with_responses(self) -> "SparseResponses":
        """The subjects who have any."""
        there = np.diff(self.starts) > 0
        return self if there.all() else self.choose_subjects(there)


def is_sparse(num_answers: int, num_subjects: int, num_items: int) -> bool:
    """Whether so many answers are better held one by one than in a matrix, most of whose cells would be missing.

    A pass over nodes takes as long where about a tenth of the cells have an answer.
    """
    cells = num_subjects * num_items
    return cells > LARGE and num_answers < FEW * cells


def of_matrix(responses: ResponseMatrix | ScaledResponses) -> SparseResponses:
    """The answers in a matrix, one by one."""
    values = np.asarray(responses.values)
    there = values >= 0
    _, items = np.nonzero(there)
    starts = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    own: tuple[Any, ...] = ()
    if isinstance(responses, ScaledResponses):
        own = responses.scales, None if responses.trials is None else responses.trials[there], responses.averaged
    return SparseResponses(starts, items, values[there], responses.subject_ids, responses.item_ids, *own)


def _require_scored(
    answers: np.ndarray, items: np.ndarray, starts: np.ndarray, subject_ids: np.ndarray, item_ids: np.ndarray
) -> None:
    """Refuses answers that are not right or wrong.

    Raises:
        NotScoredError: names the first.
    """
    if answers.dtype.kind in "biu" and (not answers.size or (answers.min() >= 0 and answers.max() <= 1)):
        return
    wrong = (answers != 0) & (answers != 1)
    if wrong.any():
        n = int(np.flatnonzero(wrong)[0])
        j = int(np.searchsorted(starts, n, side="right")) - 1
        raise NotScoredError(
            f"subject {str(subject_ids[j])!r}, item {str(item_ids[items[n]])!r}: response {answers[n]}, expected 0 or 1"
        )
