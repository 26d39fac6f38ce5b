"""Checks of numbers and names that are passed as arguments."""

import math
import numbers
import operator
from collections.abc import Iterable
from typing import Any

from irtjax.errors import InputError

LARGEST_SEED = 2**31 - 1


def whole_number(name: str, value: object, least: int = 0, most: int | None = None) -> int:
    """An argument as an int.

    Raises:
        InputError: it is not an integer, or out of range.
    """
    expected = f"{least:,} to {most:,}" if most is not None else f"at least {least:,}"
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or number < least or (most is not None and number > most):
        raise InputError(f"`{name}` {_shown(value)}, expected a whole number, {expected}")
    return number


def not_negative(name: str, value: object) -> float:
    """An argument as a float.

    Raises:
        InputError: it is no finite number, or negative.
    """
    if not isinstance(value, numbers.Real) or isinstance(value, bool) or not 0 <= float(value) < math.inf:
        raise InputError(f"`{name}` {_shown(value)}, expected a number that is not negative")
    return float(value)


def names(argument: str, value: object) -> list[str]:
    """An argument that takes one name or several, as a list.

    Raises:
        InputError: it holds something else.
    """
    found: list[Any] = [value] if isinstance(value, str) else list(value) if isinstance(value, Iterable) else [None]
    if not all(isinstance(name, str) for name in found):
        raise InputError(f"`{argument}` {_shown(value)}, expected names")
    return found


def _shown(value: object) -> str:
    return f"{value:,}" if type(value) is int else f"{value!r:.100}"
