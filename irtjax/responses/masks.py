"""Masked arrays: what is masked is missing."""

from typing import Any

import numpy as np

from irtjax.errors import InputError
from irtjax.storage.sources import one_line

MISSING: dict[str, Any] = {"f": np.nan, "O": None, "U": ""}  # by the kind of an array; of integers and booleans -1

KINDS = "biufOUS"  # of arrays that responses may come in


def unmasked(values: Any) -> Any:
    """A masked array of NumPy as one in which masked cells are missing: NaN, None, "" or -1; anything else as it is.

    Unsigned integers and booleans become signed integers, which -1 is one of.
    """
    if not isinstance(values, np.ma.MaskedArray):
        return values
    data, kind = np.asarray(values.data), values.dtype.kind
    if kind in "bu":
        data = data.astype(np.promote_types(data.dtype, np.int8))
    return np.where(np.ma.getmaskarray(values), MISSING.get(kind, -1), data)


def as_array(values: Any) -> np.ndarray:
    """Responses as an array of numbers, texts or objects, in which masked cells are missing.

    Raises:
        InputError: rows of other lengths, an object that becomes no array, or records, dates, complex numbers and
            others that are no responses.
    """
    array = _converted(unmasked(values))
    if array.dtype.name == "bfloat16":  # of JAX, which NumPy takes for bytes
        return array.astype(np.float32)
    if array.dtype.names:
        raise InputError("responses are records, expected numbers: make an array with one column of each item")
    if array.dtype.kind not in KINDS:
        raise InputError(f"responses of type {array.dtype}, expected numbers or texts")
    return array


def as_floats(values: Any) -> np.ndarray:
    """Numbers in float64, NaN where they are masked.

    Raises:
        InputError: an object that becomes no array, complex numbers, or something that is no number.
    """
    masked = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    array = _converted(values.data if masked is not None else values)
    if array.dtype.kind == "c":
        raise InputError(f"responses of type {array.dtype}, expected real numbers")
    try:
        floats = array.astype(float, copy=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"responses of type {array.dtype}, expected numbers ({error})") from error
    return floats if masked is None else np.where(masked, np.nan, floats)


def _converted(values: Any) -> np.ndarray:
    """As an array of NumPy.

    Raises:
        InputError: it does not become one.
    """
    try:
        return np.asarray(values)
    except Exception as error:  # of ragged lists, and whatever objects of other packages raise, such as of gradients
        kind = type(values).__name__
        if hasattr(values, "__array__"):
            raise InputError(
                f"responses of type {kind} become no array of NumPy ({one_line(error)}): convert them, a tensor by "
                ".detach().cpu().float().numpy()"
            ) from error
        raise InputError(f"responses of type {kind} are no rows of equal length ({error})") from error
