"""What annotations allow: the types of arguments and fields, by what functions and classes say of them."""

import functools
import inspect
import itertools
import numbers
import operator
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

MOST_LOOKED_AT = 1000  # entries of a list or dictionary: of millions each would take longer than the call


class Kind(NamedTuple):
    """What an annotation allows.

    Attributes:
        said: in messages, such as "a name"; each alternative is an entry.
        allows: whether a value is of the kind.
    """

    said: tuple[str, ...]
    allows: Callable[[Any], bool]

    @property
    def text(self) -> str:
        """All alternatives."""
        *others, last = self.said
        return f"{', '.join(others)} or {last}" if others else last


@functools.cache  # at the first call: annotations take longer to read than the library to import
def kinds_of(owner: Any) -> dict[str, Kind]:
    """What the annotations of a function or a class allow, by name; without those that allow anything."""
    found = {name: _kind(annotation) for name, annotation in get_type_hints(inspect.unwrap(owner)).items()}
    return {name: kind for name, kind in found.items() if kind is not None}


def _kind(annotation: Any) -> Kind | None:
    """What an annotation allows; None for anything."""
    kind, parts = get_origin(annotation) or annotation, get_args(annotation)
    if kind in (Union, UnionType):
        return _either([_kind(part) for part in parts])
    if kind is Literal:
        return Kind(
            tuple(map(repr, parts)), lambda value: any(isinstance(value, type(one)) and value == one for one in parts)
        )
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind is tuple and parts and parts[-1] is not ...:
        return _row(list(map(_kind, parts)))
    if kind in (list, tuple, Sequence, Collection):
        return _list(kind, _kind(parts[0]) if parts else None)
    if kind in (dict, Mapping):
        return _dictionary(*map(_kind, parts or (Any, Any)))
    if hasattr(kind, "array_type") or getattr(kind, "__name__", "") in ("ndarray", "Array"):  # of jaxtyping, NumPy, JAX
        return Kind(("an array",), _is_array)
    if kind is Any or not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return None
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    return Kind((f"{article} {kind.__name__}",), lambda value: isinstance(value, kind))


def _either(kinds: Sequence[Kind | None]) -> Kind | None:
    known = [kind for kind in kinds if kind is not None]
    if len(known) < len(kinds):
        return None
    said = list(dict.fromkeys(itertools.chain.from_iterable(kind.said for kind in known)))
    for narrow, wide in (("a name", "a path"), ("a whole number", "a number")):
        if {narrow, wide} <= set(said):
            said.remove(narrow)
    if "None" in said:
        said.append(said.pop(said.index("None")))
    return Kind(tuple(said), lambda value: any(kind.allows(value) for kind in known))


def _list(kind: type, entry: Kind | None) -> Kind:
    def allows(value: Any) -> bool:
        if not _is_list(value) or (kind is not Collection and not hasattr(value, "__getitem__")):
            return False
        return entry is None or (getattr(value, "ndim", 1) == 1 and all(map(entry.allows, _some(value))))

    return Kind((f"a list of {_plural(entry)}" if entry else "a list",), allows)


def _row(entries: Sequence[Kind | None]) -> Kind:
    def allows(value: Any) -> bool:
        if not _is_list(value) or len(value) != len(entries):
            return False
        return all(kind is None or kind.allows(one) for kind, one in zip(entries, value, strict=True))

    return Kind(("a pair" if len(entries) == 2 else f"a list of {len(entries)}",), allows)


def _dictionary(key: Kind | None, entry: Kind | None) -> Kind:
    def allows(value: Any) -> bool:
        if not isinstance(value, Mapping):
            return False
        return (key is None or all(map(key.allows, _some(value)))) and (
            entry is None or all(map(entry.allows, _some(value.values())))
        )

    return Kind(("a dictionary",), allows)


def _some(values: Any) -> Iterable[Any]:
    """The first entries; one of an array, whose entries are all of the same type."""
    alike = getattr(getattr(values, "dtype", None), "kind", "O") != "O"
    return itertools.islice(values, 1 if alike else MOST_LOOKED_AT)


def _is_list(value: Any) -> bool:
    sized = hasattr(value, "__len__") and hasattr(value, "__iter__") and getattr(value, "ndim", 1) > 0
    return sized and not isinstance(value, str | bytes | Mapping | type)


def _is_array(value: Any) -> bool:
    return (
        _is_list(value) or isinstance(value, numbers.Number) or hasattr(value, "__array__") or hasattr(value, "dtype")
    )


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool) or _is_scalar(value, "b")


def _is_whole(value: Any) -> bool:
    try:
        operator.index(value)
    except TypeError:
        return False
    return not _is_truth(value)


def _is_number(value: Any) -> bool:
    return not _is_truth(value) and (isinstance(value, numbers.Real) or _is_scalar(value, "iuf"))


def _is_scalar(value: Any, kinds: str) -> bool:
    """Whether it is a scalar of NumPy or JAX, or an array without dimensions, of these kinds."""
    return getattr(value, "ndim", None) == 0 and getattr(getattr(value, "dtype", None), "kind", "") in kinds


_PLAIN = {
    NoneType: Kind(("None",), lambda value: value is None),
    bool: Kind(("True", "False"), _is_truth),
    int: Kind(("a whole number",), _is_whole),
    float: Kind(("a number",), _is_number),
    str: Kind(("a name",), lambda value: isinstance(value, str)),
    Callable: Kind(("a function",), callable),
    Iterable: Kind(("a list",), lambda value: isinstance(value, Iterable) and not isinstance(value, str | bytes)),
    Path: Kind(("a path",), lambda value: isinstance(value, os.PathLike)),
    os.PathLike: Kind(("a path",), lambda value: isinstance(value, os.PathLike)),
}


def _plural(kind: Kind) -> str:
    return kind._replace(said=tuple(f"{one.removeprefix('a ')}s" if one[:2] == "a " else one for one in kind.said)).text
