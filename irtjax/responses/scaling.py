"""Responses on the scales of their items, out of what was given."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from irtjax.errors import InputError
from irtjax.responses.formats.given import Given, numbers_of
from irtjax.responses.kinds import RIGHT_WRONG, SHARES, TEXTS, by_item, different, kinds_of
from irtjax.responses.scaled import MISSING, Scale, ScaledResponses
from irtjax.responses.sparse import SparseResponses
from irtjax.storage.sources import shown
from irtjax.types import Bool, Float, Int

ORDERED, UNORDERED, COUNTED, SHARED = "ordered", "unordered", "counted", "shared"  # what a model takes
Labels = Sequence[Any] | Mapping[str, Sequence[Any]] | None
SHOWN = 12  # labels that a message names


class Gathered(NamedTuple):
    """Sums over the responses of each subject to each item, in M pairs of these, subject by subject.

    Attributes:
        subjects: (M,) who answered.
        items: (M,) what, rising within a subject.
        sums: (M,) of what responses are worth.
        numbers: (M,) of responses.
        trials: (M,) of trials; of responses where nothing is said of these.
    """

    subjects: Int[np.ndarray, " M"]
    items: Int[np.ndarray, " M"]
    sums: Float[np.ndarray, " M"]
    numbers: Int[np.ndarray, " M"]
    trials: Int[np.ndarray, " M"]


def as_scaled(
    given: Given, wanted: Sequence[str], grades: Labels = None, repeats: str | None = None, trials: Any = None
) -> ScaledResponses:
    """Responses on the scales of their items.

    Without `grades`, numbers are on one scale of all that occur in the test; but items that are right or wrong
    throughout have their own, of 0 and 1, and so have items with grades from 0 to 1 only. Several responses of a
    subject to an item are added up where counts are wanted. Elsewhere their mean counts: of grades the nearest one,
    the higher of two that are as near.

    Args:
        given: the responses as they were given.
        wanted: what the model of each item takes: "ordered" or "unordered" categories, "counted" or "shared".
        grades: all grades, lowest first; of all items, or by item.
        repeats: None, or "mean", which are the same once it is known what the models take.
        trials: of counts: one number, (I,) or (J, I). By default those that were given, or the number of responses.

    Raises:
        InputError: names the subject and the item of a response that is not on the scale or there several times; or an
            item with numbers and texts, with texts in no order, or with numbers that are none of the kind.
    """
    return as_sparse(given, wanted, grades, repeats, trials).read()


def as_sparse(
    given: Given, wanted: Sequence[str], grades: Labels = None, repeats: str | None = None, trials: Any = None
) -> SparseResponses:
    """As `as_scaled`, each answer one by one; there is no matrix on the way.

    Raises:
        InputError: as there.
    """
    if repeats not in (None, "mean"):
        raise InputError(f"`repeats` {repeats!r}: expected 'mean' or 'last'")
    scales = _scales(given, wanted, grades)
    worth = np.empty(len(given.cells))
    for i, at in enumerate(by_item(given)):
        worth[at] = _worth(given, at, scales[i])
    gathered = _gather(given, worth)
    counted, unordered = (np.array([one == kind for one in wanted])[gathered.items] for kind in (COUNTED, UNORDERED))
    _refuse_repeats(given, gathered, unordered)
    values, order = gathered.sums / gathered.numbers, np.argsort(gathered.items, kind="stable")
    ends = np.cumsum(np.bincount(gathered.items, minlength=len(scales)))
    for scale, at in zip(scales, np.split(order, ends[:-1]), strict=True):
        if scale.labels is not None:
            values[at] = np.searchsorted((scale.worth[1:] + scale.worth[:-1]) / 2, values[at], side="right")
    n = None
    if counted.any():
        n = _trials(given, gathered, trials, counted)
        values = np.where(counted, gathered.sums, values)
        _check_counts(given, gathered, values, n, counted)
    whole = not any(one == SHARED for one in wanted)
    return SparseResponses(
        np.concatenate([[0], np.cumsum(np.bincount(gathered.subjects, minlength=len(given.subject_ids)))]),
        gathered.items,
        values.astype(np.int32 if n is not None else np.int8) if whole else values,
        np.array(given.subject_ids),
        np.array(given.item_ids),
        tuple(scales),
        n,
        int(gathered.numbers[~counted].max(initial=1)),
    )


def _scales(given: Given, wanted: Sequence[str], grades: Labels) -> list[Scale]:
    """The scale of each item."""
    if grades is not None:
        return [
            Scale() if one in (COUNTED, SHARED) else Scale(_labels(grades, item))
            for one, item in zip(wanted, given.item_ids, strict=True)
        ]
    values = different(given)
    kinds = kinds_of(given) if ORDERED in wanted else [TEXTS if own is None else "" for own in values]
    groups: dict[Any, list[int]] = {}
    for i, (own, one, kind) in enumerate(zip(values, wanted, kinds, strict=True)):
        item = given.item_ids[i]
        if one == ORDERED and own is None:
            texts = ", ".join(map(shown, sorted(_texts(given, [i]))[:3]))
            raise InputError(
                f"item {item!r} has texts in no order, such as {texts}: name all of them in `grades`, the lowest "
                "first, or take `model=nominal`"
            )
        if one == ORDERED and kind == SHARES:
            raise InputError(f"item {item!r} has shares from 0 to 1 and no grades: round them to a few grades")
        if one not in (COUNTED, SHARED):
            unit = one == ORDERED and own is not None and own[0] >= 0 and own[-1] <= 1
            groups.setdefault((kind, own is None, unit), []).append(i)
    scales = [Scale()] * len(wanted)
    for (kind, are_texts, _), items in groups.items():
        if are_texts:
            labels: tuple[Any, ...] = tuple(sorted(_texts(given, items)))
        elif kind == RIGHT_WRONG:
            labels = (0, 1)
        else:
            labels = tuple(
                map(_number, np.unique(np.concatenate([own for i in items if (own := values[i]) is not None])))
            )
        for i in items:
            scales[i] = Scale(labels)
    return scales


def _texts(given: Given, items: Sequence[int]) -> set[str]:
    return {str(cell) for cell in given.cells[np.isin(given.items, items)]}


def _number(value: float) -> int | float:
    return int(value) if value == int(value) else float(value)


def _labels(grades: Sequence[Any] | Mapping[str, Sequence[Any]], item: str) -> tuple[Any, ...]:
    """All grades of an item: numbers where all are, else texts.

    Raises:
        InputError: they are none, or one is there twice, or numbers do not rise.
    """
    if isinstance(grades, Mapping):
        if item not in grades:
            raise InputError(f"`grades` has none of item {item!r}: give those of every item")
        grades = grades[item]
    if isinstance(grades, str) or len(grades) < 2:
        raise InputError(f"`grades` {grades!r}: expected two or more grades, lowest first")
    array = np.empty(len(grades), object)
    array[:] = list(grades)
    numbers = numbers_of(array)
    if np.isnan(numbers).any():
        labels: tuple[Any, ...] = tuple(str(label).strip() for label in grades)
    else:
        labels = tuple(map(_number, numbers))
        if list(labels) != sorted(labels):
            raise InputError(f"`grades` {', '.join(map(str, labels))}: expected the lowest first")
    if len(set(labels)) < len(labels):
        raise InputError(f"`grades` {', '.join(map(str, labels))}: one is there twice")
    return labels


def _worth(given: Given, at: Int[np.ndarray, " n"], scale: Scale) -> Float[np.ndarray, " n"]:
    """What the responses to an item are worth: the number, or the place of a text.

    Raises:
        InputError: one is not on the scale.
    """
    cells = given.cells[at]
    if scale.labels is None or not isinstance(scale.labels[0], str):
        worth = numbers_of(cells)
        wrong = np.isnan(worth) if scale.labels is None else ~np.isin(worth, scale.worth)
        expected = "is no number" if scale.labels is None else "is none of the grades"
    else:
        places = {label: float(place) for place, label in enumerate(scale.labels)}
        worth = np.array([places.get(_text(cell), np.nan) for cell in cells])
        wrong, expected = np.isnan(worth), "is none of the grades"
    if wrong.any():
        first = int(np.argmax(wrong))
        cell = cells[first]
        known = [str(label) for label in scale.labels or ()]
        some = known if len(known) <= SHOWN else [*known[: SHOWN - 2], "…", known[-1]]
        raise InputError(
            f"{given.place(int(at[first]))}: {shown(_number(cell) if isinstance(cell, float) else cell)} {expected}"
            + (f" {', '.join(some)}: fix it, or leave it empty" if some else "")
        )
    return worth


def _text(cell: Any) -> str:
    return str(_number(cell)) if isinstance(cell, float) else str(cell)


def _gather(given: Given, worth: Float[np.ndarray, " N"]) -> Gathered:
    num_items = len(given.item_ids)
    cells, place = np.unique(given.subjects.astype(np.int64) * num_items + given.items, return_inverse=True)
    numbers = np.bincount(place, minlength=len(cells))
    trials = numbers if given.trials is None else np.bincount(place, given.trials, len(cells)).astype(int)
    return Gathered(*np.divmod(cells, num_items), np.bincount(place, worth, len(cells)), numbers, trials)


def _refuse_repeats(given: Given, gathered: Gathered, unordered: Bool[np.ndarray, " M"]) -> None:
    repeated = (gathered.numbers > 1) & unordered
    if repeated.any():
        at = int(np.argmax(repeated))
        raise InputError(
            f"subject {given.subject_ids[gathered.subjects[at]]!r} answers item "
            f"{given.item_ids[gathered.items[at]]!r} {gathered.numbers[at]} times, the first of {repeated.sum():,} "
            "such, and categories without order have no mean: keep one response of each"
        )


def _trials(given: Given, gathered: Gathered, trials: Any, counted: Bool[np.ndarray, " M"]) -> Int[np.ndarray, " M"]:
    """Trials of each response, 1 where it is no count.

    Raises:
        InputError: they are not integers, or have another shape.
    """
    if trials is None:
        return np.where(counted, gathered.trials, 1).astype(np.int32)
    shape = len(given.subject_ids), len(given.item_ids)
    try:
        array = np.broadcast_to(np.asarray(trials, float), shape)[gathered.subjects, gathered.items]
    except ValueError as error:
        raise InputError(f"`trials` of shape {np.shape(trials)}: expected one number, (I,) or {shape}") from error
    if not ((array >= 1) & (array == np.floor(array)))[counted].all():
        raise InputError("`trials`: expected integers, 1 or more")
    # of each response, where there are several
    return np.where(counted, array * gathered.numbers, 1).astype(np.int32)


def _check_counts(
    given: Given,
    gathered: Gathered,
    values: Float[np.ndarray, " M"],
    n: Int[np.ndarray, " M"],
    counted: Bool[np.ndarray, " M"],
) -> None:
    wrong = counted & ((values > n) | (values != np.floor(values)) | (values < MISSING))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(
            f"subject {given.subject_ids[gathered.subjects[at]]!r}, item {given.item_ids[gathered.items[at]]!r}: "
            f"{values[at]:g} successes of {n[at]} trials: give the number of trials in `trials`, or one row of 0 or 1 "
            "per trial"
        )
