"""Responses as they were given, before anything is made of them: grades, texts, repeated answers."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.responses.formats.answers import CELLS
from irtjax.responses.formats.long_tables import LONG_COLUMNS, how_to_name
from irtjax.responses.matrix import MISSING, require_sound_ids
from irtjax.types import Float, Int, Shaped

MOST_GRADES = 15  # different values of a column that may be grades
TRUTH = {word: code for word, code in CELLS.items() if code != MISSING and word.isalpha()}


class Given(NamedTuple):
    """N responses, one by one; those that are missing are left out.

    Attributes:
        subject_ids: J texts.
        item_ids: I texts.
        subjects: (N,) who answered.
        items: (N,) what.
        cells: (N,) numbers, or objects: numbers and texts, without space around them.
    """

    subject_ids: list[str]
    item_ids: list[str]
    subjects: Int[np.ndarray, " N"]
    items: Int[np.ndarray, " N"]
    cells: Shaped[np.ndarray, " N"]

    def transposed(self) -> "Given":
        """With subjects for items, and items for subjects."""
        return Given(self.item_ids, self.subject_ids, self.items, self.subjects, self.cells)

    def place(self, at: int) -> str:
        """What messages call a response."""
        return f"subject {self.subject_ids[self.subjects[at]]!r}, item {self.item_ids[self.items[at]]!r}"


def is_null(value: Any) -> bool:
    """Whether a cell of a table in memory is missing."""
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and bool(np.isnan(value)))


def _plain(value: Any) -> Any:
    """A cell without space around it, None where it is missing."""
    if isinstance(value, str):
        text = value.strip()
        return None if CELLS.get(text) == MISSING else text
    return None if is_null(value) else value


def numbers_of(cells: Shaped[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Cells as numbers, right 1 and wrong 0; NaN where a cell is no number."""
    if cells.dtype.kind == "f":
        return np.where(np.isfinite(cells), cells, np.nan)
    plain = pd.Series([TRUTH.get(cell, cell) if isinstance(cell, str) else cell for cell in cells], dtype=object)
    numbers = pd.to_numeric(plain, errors="coerce").to_numpy(float)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def are_grades(cells: Iterable[Any]) -> bool:
    """Whether cells of a column may be grades: few different numbers, or missing."""
    known = {_plain(cell) for cell in cells} - {None}
    return 0 < len(known) <= MOST_GRADES and not np.isnan(numbers_of(np.array(list(known), object))).any()


def of_answers(answers: Iterable[tuple[str, str, str, Any]]) -> Given:
    """Of place, subject, item and cell of each response, in the order of their first appearance.

    Raises:
        InputError: one lacks an id, or an id is none that arrays can hold.
    """
    known_subjects: dict[str, int] = {}
    known_items: dict[str, int] = {}
    found: list[tuple[int, int, Any]] = []
    for place, subject, item, cell in answers:
        if not subject or not item:
            raise InputError(f"{place} has no {'item' if subject else 'subject'} id")
        row = known_subjects.setdefault(subject, len(known_subjects))
        column = known_items.setdefault(item, len(known_items))
        if (plain := _plain(cell)) is not None:
            found.append((row, column, plain))
    subjects, items, cells = ([answer[part] for answer in found] for part in range(3))
    return _sound(
        Given(list(known_subjects), list(known_items), np.array(subjects, int), np.array(items, int), _objects(cells))
    )


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
    if len(header) <= len(LONG_COLUMNS) and len(header) and len(set(subject_ids)) < len(subject_ids):
        twice = next(subject for at, subject in enumerate(subject_ids) if subject in subject_ids[:at])
        raise InputError(f"subject id {twice!r} occurs more than once; {how_to_name(header)}")
    if isinstance(cells, np.ndarray):
        subjects, items = np.nonzero(~np.isnan(cells))
        return _sound(Given(subject_ids, item_ids, subjects, items, cells[subjects, items]))
    plain = [[_plain(cell) for cell in row] for row in cells]
    places = [(j, i) for j, row in enumerate(plain) for i, cell in enumerate(row) if cell is not None]
    at = np.array(places, int).reshape(-1, 2)
    return _sound(Given(subject_ids, item_ids, at[:, 0], at[:, 1], _objects([plain[j][i] for j, i in places])))


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


def _objects(cells: list[Any]) -> np.ndarray:
    """An array of these objects, whatever they are."""
    array = np.empty(len(cells), object)
    array[:] = cells
    return array


def _sound(given: Given) -> Given:
    """The same, once it is known to be some responses with sound ids.

    Raises:
        InputError: it is not.
    """
    for what, ids in (("item", given.item_ids), ("subject", given.subject_ids)):
        if not ids:
            raise InputError(f"responses have no {what}s")
        require_sound_ids(ids, what)
    if not given.cells.size:
        raise InputError("all responses are missing")
    return given
