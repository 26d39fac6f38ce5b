"""What kind of responses each item has, by what was given: right or wrong, grades, shares, or texts."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from irtjax.errors import InputError
from irtjax.responses.formats.given import MOST_GRADES, Given, numbers_of
from irtjax.storage.sources import shown
from irtjax.types import Float, Int

RIGHT_WRONG, GRADES, SHARES, TEXTS = "right and wrong", "grades", "shares", "texts"
MOST_OF_ALL = 21  # different grades of a test: half grades from 0 to 10
MOST_OF_SHARE = 5  # different grades from 0 to 1: quarters
EXACT = 1e-6  # of a step between grades


def by_item(given: Given) -> list[Int[np.ndarray, " _"]]:
    """The places of the responses to each item.

    Raises:
        InputError: an item has none.
    """
    order = np.argsort(given.items, kind="stable")
    counts = np.bincount(given.items, minlength=len(given.item_ids))
    if (counts == 0).any():
        empty = given.item_ids[int(np.argmin(counts))]
        raise InputError(f"item {empty!r} has no responses (1 of {(counts == 0).sum()} such): leave it out")
    return np.split(order, np.cumsum(counts)[:-1])


def different(given: Given) -> list[Float[np.ndarray, " _"] | None]:
    """The different numbers that each item has, in order; None of an item with texts.

    Raises:
        InputError: an item has numbers and texts.
    """
    numbers = numbers_of(given.cells)
    found: list[Float[np.ndarray, " _"] | None] = []
    for item, at in zip(given.item_ids, by_item(given), strict=True):
        text = np.isnan(numbers[at])
        if text.any() and not text.all():
            one, other = given.cells[at[np.argmin(text)]], given.cells[at[np.argmax(text)]]
            raise InputError(
                f"item {item!r} has numbers and texts, such as {shown(_short(one))} and {shown(_short(other))}: "
                "fix it or leave it out, or name all of them in order in `grades`"
            )
        found.append(None if text.any() else np.unique(numbers[at]))
    return found


def kinds_of(given: Given) -> list[str]:
    """The kind of each item.

    Right and wrong are 0 and 1. Numbers are grades if an item has up to 15 and all items together up to 21 different
    ones, on a common grid. Numbers from 0 to 1 are grades only if all have up to 5, such as 0, 1/2 and 1; else they are
    shares, and so are 0 and 1 beside them.

    Raises:
        InputError: names an item with numbers and texts, or with numbers that are none of these.
    """
    values = different(given)
    kinds = [TEXTS if own is None else RIGHT_WRONG if np.isin(own, (0, 1)).all() else GRADES for own in values]
    numeric = [i for i, kind in enumerate(kinds) if kind == GRADES]
    unit = [i for i in numeric if values[i][0] >= 0 and values[i][-1] <= 1]  # type: ignore[index]
    if unit and not _are_grades([values[i] for i in unit], MOST_OF_SHARE):
        # those who had all or nothing right of a trial, too
        kinds = [SHARES if i in set(unit) or kind == RIGHT_WRONG else kind for i, kind in enumerate(kinds)]
    beyond = [i for i in numeric if i not in set(unit)]
    if not _are_grades([values[i] for i in beyond]):
        i = max(beyond, key=lambda i: (len(values[i]), np.ptp(values[i])))  # type: ignore[arg-type]
        own = values[i]
        assert own is not None
        percent = "divide percentages by 100, " if own[0] >= 0 and 1 < own[-1] <= 100 else ""
        raise InputError(
            f"item {given.item_ids[i]!r} has {len(own):,} different numbers, from {own[0]:g} to {own[-1]:g}: neither "
            f"grades (up to {MOST_GRADES} on a common grid) nor shares from 0 to 1: {percent}leave it out, round it, "
            "or call the column subject_id if it has the ids of the subjects"
        )
    return kinds


def _are_grades(values: Sequence[Float[np.ndarray, " _"] | None], most: int = MOST_OF_ALL) -> bool:
    if not values:
        return True
    every = np.unique(np.concatenate([own for own in values if own is not None]))
    if len(every) > most or max(len(own) for own in values if own is not None) > MOST_GRADES:
        return False
    if len(every) < 3:
        return True
    steps = np.diff(every) / np.diff(every).min()
    return bool((np.abs(steps - np.round(steps)) < EXACT).all())


def _short(cell: Any) -> Any:
    """A number as people write it."""
    return f"{cell:g}" if isinstance(cell, float) else cell
