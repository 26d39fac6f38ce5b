"""Tables with one row per response: which column says who answered, which says what, and which says how."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from irtjax.choices import FACET, ROLES, TRIALS, USUAL
from irtjax.errors import InputError
from irtjax.storage.sources import shown

NUMBERS = ("trial", "epoch", "attempt", "repetition")  # columns that count the responses of a subject to an item
LONG_COLUMNS = tuple(USUAL.values())
UNNAMED = ("", "Unnamed: 0")  # row numbers, as R and pandas write them and as pandas reads them
SHOWN = 10  # columns that a message names
_SUBJECTS = {
    "subject", "model", "person", "student", "user", "respondent", "examinee", "participant", "learner", "pupil",
    "agent", "system", "network",
}  # fmt: skip
_ITEMS = {
    "item", "question", "instance", "problem", "task", "exercise", "example", "sample", "doc", "document", "prompt",
    "stimulus",
}  # fmt: skip


class Names(NamedTuple):
    """The columns of a table with one row per response; None where there are none of that kind."""

    subject: str
    item: str
    response: str
    trials: str | None = None
    facet: str | None = None

    @property
    def known(self) -> list[str]:
        """Those that there are."""
        return [name for name in self if name is not None]


class Column(NamedTuple):
    """What a column looks like.

    Attributes:
        name: in the header.
        is_responses: whether every cell is a response, or missing.
        is_whole: whether every cell is a whole number.
        repeats: whether a cell occurs twice.
    """

    name: str
    is_responses: bool
    is_whole: bool
    repeats: bool


def long_names(header: Sequence[str], columns: Mapping[str, str] | None) -> Names | None:
    """The columns of a table with one row per response, where the caller or the header names them; else None.

    A column called trials is taken for what it says.

    Args:
        header: names of all columns.
        columns: of some of `ROLES`, the columns that hold them; the others have their usual names.

    Raises:
        InputError: `columns` has another role, or names a column twice or one that is not there.
    """
    columns = dict(columns or {})
    for role in columns:
        if role not in ROLES:
            raise InputError(f"`columns` names a column for {shown(role)}, expected {', '.join(ROLES)}")
    if not set(columns) & set(USUAL) and not set(LONG_COLUMNS) <= set(header):
        _check(header, columns)
        return None
    if TRIALS in header and TRIALS not in columns.values():
        columns = {TRIALS: TRIALS, **columns}
    named = USUAL | columns
    _check(header, named)
    return Names(**named)


def _check(header: Sequence[str], named: Mapping[str, str]) -> None:
    for role, name in named.items():
        if list(named.values()).count(name) > 1:
            raise InputError(f"`columns` has {shown(name)} twice, expected one column for each of {', '.join(ROLES)}")
        if name not in header:
            raise InputError(f"there is no column {shown(name)} for the {role}: {_listed(header)}")


def beside(header: Sequence[str], columns: Mapping[str, str] | None) -> dict[str, str]:
    """Columns of a table whose others are to be guessed that are none of subjects, items and responses, by role.

    Those that count responses have their own names for roles.
    """
    named = {role: name for role, name in (columns or {}).items() if role in (TRIALS, FACET)}
    return {name: name for name in (TRIALS, *NUMBERS) if name in header} | named


def guessed_names(columns: Sequence[Column], others: Mapping[str, str]) -> Names | None:
    """The columns of a table with one row per response whose header does not say so; None where that is open.

    There must be three columns beside row numbers and `others`, and responses in exactly one of them. The first of the
    three must repeat itself: in a matrix of two items, one of them with wrong cells, it would have the ids of the
    subjects. Subjects come before items, unless the names of the columns say otherwise.
    """
    if columns and columns[0].name in UNNAMED and columns[0].is_whole:
        columns = columns[1:]
    columns = [column for column in columns if column.name not in others.values()]
    names = [column.name for column in columns]
    ids = [column.name for column in columns if not column.is_responses]
    if len(set(names)) != 3 or len(names) != 3 or len(ids) != 2 or not columns[0].repeats:
        return None
    (response,) = set(names) - set(ids)
    subject, item = reversed(ids) if _says(ids[0], _ITEMS, _SUBJECTS) or _says(ids[1], _SUBJECTS, _ITEMS) else ids
    return Names(subject, item, response, others.get(TRIALS), others.get(FACET))


def how_to_name(header: Sequence[str]) -> str:
    """What an error says where a table is no matrix and may have one row per response."""
    return (
        f"a table with one row per response has the columns {', '.join(LONG_COLUMNS)}, or `columns` says which of its "
        f"own they are, as in subject:model,item:question,response:correct ({_listed(header)})"
    )


def _says(name: str, words: set[str], others: set[str]) -> bool:
    """Whether a name has one of some words, and none of others."""
    found = set(re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()))
    return bool(found & words) and not found & others


def _listed(header: Sequence[str]) -> str:
    more = f" and {len(header) - SHOWN:,} more" if len(header) > SHOWN else ""
    return f"it has {', '.join(map(shown, header[:SHOWN]))}{more}"
