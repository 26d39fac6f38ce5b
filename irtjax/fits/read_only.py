"""Arrays that are handed out cannot be written to: a figure of a fit stays what was estimated."""

from typing import Any

import numpy as np


def read_only(value: Any) -> Any:
    """The same arrays, tuples and dictionaries of them, as views that refuse to be written to; all else as it is."""
    if isinstance(value, np.ndarray):
        view = value.view()
        view.setflags(write=False)
        return view
    if isinstance(value, dict):
        return {key: read_only(own) for key, own in value.items()}
    if isinstance(value, tuple):
        parts = map(read_only, value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value
