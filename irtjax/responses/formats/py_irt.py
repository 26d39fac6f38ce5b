"""Lines of JSON as py-irt has them, one subject a line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from irtjax.errors import InputError, NotScoredError
from irtjax.responses.formats.lines import Record, code_of, number_of, records
from irtjax.storage.sources import shown

FORM = '{"subject_id": ..., "responses": {item: 0 or 1}}'


def lines(path: Path, scored: bool = True) -> Iterator[tuple[int, str, list[str], list[int | float]]]:
    """Number, subject, items and responses of each line: their codes, or any numbers unless they are `scored`.

    Raises:
        InputError: names the line that is no such record, or the item whose response is none.
    """
    kinds: dict[str, type] = {}
    read_one = code_of if scored else number_of
    for number, record in records(path, FORM):
        try:
            identity, given = _parts(record)
        except ValueError as error:
            raise InputError(f"line {number}: expected {FORM} ({error})") from error
        subject = str(identity)
        if kinds.setdefault(subject, type(identity)) is not type(identity):
            raise InputError(f"line {number}: subject {subject} is a text in one line and a number in another")
        responses = [read_one(value) for value in given.values()]
        if None in responses:
            item, value = list(given.items())[responses.index(None)]
            kind = InputError if number_of(value) is None else NotScoredError
            raise kind(
                f"line {number} (subject {shown(subject)}), item {shown(item)}: {shown(value)} is not a "
                "response; use 0, 1 or null for missing"
            )
        yield number, subject, list(given), responses  # type: ignore[misc]


def _parts(record: Record) -> tuple[str | int, dict[str, Any]]:
    """The subject of a line and its answers.

    Raises:
        ValueError: the line is not such a record.
    """
    for key in ("subject_id", "responses"):
        if key not in record:
            raise ValueError(f"it has no {key}")
    subject, responses = record["subject_id"], record["responses"]
    if type(subject) not in (str, int):
        raise ValueError(f"the subject_id is {shown(subject)}, neither a text nor a whole number")
    if not isinstance(responses, dict):
        raise ValueError(f"the responses of subject {shown(subject)} are {shown(responses)}")
    if not responses:
        raise ValueError(f"subject {shown(subject)} has no responses")
    return subject, responses
