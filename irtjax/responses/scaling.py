"""Responses on the scales of their items, out of what was given."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from irtjax.errors import InputError
from irtjax.responses.compressed_rows import TOGETHER, answered_again, inverse
from irtjax.responses.formats.cells import numbers_of
from irtjax.responses.formats.given import Given
from irtjax.responses.kinds import RIGHT_WRONG, SHARES, TEXTS, different, kinds_of, numbers_by_item, require_answered
from irtjax.responses.scaled import MISSING, Scale, ScaledResponses
from irtjax.responses.sparse import SparseResponses
from irtjax.storage.sources import shown
from irtjax.types import Bool, Float, Int, Shaped

ORDERED, UNORDERED, COUNTED, SHARED = "ordered", "unordered", "counted", "shared"  # what a model takes
Labels = Sequence[Any] | Mapping[str, Sequence[Any]] | None
SHOWN = 12  # labels that a message names


class Gathered(NamedTuple):
    """The responses of each subject to each item together, in M pairs of these, subject by subject.

    Attributes:
        starts: (J + 1,) where the pairs of each subject begin.
        items: (M,) int32, rising within a subject.
        values: (M,) as `irtjax.responses.scaled.ScaledResponses` has them; sums where counts are wanted, else means.
        numbers: (M,) of responses; None where there is one of each.
        trials: (M,) of trials, the sum of those that were given; None where none were.
    """

    starts: Int[np.ndarray, " ends"]
    items: Int[np.ndarray, " M"]
    values: Shaped[np.ndarray, " M"]
    numbers: Int[np.ndarray, " M"] | None
    trials: Int[np.ndarray, " M"] | None


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
    require_answered(given)
    scales = _scales(given, wanted, grades)
    counts, no_order = (np.array([one == kind for one in wanted]) for kind in (COUNTED, UNORDERED))
    found = _gather(given, scales, counts, no_order)
    counted, n, values = counts[found.items], None, found.values
    if counts.any():
        n = _trials(given, found, trials, counted)
        _check_counts(given, found, n, counted)
        if not any(one == SHARED for one in wanted):
            values = values.astype(np.int32)
    averaged = 1 if found.numbers is None else int(found.numbers[~counted].max(initial=1))
    ids = np.array(given.subject_ids), np.array(given.item_ids)
    return SparseResponses(found.starts, found.items, values, *ids, tuple(scales), n, averaged)


def _scales(given: Given, wanted: Sequence[str], grades: Labels) -> list[Scale]:
    """The scale of each item."""
    if grades is not None:
        return [
            Scale() if one in (COUNTED, SHARED) else Scale(_labels(grades, item))
            for one, item in zip(wanted, given.item_ids, strict=True)
        ]
    own = numbers_by_item(given)
    kinds = kinds_of(given) if ORDERED in wanted else [TEXTS if text else "" for text in own.text]
    groups: dict[Any, list[int]] = {}
    for i, (one, kind) in enumerate(zip(wanted, kinds, strict=True)):
        item, is_text = given.item_ids[i], bool(own.text[i])
        if one == ORDERED and is_text:
            texts = ", ".join(map(shown, sorted(_texts(given, [i]))[:3]))
            raise InputError(
                f"item {item!r} has texts in no order, such as {texts}: name all of them in `grades`, the lowest "
                "first, or take `model=nominal`"
            )
        if one == ORDERED and kind == SHARES:
            raise InputError(f"item {item!r} has shares from 0 to 1 and no grades: round them to a few grades")
        if one not in (COUNTED, SHARED):
            unit = one == ORDERED and own.low[i] >= 0 and own.high[i] <= 1
            groups.setdefault((kind, is_text, unit), []).append(i)
    scales = [Scale()] * len(wanted)
    for (kind, are_texts, _), items in groups.items():
        if are_texts:
            labels: tuple[Any, ...] = tuple(sorted(_texts(given, items)))
        elif kind == RIGHT_WRONG:
            labels = (0, 1)
        else:
            labels = tuple(map(_number, different(given, items)))
        scale = Scale(labels)
        for i in items:
            scales[i] = scale
    return scales


def _texts(given: Given, items: Sequence[int]) -> set[str]:
    found = given.cells.some(np.isin(given.items, items))
    return set(map(str, found.different if found.at is None else found.different[np.unique(found.at)]))


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


def _stored(given: Given, scales: Sequence[Scale], place: Int[np.ndarray, " N"]) -> Shaped[np.ndarray, " N"]:
    """What is stored of each response: its category, or the number.

    Args:
        given: the responses.
        scales: of the items.
        place: where that of each response comes.

    Raises:
        InputError: one is not on the scale of its item.
    """
    whole = all(scale.labels is not None for scale in scales)
    top = max((scale.top for scale in scales if scale.labels is not None), default=1)
    stored = np.empty(len(given.cells), (np.int8 if top <= np.iinfo(np.int8).max else np.int32) if whole else float)
    known: dict[Scale, int] = {}
    scale_of = np.array([known.setdefault(scale, len(known)) for scale in scales])
    tables: dict[Scale, np.ndarray] = {}  # of the different cells
    different, codes = given.cells.different, given.cells.at
    for first in range(0, len(stored), TOGETHER):
        part = slice(first, first + TOGETHER)
        of = scale_of[given.items[part]]
        order = np.argsort(of, kind="stable")
        found = np.empty(len(of))
        for at in np.split(order, np.flatnonzero(np.diff(of[order])) + 1):
            scale = scales[given.items[first + at[0]]]
            if codes is None:
                found[at] = _places(different[part][at], scale)
            else:
                if scale not in tables:
                    tables[scale] = _places(different, scale)
                found[at] = tables[scale][codes[part][at]]
        if (wrong := np.flatnonzero(np.isnan(found))).size:
            n = first + int(wrong[np.argmin(given.items[part][wrong])])  # the first to the first item
            raise _not_on_scale(given, n, scales[given.items[n]])
        stored[place[part]] = found
    return stored


def _places(cells: Shaped[np.ndarray, " n"], scale: Scale) -> Float[np.ndarray, " n"]:
    """The category of each of some cells, or the number; NaN of what is none."""
    if scale.labels is not None and isinstance(scale.labels[0], str):
        places = {label: float(place) for place, label in enumerate(scale.labels)}
        return np.array([places.get(_text(cell), np.nan) for cell in cells])
    numbers = numbers_of(cells)
    if scale.labels is None:
        return numbers
    return np.where(np.isin(numbers, scale.worth), np.searchsorted(scale.worth, numbers), np.nan)


def _not_on_scale(given: Given, at: int, scale: Scale) -> InputError:
    cell, known = given.cells[at], [str(label) for label in scale.labels or ()]
    some = known if len(known) <= SHOWN else [*known[: SHOWN - 2], "…", known[-1]]
    return InputError(
        f"{given.place(at)}: {shown(_number(cell) if isinstance(cell, float) else cell)} "
        + ("is not a number" if scale.labels is None else "is none of the grades")
        + (f" {', '.join(some)}: fix it, or leave it empty" if some else "")
    )


def _text(cell: Any) -> str:
    return str(_number(cell)) if isinstance(cell, float) else str(cell)


def _gather(
    given: Given,
    scales: Sequence[Scale],
    counts: Bool[np.ndarray, " I"],
    no_order: Bool[np.ndarray, " I"],
) -> Gathered:
    """The responses in rows, several of one subject to an item as one.

    Args:
        given: the responses.
        scales: of the items.
        counts: whose responses are added up.
        no_order: whose responses have no mean.

    Raises:
        InputError: there are several where they have no mean; or one is not on the scale of its item.
    """
    starts, order = given.rows()
    place = inverse(order)
    del order
    values = _stored(given, scales, place)  # at once where it belongs: there is no second array of these
    items = _put(given.items, place)
    trials = None if given.trials is None else _put(given.trials, place)
    again = answered_again(starts, items)
    if not again.any():
        return Gathered(starts, items, values, None, trials)
    first = np.flatnonzero(~again)
    numbers = np.diff(first, append=len(again))
    if trials is not None:
        trials = np.add.reduceat(trials, first, dtype=np.int32)
    pairs, rows = items[first], np.searchsorted(first, starts)
    _refuse_repeats(given, rows, pairs, numbers, no_order)
    found = np.where(counts[pairs], np.add.reduceat(values, first), values[first])
    of_mean = np.flatnonzero(np.repeat((numbers > 1) & ~counts[pairs], numbers))
    pair = np.searchsorted(first, of_mean, side="right") - 1
    order = np.argsort(pairs[pair], kind="stable")
    ends = np.cumsum(np.bincount(pairs[pair], minlength=len(scales)))
    for scale, at in zip(scales, np.split(order, ends[:-1]), strict=True):
        these, back = np.unique(pair[at], return_inverse=True)
        found[these] = _means(scale, values[of_mean[at]], back)
    return Gathered(rows, pairs, found.astype(values.dtype), numbers, trials)


def _put(of: Shaped[np.ndarray, " N"], place: Int[np.ndarray, " N"]) -> Shaped[np.ndarray, " N"]:
    """The same numbers, each at its place."""
    found = np.empty_like(of)
    found[place] = of
    return found


def _means(scale: Scale, stored: Shaped[np.ndarray, " n"], of: Int[np.ndarray, " n"]) -> Float[np.ndarray, " m"]:
    """Means of responses to an item, those of one subject each: of grades the nearest one."""
    worth = stored if scale.labels is None else scale.worth[stored.astype(int)]
    means = np.bincount(of, worth) / np.bincount(of)
    if scale.labels is None:
        return means
    return np.searchsorted((scale.worth[1:] + scale.worth[:-1]) / 2, means, side="right").astype(float)


def _refuse_repeats(
    given: Given,
    starts: Int[np.ndarray, " ends"],
    items: Int[np.ndarray, " M"],
    numbers: Int[np.ndarray, " M"],
    no_order: Bool[np.ndarray, " I"],
) -> None:
    repeated = (numbers > 1) & no_order[items]
    if repeated.any():
        at = int(np.argmax(repeated))
        subject = given.subject_ids[int(np.searchsorted(starts, at, side="right")) - 1]
        raise InputError(
            f"subject {subject!r} answers item {given.item_ids[items[at]]!r} {numbers[at]} times, the first of "
            f"{repeated.sum():,} such, and categories without order have no mean: keep one response of each"
        )


def _trials(given: Given, found: Gathered, trials: Any, counted: Bool[np.ndarray, " M"]) -> Int[np.ndarray, " M"]:
    """Trials of each response, 1 where it is no count.

    Raises:
        InputError: they are not integers, or have another shape.
    """
    numbers = 1 if found.numbers is None else found.numbers
    if trials is None:
        return np.where(counted, numbers if found.trials is None else found.trials, 1).astype(np.int32)
    shape = len(given.subject_ids), len(given.item_ids)
    try:
        array = np.broadcast_to(np.asarray(trials, float), shape)[_subjects(found), found.items]
    except ValueError as error:
        raise InputError(f"`trials` of shape {np.shape(trials)}: expected one number, (I,) or {shape}") from error
    if not ((array >= 1) & (array == np.floor(array)))[counted].all():
        raise InputError("`trials`: expected integers, 1 or more")
    # of each response, where there are several
    return np.where(counted, array * numbers, 1).astype(np.int32)


def _subjects(found: Gathered) -> Int[np.ndarray, " M"]:
    return np.repeat(np.arange(len(found.starts) - 1), np.diff(found.starts))


def _check_counts(given: Given, found: Gathered, n: Int[np.ndarray, " M"], counted: Bool[np.ndarray, " M"]) -> None:
    values = found.values
    wrong = counted & ((values > n) | (values != np.floor(values)) | (values < MISSING))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(
            f"subject {given.subject_ids[_subjects(found)[at]]!r}, item {given.item_ids[found.items[at]]!r}: "
            f"{values[at]:g} successes of {n[at]} trials: give the number of trials in `trials`, or one row of 0 or 1 "
            "per trial"
        )
