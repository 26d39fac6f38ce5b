"""JSON of files from outside: whatever is wrong with it is one error."""

import json
from pathlib import Path
from typing import Any

from irtjax.errors import InputError
from irtjax.storage.sources import one_line, reading, text_of


def parsed(text: str, **hooks: Any) -> Any:
    """The value that a text of JSON holds.

    Args:
        text: of one value.
        **hooks: of `json.loads`.

    Raises:
        InputError: it is no JSON, or deeper nested than Python reads; the message does not name a file.
    """
    try:
        return json.loads(text, **hooks)
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits are a ValueError, too
        raise InputError(f"not JSON ({one_line(error)})") from error


def read_json(path: str | Path) -> Any:
    """The value that a file of JSON holds.

    Raises:
        InputError: names the file, which cannot be read, or see `parsed`.
    """
    with reading(path) as file:
        return parsed(text_of(file))
