"""Whether two fits are equal: every figure in them, NaN equal to NaN."""

import math
from typing import Any

import numpy as np


def same(one: Any, other: Any) -> bool:
    """Equality of what a fit is made of: arrays, tuples and dictionaries of them, numbers; NaN equals NaN."""
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, tuple | list):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return bool(one == other) or (isinstance(one, float) and math.isnan(one) and math.isnan(other))
