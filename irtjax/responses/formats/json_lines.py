"""Lines of JSON as py-irt has them, one subject a line."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from irtjax.errors import InputError
from irtjax.responses.formats.answers import Answer, gather
from irtjax.responses.matrix import MISSING, ResponseMatrix
from irtjax.storage.sources import one_line, shown


def read(path: Path) -> ResponseMatrix:
    """The matrix of a file of JSON lines, see `read_responses`."""
    return gather(_answers(path))


def _answers(path: Path) -> Iterator[Answer]:
    kinds: dict[str, type] = {}
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                identity, responses = _record(line)
            except (ValueError, RecursionError) as error:
                raise InputError(
                    f'line {number}: expected {{"subject_id": ..., "responses": {{item: 0 or 1}}}} ({one_line(error)})'
                ) from error
            subject = str(identity)
            if kinds.setdefault(subject, type(identity)) is not type(identity):
                raise InputError(f"line {number}: subject {subject} is a text in one line and a number in another")
            for item, value in responses.items():
                if value is not None and (not isinstance(value, int | float) or value not in (0, 1)):
                    raise InputError(
                        f"line {number} (subject {shown(subject)}), item {shown(item)}: {shown(value)} is not a "
                        "response; use 0, 1 or null for missing"
                    )
                yield f"line {number}", subject, item, MISSING if value is None else int(value)


def _record(line: str) -> tuple[str | int, dict[str, Any]]:
    """The subject of a line and its answers.

    Raises:
        ValueError: the line is not such a record.
    """
    record = json.loads(line, object_pairs_hook=_without_repeats)
    if not isinstance(record, dict):
        raise ValueError(f"it is {shown(record)}")
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


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, in which each key is there once."""
    found = dict(pairs)
    if len(found) < len(pairs):
        (key, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {shown(key)} is there twice")
    return found
