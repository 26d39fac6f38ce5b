"""Responses as they were given, before anything is made of them: grades, texts, repeated answers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from irtjax.choices import TRIALS
from irtjax.errors import InputError, NotScoredError
from irtjax.responses.compressed_rows import answered_again, in_rows
from irtjax.responses.formats.cells import Cells, coded, numbers_of, objects, of_numbers, plain
from irtjax.responses.formats.long_tables import SHOWN, how_to_name
from irtjax.responses.matrix import MISSING, require_sound_ids
from irtjax.responses.sparse import SparseResponses
from irtjax.storage.sources import shown
from irtjax.types import Bool, Float, Int, Shaped

MOST_GRADES = 15  # different values of a column that may be grades
MOST_TRIALS = np.iinfo(np.int32).max


class Given(NamedTuple):
    """N responses, one by one; those that are missing are left out.

    Attributes:
        subject_ids: J texts.
        item_ids: I texts.
        subjects: (N,) int32, who answered.
        items: (N,) int32, what.
        cells: of N numbers and texts, without space around them.
        trials: (N,) int32, of which each is a number of successes; None where none are.
        facet: (N,) int32, who judged each, or what else it depends on; None where nothing is said of that.
        facet_ids: R texts.
    """

    subject_ids: list[str]
    item_ids: list[str]
    subjects: Int[np.ndarray, " N"]
    items: Int[np.ndarray, " N"]
    cells: Cells
    trials: Int[np.ndarray, " N"] | None = None
    facet: Int[np.ndarray, " N"] | None = None
    facet_ids: Sequence[str] = ()

    def transposed(self) -> "Given":
        """With subjects for items, and items for subjects."""
        return self._replace(
            subject_ids=self.item_ids, item_ids=self.subject_ids, subjects=self.items, items=self.subjects
        )

    def of_known(self, item_ids: Iterable[str]) -> "Given":
        """The responses to items of these ids alone."""
        known = set(item_ids)
        places = [i for i, item in enumerate(self.item_ids) if item in known]
        order = np.full(len(self.item_ids), -1, np.int32)
        order[places] = np.arange(len(places), dtype=np.int32)
        items = order[self.items]
        return self._replace(item_ids=[self.item_ids[i] for i in places], items=items).some(items >= 0)

    def some(self, chosen: Shaped[np.ndarray, " n"]) -> "Given":
        """Some of the responses, by a mask (N,) or by positions; all subjects and items stay."""
        return self._replace(
            subjects=self.subjects[chosen],
            items=self.items[chosen],
            cells=self.cells.some(chosen),
            trials=None if self.trials is None else self.trials[chosen],
            facet=None if self.facet is None else self.facet[chosen],
        )

    def rows(self) -> tuple[Int[np.ndarray, " ends"], Int[np.ndarray, " N"]]:
        """Where the responses of each subject begin, and the order: by subjects, then items, then as they came."""
        return in_rows(self.subjects, self.items, (len(self.subject_ids), len(self.item_ids)))

    def repeats(self) -> int:
        """The most responses of a subject to an item."""
        starts, order = self.rows()
        again = answered_again(starts, self.items[order])
        return int(np.diff(np.flatnonzero(~again), append=len(again)).max()) if again.any() else 1

    def last(self) -> "Given":
        """The last response of each subject, and judge where there are some, to each item."""
        starts, order = self.rows()
        again = answered_again(starts, self.items[order])
        if not again.any():
            return self
        if self.facet is not None:
            cell = (np.cumsum(~again) - 1) * max(len(self.facet_ids), 1) + self.facet[order]
            by_judge = np.argsort(cell, kind="stable")
            order, again = order[by_judge], np.diff(cell[by_judge], prepend=-1) == 0
        return self.some(np.sort(order[~np.append(again[1:], False)]))

    def place(self, at: int) -> str:
        """What messages call a response."""
        return f"subject {self.subject_ids[self.subjects[at]]!r}, item {self.item_ids[self.items[at]]!r}"


def are_grades(cells: Iterable[Any]) -> bool:
    """Whether cells of a column may be grades or shares: few different numbers, numbers from 0 to 1, or missing."""
    known = {plain(cell) for cell in cells} - {None}
    numbers = numbers_of(objects(list(known)))
    if not known or np.isnan(numbers).any():
        return False
    return len(known) <= MOST_GRADES or bool(((numbers >= 0) & (numbers <= 1)).all())


def are_counts(cells: Iterable[Any]) -> bool:
    """Whether cells of a column may be numbers of successes, or missing."""
    known = {plain(cell) for cell in cells} - {None}
    return bool(known) and not np.isnan(numbers_of(objects(list(known)))).any()


def rule_of(others: Mapping[str, str]) -> Callable[[Iterable[Any]], bool]:
    """What says whether a column may be that of the responses, beside columns of other roles."""
    return are_counts if TRIALS in others else are_grades


def refuse_counts(place: str, trials: Any) -> None:
    """Refuses a response that is a count of several trials where right and wrong are wanted.

    Raises:
        NotScoredError: it is.
    """
    if trials is not None and numbers_of(objects([plain(trials)]))[0] != 1:
        raise NotScoredError(f"{place} has {shown(trials)} trials, so that its response is a count")


def of_cells(
    cells: Float[np.ndarray, "J I"] | Sequence[Sequence[Any]],
    subject_ids: list[str],
    item_ids: list[str],
    header: Sequence[str] = (),
) -> Given:
    """Of a matrix of subjects by items.

    Args:
        cells: numbers, NaN where missing, or rows of anything.
        subject_ids: of the rows.
        item_ids: of the columns.
        header: of a table that may have one row per response, which an error then says.

    Raises:
        InputError: an id occurs twice, or is none that arrays can hold.
    """
    if 0 < len(header) <= SHOWN and len(set(subject_ids)) < len(subject_ids):
        twice = next(subject for at, subject in enumerate(subject_ids) if subject in subject_ids[:at])
        raise InputError(f"subject id {twice!r} occurs more than once; {how_to_name(header)}")
    if isinstance(cells, np.ndarray):
        there = ~np.isnan(cells)
        return require_some(Given(subject_ids, item_ids, *_places(there), of_numbers(cells[there])))
    found = [[plain(cell) for cell in row] for row in cells]
    there = np.array([[cell is not None for cell in row] for row in found], bool).reshape(
        len(subject_ids), len(item_ids)
    )
    known = coded([cell for row in found for cell in row if cell is not None])
    return require_some(Given(subject_ids, item_ids, *_places(there), known))


def _places(there: Bool[np.ndarray, "J I"]) -> tuple[Int[np.ndarray, " N"], Int[np.ndarray, " N"]]:
    subjects, items = np.nonzero(there)
    return subjects.astype(np.int32), items.astype(np.int32)


def of_array(values: np.ndarray, subject_ids: list[str], item_ids: list[str]) -> Given:
    """Of an array of numbers or texts, subjects by items; missing is NaN, an empty text, or -1 in whole numbers.

    Raises:
        InputError: the shape is another, or whole numbers go below -1, so that -1 may be a grade.
    """
    if values.shape != (len(subject_ids), len(item_ids)):
        raise InputError(f"responses have shape {values.shape}, expected ({len(subject_ids)}, {len(item_ids)})")
    if values.dtype.kind in "iu":
        if values.size and values.min() < MISSING:
            raise InputError(
                f"responses from {values.min()} in an array of whole numbers, where -1 is missing: "
                "use decimals, and NaN for missing"
            )
        return of_cells(np.where(values == MISSING, np.nan, values), subject_ids, item_ids)
    return of_cells(values.astype(float) if values.dtype.kind in "bf" else values.tolist(), subject_ids, item_ids)


def of_sparse(responses: SparseResponses) -> Given:
    """Of single answers that are right or wrong.

    Raises:
        InputError: there are none.
    """
    ids = responses.subject_ids.tolist(), responses.item_ids.tolist()
    cells = Cells(np.array([0.0, 1.0]), responses.answers.astype(np.int32))
    return require_some(Given(*ids, responses.subjects, responses.items, cells))


def of_scipy(matrix: Any) -> Given:
    """Of a sparse array of SciPy, each entry of which is a response; ids as of `SparseResponses.from_scipy`.

    Raises:
        InputError: there are none.
    """
    coo = matrix.tocoo()
    subjects, items = coo.coords if hasattr(coo, "coords") else (coo.row, coo.col)
    cells = np.asarray(coo.data, float)
    if np.isin(cells, (MISSING, 1)).all():  # of which -1 is wrong, as zeros are not stored
        cells = np.maximum(cells, 0)
    subject_ids = [f"subject_{j}" for j in range(1, matrix.shape[0] + 1)]
    item_ids = [f"item_{i}" for i in range(1, matrix.shape[1] + 1)]
    return require_some(Given(subject_ids, item_ids, subjects.astype(np.int32), items.astype(np.int32), Cells(cells)))


def with_trials(given: Given, trials: np.ndarray) -> Given:
    """Counts, each of its trials.

    Args:
        given: a matrix.
        trials: of all responses, of each item (I,), of each subject (J, 1) or of each response (J, I).

    Raises:
        InputError: another shape, or a response that has none.
    """
    shape = len(given.subject_ids), len(given.item_ids)
    try:
        every = np.broadcast_to(np.asarray(trials, float), shape)[given.subjects, given.items]
    except ValueError as error:
        raise InputError(f"trials of shape {np.shape(trials)}: expected one number, (I,), (J, 1) or {shape}") from error
    wrong = ~((every >= 1) & (every <= MOST_TRIALS) & (every == np.floor(every)))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(f"{given.place(at)}: {every[at]:g} trials: expected an integer, 1 or more")
    return given._replace(trials=every.astype(np.int32))


def require_some(given: Given) -> Given:
    """The same, once it is known to be some responses with sound ids.

    Raises:
        InputError: it is not.
    """
    for what, ids in (("item", given.item_ids), ("subject", given.subject_ids)):
        if not ids:
            raise InputError(f"responses have no {what}s")
        require_sound_ids(ids, what)
    if not len(given.cells):
        raise InputError("all responses are missing")
    return given
