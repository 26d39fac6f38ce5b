"""Response matrices: scored answers of subjects (people or networks) to items (examples of a data set)."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from irtjax.arguments import checks_types
from irtjax.errors import InputError, NotScoredError
from irtjax.responses.masks import as_array
from irtjax.storage.sources import shown
from irtjax.types import AnyArray, Bool, Float, Int, Shaped

MISSING = -1
CHUNK = 2**24  # responses that are counted at a time
BYTE = 255  # the most that one can count
FIRST_SURROGATE, LAST_SURROGATE = 0xD800, 0xDFFF
LONGEST_ID = 2**17  # characters, as long as a cell of CSV may be for Python's reader
PADDED, PADDING = 2**28, 10  # characters of ids as NumPy keeps them, and how often as many as were read

Ids = Sequence[str] | Shaped[np.ndarray, " N"]


def as_ids(ids: np.ndarray | Sequence[str], what: str) -> Shaped[np.ndarray, " N"]:
    """Ids as an array of text.

    Raises:
        InputError: one ends in NUL, which NumPy would drop, has a lone surrogate, which no file can hold, or is longer
            than what CSV readers take.
    """
    array = np.asarray(ids, dtype=str)
    if array.dtype.itemsize > LONGEST_ID * array.dtype.alignment:  # of UTF-32
        at = int(np.char.str_len(array).argmax())
        name = str(array.reshape(-1)[at])
        if len(name) > LONGEST_ID:
            raise InputError(
                f"{what} {at + 1} has an id of {len(name):,} characters, {shown(name)}: at most {LONGEST_ID:,}"
            )
    if not (isinstance(ids, np.ndarray) and ids.dtype.kind == "U"):
        for given in ids:
            if str(given).endswith("\0"):
                raise InputError(f"{what} id {str(given)!r} ends in a NUL character")
    points = np.ascontiguousarray(array).view(np.uint32)  # of UTF-32, as NumPy has texts
    for at in range(0, points.size, CHUNK):
        some = points.reshape(-1)[at : at + CHUNK]
        if (lone := (some >= FIRST_SURROGATE) & (some <= LAST_SURROGATE)).any():
            raise InputError(f"a {what} id has the lone surrogate {chr(some[np.argmax(lone)])!r}, which is no text")
    return array


def _own(array: np.ndarray, dtype: DTypeLike) -> np.ndarray:
    """A copy that no one can write to; the array itself if no one can write to it already."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if owner.base is None and not owner.flags.writeable and array.dtype == dtype:
        return array
    own = array.astype(dtype)
    own.setflags(write=False)
    return own


@dataclasses.dataclass(frozen=True, init=False, eq=False)
class ResponseMatrix:
    """Scored responses of J subjects to I items; built from arrays or lists of numbers and of ids.

    It owns its arrays, which cannot be written to: what becomes of those that it was built from does not matter. Two
    are equal if they hold the same responses under the same ids in the same order.

    Attributes:
        values: (J, I) int8; 1 right, 0 wrong, -1 missing; masked cells of a masked array are missing.
        subject_ids: (J,) strings, unique.
        item_ids: (I,) strings, unique.

    Raises:
        InputError: no subjects or no items, shapes that disagree, a value other than -1, 0 and 1, or an id
            that occurs twice.
    """

    values: Int[np.ndarray, "J I"]
    subject_ids: Shaped[np.ndarray, " J"]
    item_ids: Shaped[np.ndarray, " I"]

    @checks_types
    def __init__(
        self,
        values: AnyArray | Sequence[Sequence[int]],
        subject_ids: np.ndarray | Sequence[str],
        item_ids: np.ndarray | Sequence[str],
    ) -> None:
        values = as_array(values)
        if values.dtype.kind not in "biuf":
            raise InputError(f"responses of type {values.dtype}, expected integers")
        subjects, items = as_ids(subject_ids, "subject"), as_ids(item_ids, "item")
        require_unique(subjects, items, values.shape)
        object.__setattr__(self, "values", _own(sound(values, subjects, items), np.int8))
        object.__setattr__(self, "subject_ids", _own(subjects, subjects.dtype))
        object.__setattr__(self, "item_ids", _own(items, items.dtype))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ResponseMatrix):
            return NotImplemented
        return all(
            np.array_equal(getattr(self, field.name), getattr(other, field.name)) for field in dataclasses.fields(self)
        )

    def __hash__(self) -> int:
        # equal matrices have equal shapes, ids and first rows; the rest would take long
        return hash((self.values.shape, str(self.item_ids[0]), str(self.subject_ids[0]), self.values[0].tobytes()))

    def __repr__(self) -> str:
        return described("ResponseMatrix", self.num_subjects, self.num_items, *self.counts(axis=0))

    @property
    def num_subjects(self) -> int:
        """J."""
        return self.values.shape[0]

    @property
    def num_items(self) -> int:
        """I."""
        return self.values.shape[1]

    def counts(self, axis: int) -> tuple[Int[np.ndarray, " N"], Int[np.ndarray, " N"]]:
        """Numbers of right answers and of observed answers, summed over subjects (axis 0) or items (axis 1)."""
        return counts(self.values, axis)

    def read(self) -> "ResponseMatrix":
        """Itself: all responses are in memory already."""
        return self

    def choose_items(self, chosen: Shaped[np.ndarray, " chosen"]) -> "ResponseMatrix":
        """The responses to some of the items, by a mask (I,) or by positions."""
        return ResponseMatrix(self.values[:, chosen], self.subject_ids, self.item_ids[chosen])

    def choose_subjects(self, chosen: Shaped[np.ndarray, " chosen"]) -> "ResponseMatrix":
        """The responses of some of the subjects, by a mask (J,) or by positions."""
        return ResponseMatrix(self.values[chosen], self.subject_ids[chosen], self.item_ids)

    def transposed(self) -> "ResponseMatrix":
        """With subjects for items, and items for subjects."""
        return ResponseMatrix(self.values.T, self.item_ids, self.subject_ids)

    def with_responses(self) -> "ResponseMatrix":
        """The subjects who have any."""
        there = (self.values != MISSING).any(1)
        return self if there.all() else self.choose_subjects(there)


def require_unique(subject_ids: np.ndarray, item_ids: np.ndarray, shape: tuple[int, ...]) -> None:
    """Refuses ids that do not name the rows and columns of a matrix.

    Raises:
        InputError: they have other shapes, are none, or one occurs twice.
    """
    if subject_ids.ndim != 1 or item_ids.ndim != 1:
        raise InputError(f"ids have shapes {subject_ids.shape} and {item_ids.shape}, expected one dimension each")
    if shape != (subject_ids.size, item_ids.size):
        raise InputError(f"responses have shape {shape}, expected ({subject_ids.size}, {item_ids.size}) from the ids")
    for what, ids in (("items", item_ids), ("subjects", subject_ids)):
        if not ids.size:
            raise InputError(f"responses have no {what}")
        in_order = np.sort(ids)
        if (twice := in_order[1:] == in_order[:-1]).any():
            raise InputError(f"{what[:-1]} id {str(in_order[1:][twice][0])!r} occurs more than once")


def sound(values: np.ndarray, subject_ids: np.ndarray, item_ids: np.ndarray) -> np.ndarray:
    """The same values, once they are known to be responses.

    Raises:
        InputError: names the first that is none.
    """
    # a matrix of integers, perhaps of gigabytes, needs no mask to be found in range
    whole = values.dtype.kind != "f" and values.min() >= MISSING and values.max() <= 1
    if not whole and (wrong := (values != 0) & (values != 1) & (values != MISSING)).any():
        j, i = np.argwhere(wrong)[0]
        raise NotScoredError(
            f"subject {str(subject_ids[j])!r}, item {str(item_ids[i])!r}: response {values[j, i]}, "
            "expected 0, 1 or -1 (missing)"
        )
    return values


def matrix_of(values: AnyArray, subject_ids: Ids, item_ids: Ids) -> ResponseMatrix:
    """A matrix of what was read, once its ids are known to be some that arrays can hold.

    Raises:
        InputError: they are not, or see `ResponseMatrix`.
    """
    require_sound_ids(subject_ids, "subject")
    require_sound_ids(item_ids, "item")
    return ResponseMatrix(values, subject_ids, item_ids)


def require_sound_ids(ids: Ids, what: str) -> None:
    """Refuses ids that are empty, and one so long that an array of them, each as long as it, would be huge.

    Raises:
        InputError: names the position of the id, counted from 1.
    """
    lengths = np.char.str_len(ids) if isinstance(ids, np.ndarray) else np.fromiter(map(len, ids), int, len(ids))
    if not lengths.size:
        return
    if not lengths.all():
        raise InputError(f"{what} {int(lengths.argmin()) + 1} has no id")
    padded = int(lengths.max()) * lengths.size
    if padded > PADDED and padded > PADDING * int(lengths.sum()):
        at = int(lengths.argmax())
        raise InputError(f"{what} {at + 1} has an id of {lengths[at]:,} characters, {shown(ids[at])}: shorten it")


def described(what: str, num_subjects: int, num_items: int, right: np.ndarray, observed: np.ndarray) -> str:
    """One line: sizes, and the shares of right and of missing answers."""
    seen = int(observed.sum())
    answered = f"{100 * int(right.sum()) / seen:.1f}% right" if seen else "none right"
    missing = 100 * (1 - seen / (num_subjects * num_items))
    return f"{what}: {num_subjects:,} subjects × {num_items:,} items, {answered}, {missing:.1f}% missing"


def counts(values: Int[np.ndarray, "J I"], axis: int) -> tuple[Int[np.ndarray, " N"], Int[np.ndarray, " N"]]:
    """Number of right answers and of observed answers, summed over `axis` of a (J, I) int8 matrix.

    A few rows at a time: a mask of a matrix that fills half of the memory would fill the other half.
    """
    step = max(1, CHUNK // values.shape[1])
    right, observed = (np.zeros(values.shape[1 - axis], int) for _ in range(2))
    for at in range(0, values.shape[0], step):
        chunk, rows = values[at : at + step], slice(None) if axis == 0 else slice(at, at + step)
        right[rows] += _number(chunk == 1, axis)
        observed[rows] += _number(chunk != MISSING, axis)
    return right, observed


def _number(mask: Bool[np.ndarray, "J I"], axis: int) -> Int[np.ndarray, " N"]:
    """How many are true, over an axis; several times as fast as a sum of the mask, which widens it to 8 bytes each."""
    if axis == 1:
        return np.array([np.count_nonzero(row) for row in mask]) if mask.shape[1] > BYTE else mask.sum(axis)
    number = np.zeros(mask.shape[1], int)
    for at in range(0, len(mask), BYTE):
        number += np.add.reduce(mask[at : at + BYTE], axis=0, dtype=np.uint8)
    return number


def proportion_correct(values: Int[np.ndarray, "J I"], axis: int) -> Float[np.ndarray, " N"]:
    """Share of observed answers that are right, 0 to 1, over `axis`; NaN where nothing was observed."""
    return share_right(*counts(values, axis))


def share_right(right: Int[np.ndarray, " N"], observed: Int[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Share of observed answers that are right, 0 to 1; NaN where nothing was observed."""
    return np.divide(right, observed, out=np.full(right.shape, np.nan), where=observed > 0)


def require_estimable(responses: Any) -> None:
    """Refuses a `ResponseMatrix` or `StoredResponses` in which a subject or an item has no responses.

    Raises:
        InputError: names the first such subject or item.
    """
    for axis, what, ids in ((1, "subject", responses.subject_ids), (0, "item", responses.item_ids)):
        _, observed = responses.counts(axis)
        if (observed == 0).any():
            empty = ids[observed == 0]
            raise InputError(
                f"{what} {str(empty[0])!r} has no responses (1 of {empty.size} such): "
                f"remove every {what} without responses"
            )


def completed(responses: Any, missing: str = "refuse") -> Any:
    """A matrix in which nothing is missing.

    Args:
        responses: complete or not: a `ResponseMatrix`, or `ScaledResponses`.
        missing: what becomes of missing answers: "refuse", score them as "wrong", or "drop" the subjects that have any.

    Raises:
        InputError: an answer is missing and that is refused, or every subject has one; or "wrong" of other responses
            than right and wrong.
    """
    gaps, right_wrong = np.asarray(responses.values) < 0, isinstance(responses, ResponseMatrix)
    if missing == "wrong" and not right_wrong:
        raise InputError("`missing=wrong` is of right and wrong answers, and these are grades: take `missing=drop`")
    if not gaps.any():
        return responses
    if missing == "wrong":
        return dataclasses.replace(responses, values=np.where(gaps, 0, responses.values).astype(np.int8))
    whole = ~gaps.any(axis=1)
    j, i = np.argwhere(gaps)[0]
    first = f"subject '{responses.subject_ids[j]}' did not answer item '{responses.item_ids[i]}'"
    if missing == "drop":
        if not whole.any():
            raise InputError(f"no subject answered every item, so that none is left: {first}")
        return responses.choose_subjects(whole)
    advice = (
        "score missing answers as wrong or drop these subjects (`missing=wrong` or `missing=drop`)"
        if right_wrong
        else "drop these subjects (`missing=drop`), or use what they answered (`missing=by_design`)"
    )
    raise InputError(f"{first} ({(~whole).sum():,} of {whole.size:,} subjects have missing answers): {advice}")


@checks_types
def grade(predictions: Shaped[AnyArray, "J I"], labels: Shaped[AnyArray, " I"]) -> Int[np.ndarray, "J I"]:
    """Grades predicted classes (J, I) against gold labels (I,): int8, 1 where equal, 0 where not.

    Raises:
        InputError: there is not one label for each column of predictions.
    """
    classes, gold = np.asarray(predictions), np.asarray(labels)
    if classes.ndim != 2 or gold.shape != classes.shape[1:]:
        raise InputError(f"predictions have shape {classes.shape} and labels {gold.shape}, expected (J, I) and (I,)")
    graded = (classes == gold[None, :]).astype(np.int8)
    return np.where(np.ma.getmaskarray(predictions), np.int8(MISSING), graded) if np.ma.isMA(predictions) else graded
