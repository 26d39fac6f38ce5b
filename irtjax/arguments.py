"""Checks of what is passed as arguments, or is in fields of dataclasses: its type by annotations, numbers and names."""

import dataclasses
import functools
import inspect
import itertools
import math
import numbers
import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

from irtjax.annotations import kinds_of
from irtjax.errors import InputError

LARGEST_SEED = 2**31 - 1
LARGEST = 1_000_000  # of what is counted: numbers beyond it are slips, and would fail in the middle of a run
P = ParamSpec("P")
T = TypeVar("T")


def checks_types(function: Callable[P, T]) -> Callable[P, T]:
    """A function that refuses arguments of other types than its annotations say, before it does anything.

    Numbers of NumPy are numbers; tuples, arrays and columns of pandas are lists, and lists are arrays. Shapes are not
    looked at. What is annotated as `Any`, a protocol or a type variable may be anything. It is not for functions that
    JAX traces: what they are called with has no value yet.

    The function raises an `InputError` that names the argument. What Python refuses, such as a wrong number of
    arguments, remains a `TypeError`.
    """
    parameters = inspect.signature(function).parameters.values()
    in_order = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    by_name = {one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> T:
        named = ((name, value) for name, value in kwargs.items() if name in by_name)
        _require_kinds(function, itertools.chain(zip(in_order, args, strict=False), named))
        return function(*args, **kwargs)

    return checked


def require_types(function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Refuses arguments that are for a function which is called later.

    Raises:
        InputError: names the first of another type than the function's annotation says.
    """
    _require_kinds(function, arguments.items())


def _require_kinds(owner: Any, values: Iterable[tuple[str, Any]]) -> None:
    kinds = kinds_of(owner)
    for name, value in values:
        if name in kinds and not kinds[name].allows(value):
            raise InputError(f"`{name}` {_shown(value)}, expected {kinds[name].text}")


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


def names(value: str | Collection[str]) -> list[str]:
    """An argument that takes one name or several, as a list."""
    return [value] if isinstance(value, str) else list(value)


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
        InputError: names the first field of another type than its annotation says, or that is out of bounds.
    """
    _require_kinds(type(owner), ((field.name, getattr(owner, field.name)) for field in dataclasses.fields(owner)))
    for name, value, expected in out_of_bounds(owner):
        raise InputError(f"`{name}`={value}: {expected}")


def descriptions(owner: type) -> dict[str, str]:
    """What the docstring of a dataclass says of each field under `Attributes:`."""
    text = inspect.getdoc(owner) or ""
    entries = re.findall(r"^    (\w+): (.+(?:\n        .+)*)", text.partition("Attributes:")[2], re.MULTILINE)
    names = {field.name for field in dataclasses.fields(owner)}
    return {name: re.sub(r"\s+", " ", entry).rstrip(".") for name, entry in entries if name in names}


def _shown(value: object) -> str:
    if type(value) is int:
        return f"{value:,}"
    short = type(value).__module__ in ("builtins", "numpy") and not getattr(value, "ndim", 0)
    return f"{value!r:.100}" if short else f"of type {type(value).__name__}"
