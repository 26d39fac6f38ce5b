"""One digest for everything that is compared with what it was in an earlier run."""

import hashlib
from typing import Any

import jax
import numpy as np


def digest(*parts: Any) -> str:
    """A SHA-256 digest of trees of arrays, numbers and texts; leaves of other types count by their `repr`."""
    found = hashlib.sha256()
    leaves, structure = jax.tree.flatten(parts)
    found.update(repr(structure).encode())
    for leaf in leaves:
        if isinstance(leaf, (np.ndarray, np.generic, jax.Array)):
            found.update(repr((leaf.shape, str(leaf.dtype))).encode())
            found.update(np.ascontiguousarray(leaf).reshape(-1).view(np.uint8).data)
        else:
            found.update(repr(leaf).encode())
    return found.hexdigest()
