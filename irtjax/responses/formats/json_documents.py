"""JSON files of one value, such as the log of a run."""

import functools
from pathlib import Path
from typing import Any

from irtjax.errors import InputError
from irtjax.responses.formats.lines import Record
from irtjax.storage.json_files import parsed
from irtjax.storage.sources import shown, text_of


def document(path: Path) -> Any:
    """What a file holds; numbers that are not finite are null.

    Raises:
        InputError: it is not JSON.
    """
    status = path.stat()
    return _parsed(path, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=1)  # what a file is, and what it holds, are asked one after the other
def _parsed(path: Path, *version: int) -> Any:
    return parsed(text_of(path), parse_constant=lambda _: None)


def object_at(value: Any, place: str) -> Record:
    """An object of JSON.

    Raises:
        InputError: the value is another, or not there.
    """
    if not isinstance(value, dict):
        raise InputError(f"{place}: {'not there' if value is None else shown(value)}, expected an object of JSON")
    return value


def text_at(record: Record, key: str, place: str) -> str:
    """The text under a key.

    Raises:
        InputError: there is none.
    """
    value = record.get(key)
    if not isinstance(value, str) or not value:
        raise InputError(f"{place}.{key}: {'not there' if value is None else shown(value)}, expected a text")
    return value
