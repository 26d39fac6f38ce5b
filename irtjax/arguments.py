"""Checks of numbers and names that are passed as arguments, or are fields of dataclasses."""

import dataclasses
import inspect
import math
import numbers
import operator
import re
from collections.abc import Collection, Iterable
from typing import Any

from irtjax.errors import InputError

LARGEST_SEED = 2**31 - 1
LARGEST = 1_000_000  # of what is counted: numbers beyond it are slips, and would fail in the middle of a run


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


def bounded(
    default: Any,
    low: float | None = None,
    high: float | str | None = None,
    *,
    positive: bool = False,
    choices: Collection[str] = (),
    **more: Any,
) -> Any:
    """A field of a dataclass with what `out_of_bounds` compares its value with.

    Args:
        default: of the field.
        low: least value.
        high: greatest value, or the name of the field that has it; None for no bound, or `LARGEST` of integers.
        positive: whether the value must be above zero and finite.
        choices: the values allowed.
        more: further metadata of the field.
    """
    if high is None and low is not None and type(default) is int:
        high = LARGEST
    return dataclasses.field(
        default=default, metadata={"low": low, "high": high, "positive": positive, "choices": choices, **more}
    )


def out_of_bounds(owner: Any) -> Iterable[tuple[str, Any, str]]:
    """The fields of a dataclass whose values are not allowed: the name, the value, and what was expected."""
    for field in dataclasses.fields(owner):
        rule, value = field.metadata, getattr(owner, field.name)
        if "low" not in rule or value is None:
            continue
        low, high = rule["low"], rule["high"]
        if isinstance(high, str):
            high = getattr(owner, high)
        if rule["choices"] and value not in rule["choices"]:
            yield field.name, value, f"expected one of {', '.join(rule['choices'])}"
        # asked this way round, NaN is out of range too
        if low is not None and not (value >= low and (high is None or value <= high)):
            yield field.name, value, f"expected at least {low}" if high is None else f"expected {low} to {high}"
        if rule["positive"] and not 0 < value < math.inf:
            yield field.name, value, "expected a positive number"


def require_bounds(owner: Any) -> None:
    """For `__post_init__`.

    Raises:
        InputError: names the first field that is out of bounds.
    """
    for name, value, expected in out_of_bounds(owner):
        raise InputError(f"`{name}`={value}: {expected}")


def descriptions(owner: type) -> dict[str, str]:
    """What the docstring of a dataclass says of each field under `Attributes:`."""
    text = inspect.getdoc(owner) or ""
    entries = re.findall(r"^    (\w+): (.+(?:\n        .+)*)", text.partition("Attributes:")[2], re.MULTILINE)
    names = {field.name for field in dataclasses.fields(owner)}
    return {name: re.sub(r"\s+", " ", entry).rstrip(".") for name, entry in entries if name in names}


def _shown(value: object) -> str:
    return f"{value:,}" if type(value) is int else f"{value!r:.100}"
