"""Lines of JSON, one object a line, whichever program wrote them."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from irtjax.errors import InputError, NotScoredError
from irtjax.responses.matrix import MISSING
from irtjax.storage.sources import lines_of, one_line, shown

Record = dict[str, Any]
Number = int | float
PREFERRED = ("acc", "exact_match", "pass@1", "pass_at_1")
RIGHT_WRONG, NUMBERS, OTHER = "right and wrong", "numbers", "other"  # what a metric has throughout


class Graded(NamedTuple):
    """The answers to one task in one file, by one of its metrics and filters.

    Attributes:
        task: its name.
        metric: the metric that was chosen; empty where there was no choice.
        filter: the filter that was chosen.
        metrics: all that the file has for the task.
        filters: all that the file has for the task.
        answers: line, subject, item and response of each answer (`response_of`).
        unit: what the first of these counts, where that is not lines.
    """

    task: str
    metric: str
    filter: str
    metrics: frozenset[str]
    filters: frozenset[str]
    answers: Iterable[tuple[int, str, str, Number]]
    unit: str = "line"


class Wanted(NamedTuple):
    """What is to be read.

    Attributes:
        metrics: that come before those by default, the most wanted first.
        filters: that come before those by default.
        scored: whether responses must be right or wrong; else any numbers.
    """

    metrics: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    scored: bool = True


def records(path: Path, expected: str) -> Iterator[tuple[int, Record]]:
    """The objects of a file, each with the number of its line; blank lines are left out.

    Args:
        path: the file.
        expected: what a line looks like, for errors.

    Raises:
        InputError: a line is no object of JSON, or a key is there twice.
    """
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(lines_of(file), start=1):
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


def number_of(value: object) -> Number | None:
    """A response as a number, NaN where it is null; None of what is none."""
    if value is None:
        return math.nan
    return value if isinstance(value, int | float) else None


def response_of(value: object, place: str, scored: bool) -> Number:
    """The code of a response, or the number.

    Args:
        value: as the file has it.
        place: line and key, for errors.
        scored: whether it must be right or wrong.

    Raises:
        NotScoredError: it must, and is neither.
        InputError: it is no number.
    """
    response = code_of(value) if scored else number_of(value)
    if response is not None:
        return response
    what, way = "neither 0 nor 1" if scored else "no number", "choose another `metric`, or leave the file out"
    if scored and number_of(value) is not None:
        raise NotScoredError(f"{place}: {shown(value)} is {what}: {way}; `model=auto` fits numbers, too")
    raise InputError(f"{place}: {shown(value)} is {what}: {way}")


def kind_of(values: Iterable[object]) -> str:
    """What a metric has: right and wrong throughout, numbers, or something else."""
    found = list(values)
    if all(code_of(value) is not None for value in found):
        return RIGHT_WRONG
    return NUMBERS if all(number_of(value) is not None for value in found) else OTHER


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


def choose_metric(found: dict[str, str], wanted: Wanted, usual: Sequence[str] = PREFERRED) -> str:
    """The metric that has the responses.

    Args:
        found: metrics, and what each has throughout (`kind_of`).
        wanted: those that come before the usual ones.
        usual: the most usual first.

    Returns:
        The first that is wanted or usual; else the only one; else the only one that is 0 or 1 throughout; else, of
        numbers, the only one that has these.

    Raises:
        NotScoredError: none is 0 or 1 throughout, and must be.
        InputError: there are several, or no numbers.
    """
    for name in (*wanted.metrics, *usual):
        if name in found:
            return name
    if len(found) == 1:
        return next(iter(found))
    of_kind = {kind: [name for name, own in found.items() if own == kind] for kind in (RIGHT_WRONG, NUMBERS)}
    for kind in (RIGHT_WRONG, NUMBERS):
        names = of_kind[kind]
        if kind == NUMBERS and wanted.scored and names:
            raise NotScoredError(
                f"no metric of {listed(found)} is 0 or 1 throughout: leave the file out, or choose one with numbers by "
                "`metric` and fit them by `model=auto`"
            )
        if len(names) == 1:
            return names[0]
        if names:
            said = "0 or 1 throughout" if kind == RIGHT_WRONG else "numbers"
            raise InputError(f"the metrics {listed(names)} are {said}: choose one by `metric`")
    raise InputError(f"no metric of {listed(found)} has numbers: leave the file out")


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
