"""Responses as they were given, out of tables with one row per response."""

import array
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from irtjax.errors import InputError
from irtjax.responses.formats.given import Given, numbers_of, objects, plain, require_some
from irtjax.storage.sources import shown
from irtjax.types import Int


class Answer(NamedTuple):
    """A response in a table with one row per response.

    Attributes:
        place: in the file.
        subject: its id.
        item: its id.
        cell: the response as it was given.
        trials: the cell that says how many it is of.
        facet: the cell that says who judged it.
    """

    place: str
    subject: str
    item: str
    cell: Any
    trials: Any = None
    facet: Any = None


def of_answers(answers: Iterable[tuple[Any, ...]]) -> Given:
    """Of answers (`Answer`), in the order of their first appearance.

    Raises:
        InputError: one lacks an id, or an id is none that arrays can hold; or trials that are none.
    """
    ids: tuple[dict[str, int], ...] = {}, {}, {}
    found = array.array("q"), array.array("q"), array.array("q")
    same: dict[tuple[type, Any], Any] = {}  # as few objects as there are different cells
    cells: list[Any] = []
    trials = array.array("d")
    for one in answers:
        place, subject, item, cell, number, facet = answer = Answer(*one)
        if not subject or not item:
            raise InputError(f"{place} has no {'item' if subject else 'subject'} id")
        who, what = ids[0].setdefault(subject, len(ids[0])), ids[1].setdefault(item, len(ids[1]))
        given = plain(cell)
        if given is None:
            continue
        by_whom = ids[2].setdefault(_facet(answer), len(ids[2])) if facet is not None else 0
        for column, position in zip(found, (who, what, by_whom), strict=True):
            column.append(position)
        cells.append(same.setdefault((type(given), given), given))
        if number is not None:
            trials.append(_trials(answer))
    subjects, items, facets = (np.frombuffer(column, np.int64) for column in found)
    return require_some(
        Given(
            list(ids[0]),
            list(ids[1]),
            subjects,
            items,
            objects(cells),
            np.frombuffer(trials) if trials else None,
            facets if ids[2] else None,
            list(ids[2]),
        )
    )


def of_columns(
    ids: tuple[list[str], list[str]],
    columns: tuple[Int[np.ndarray, " M"], Int[np.ndarray, " M"]],
    at: Int[np.ndarray, " M"],
    different: Sequence[str],
) -> Given:
    """Of columns.

    Args:
        ids: of subjects and of items.
        columns: who answered, and what.
        at: which of the different cells it is.
        different: cells, some of which may be missing.

    Raises:
        InputError: as `of_answers`.
    """
    cells = [plain(cell) for cell in different]
    there = np.array([cell is not None for cell in cells], bool)[at]
    subjects, items = (column[there].astype(np.int64) for column in columns)
    return require_some(Given(*ids, subjects, items, objects(cells)[at[there]]))


def _facet(answer: Answer) -> str:
    facet = plain(answer.facet)
    if facet is None or facet == "":
        raise InputError(f"{answer.place} does not say who judged: fill the column of the facet in")
    return str(facet)


def _trials(answer: Answer) -> float:
    number = float(numbers_of(objects([plain(answer.trials)]))[0])
    if not (number >= 1 and number == np.floor(number)):
        raise InputError(f"{answer.place}: {shown(answer.trials)} trials: expected an integer, 1 or more")
    return number
