"""Lines of JSON, one object a line, whichever program wrote them."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from irtjax.errors import InputError
from irtjax.responses.matrix import MISSING
from irtjax.storage.sources import one_line, shown

Record = dict[str, Any]
PREFERRED = ("acc", "exact_match", "pass@1", "pass_at_1")


class Graded(NamedTuple):
    """The answers to one task in one file, by one of its metrics and filters.

    Attributes:
        task: its name.
        metric: the metric that was chosen; empty where there was no choice.
        filter: the filter that was chosen.
        metrics: all that the file has for the task.
        filters: all that the file has for the task.
        answers: line, subject, item and code of each answer.
    """

    task: str
    metric: str
    filter: str
    metrics: frozenset[str]
    filters: frozenset[str]
    answers: list[tuple[int, str, str, int]]


class Wanted(NamedTuple):
    """Names that come before those by default, the most wanted first."""

    metrics: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()


def records(path: Path, expected: str) -> Iterator[tuple[int, Record]]:
    """The objects of a file, each with the number of its line; blank lines are left out.

    Args:
        path: the file.
        expected: what a line looks like, for errors.

    Raises:
        InputError: a line is no object of JSON, or a key is there twice.
    """
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line, object_pairs_hook=_without_repeats)
            except (ValueError, RecursionError) as error:
                cut = "" if line.endswith("\n") else "; the file ends in this line"
                raise InputError(f"line {number}: expected {expected} ({one_line(error)}{cut})") from error
            if not isinstance(record, dict):
                raise InputError(f"line {number}: expected {expected} (it is {shown(record)})")
            yield number, record


def code_of(value: object) -> int | None:
    """The code of a response, missing where it is null; None of what is no response."""
    if value is None:
        return MISSING
    return int(value) if isinstance(value, int | float) and value in (0, 1) else None


def id_of(record: Record, key: str, line: int) -> str:
    """The id under a key, as text.

    Raises:
        InputError: there is none, or it is neither a text nor a whole number.
    """
    if key not in record:
        raise InputError(f"line {line}: no key {key}")
    identity = record[key]
    if type(identity) not in (str, int) or identity == "":
        raise InputError(f"line {line}, key {key}: {shown(identity)} is neither a text nor a whole number")
    return str(identity)


def choose_metric(found: dict[str, bool], wanted: Wanted) -> str:
    """The metric that says which answers are right.

    Args:
        found: metrics, and whether each is 0 or 1 throughout.
        wanted: those that come before `PREFERRED`.

    Returns:
        The first that is wanted or preferred; else the only one; else the only one that is 0 or 1 throughout.

    Raises:
        InputError: several are, or none is.
    """
    for name in (*wanted.metrics, *PREFERRED):
        if name in found:
            return name
    if len(found) == 1:
        return next(iter(found))
    graded = [name for name, whole in found.items() if whole]
    if len(graded) == 1:
        return graded[0]
    if not graded:
        raise InputError(f"no metric of {listed(found)} is 0 or 1 throughout: leave the file out")
    raise InputError(f"the metrics {listed(graded)} are 0 or 1 throughout: choose one by `metric`")


def choose_filter(found: list[str], wanted: Wanted) -> str:
    """The first filter that is wanted, else the first that was found."""
    return next((name for name in wanted.filters if name in found), found[0])


def listed(names: Any) -> str:
    """Names with commas; of many, some."""
    first = [shown(name) for name in list(names)[:6]]
    return ", ".join(first) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def _without_repeats(pairs: list[tuple[str, Any]]) -> Record:
    """An object of JSON, in which each key is there once."""
    found = dict(pairs)
    if len(found) < len(pairs):
        (key, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {shown(key)} is there twice")
    return found
