"""What kind of responses each item has, by what was given: right or wrong, grades, shares, or texts."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from irtjax.errors import InputError
from irtjax.responses.compressed_rows import grouped
from irtjax.responses.formats.cells import numbers_of
from irtjax.responses.formats.given import MOST_GRADES, Given
from irtjax.storage.sources import shown
from irtjax.types import Bool, Float, Int

RIGHT_WRONG, GRADES, SHARES, TEXTS = "right and wrong", "grades", "shares", "texts"
MOST_OF_ALL = 21  # different grades of a test: half grades from 0 to 10
MOST_OF_SHARE = 5  # different grades from 0 to 1: quarters
EXACT = 1e-6  # of a step between grades


class Numbers(NamedTuple):
    """The numbers that items have.

    Attributes:
        text: (I,) whether an item has texts instead.
        number: (I,) of different ones.
        low: (I,) the lowest; NaN of texts.
        high: (I,) the highest.
        scored: (I,) whether all are 0 or 1.
    """

    text: Bool[np.ndarray, " I"]
    number: Int[np.ndarray, " I"]
    low: Float[np.ndarray, " I"]
    high: Float[np.ndarray, " I"]
    scored: Bool[np.ndarray, " I"]


def require_answered(given: Given) -> None:
    """Refuses an item without responses.

    Raises:
        InputError: names the first.
    """
    empty = np.ones(len(given.item_ids), bool)
    empty[given.items] = False
    if empty.any():
        item = given.item_ids[int(np.argmax(empty))]
        raise InputError(f"item {item!r} has no responses (1 of {empty.sum()} such): leave it out")


def numbers_by_item(given: Given) -> Numbers:
    """What numbers each item has.

    Raises:
        InputError: an item has numbers and texts, or none of both.
    """
    require_answered(given)
    starts, order = grouped(given.items, len(given.item_ids))
    numbers, at = numbers_of(given.cells.different), given.cells.at
    found = Numbers(*(np.zeros(len(given.item_ids), kind) for kind in (bool, int, float, float, bool)))
    for i, places in enumerate(np.split(order, starts[1:-1])):
        own = np.unique(numbers[places if at is None else np.unique(at[places])])  # NaN is the last
        is_text = np.isnan(own[-1])
        if is_text and len(own) > 1:
            of_each = np.isnan(numbers[places if at is None else at[places]])
            one, other = (given.cells[int(places[find(of_each)])] for find in (np.argmin, np.argmax))
            raise InputError(
                f"item {given.item_ids[i]!r} has numbers and texts, such as {shown(_short(one))} and "
                f"{shown(_short(other))}: fix it or leave it out, or name all of them in order in `grades`"
            )
        for column, value in zip(found, (is_text, len(own), own[0], own[-1], np.isin(own, (0, 1)).all()), strict=True):
            column[i] = value
    return found


def different(given: Given, items: Sequence[int] | Int[np.ndarray, " n"]) -> Float[np.ndarray, " _"]:
    """The different numbers that some items have together, in order."""
    chosen = np.zeros(len(given.item_ids), bool)
    chosen[np.asarray(items, int)] = True
    found = given.cells.some(chosen[given.items])
    used = found.different if found.at is None else found.different[np.unique(found.at)]
    return np.unique(numbers_of(used))


def kinds_of(given: Given) -> list[str]:
    """The kind of each item.

    Right and wrong are 0 and 1. Numbers are grades if an item has up to 15 and all items together up to 21 different
    ones, on a common grid. Numbers from 0 to 1 are grades only if all have up to 5, such as 0, 1/2 and 1; else they are
    shares, and so are 0 and 1 beside them.

    Raises:
        InputError: names an item with numbers and texts, or with numbers that are none of these.
    """
    own = numbers_by_item(given)
    kinds = [
        TEXTS if text else RIGHT_WRONG if scored else GRADES for text, scored in zip(own.text, own.scored, strict=True)
    ]
    graded = ~(own.text | own.scored)
    unit = graded & (own.low >= 0) & (own.high <= 1)
    if not _are_grades(given, own, unit, MOST_OF_SHARE):
        # those who had all or nothing right of a trial, too
        kinds = [SHARES if one or kind == RIGHT_WRONG else kind for one, kind in zip(unit, kinds, strict=True)]
    beyond = graded & ~unit
    if not _are_grades(given, own, beyond):
        i = max(np.flatnonzero(beyond), key=lambda i: (own.number[i], own.high[i] - own.low[i]))
        percent = "divide percentages by 100, " if own.low[i] >= 0 and 1 < own.high[i] <= 100 else ""
        raise InputError(
            f"item {given.item_ids[i]!r} has {own.number[i]:,} different numbers, from {own.low[i]:g} to "
            f"{own.high[i]:g}: neither grades (up to {MOST_GRADES} on a common grid) nor shares from 0 to 1: {percent}"
            "leave it out, round it, or call the column subject_id if it has the ids of the subjects"
        )
    return kinds


def _are_grades(given: Given, own: Numbers, items: Bool[np.ndarray, " I"], most: int = MOST_OF_ALL) -> bool:
    if not items.any():
        return True
    if own.number[items].max() > MOST_GRADES or len(every := different(given, np.flatnonzero(items))) > most:
        return False
    if len(every) < 3:
        return True
    steps = np.diff(every) / np.diff(every).min()
    return bool((np.abs(steps - np.round(steps)) < EXACT).all())


def _short(cell: Any) -> Any:
    """A number as people write it."""
    return f"{cell:g}" if isinstance(cell, float) else cell
