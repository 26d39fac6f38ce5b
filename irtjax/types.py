"""Types of arrays in signatures.

Letters of shapes: J subjects, I items, D dimensions of ability, K parameters of an item, Q nodes, N examples,
C classes, S seeds, E epochs, G networks. Shapes are checked at run time in the tests only (`tests/conftest.py`).
"""

import jax
import numpy as np
from jaxtyping import Bool, Float, Int, Shaped, UInt

AnyArray = jax.Array | np.ndarray
Scalar = jax.Array | np.ndarray | np.generic | float

__all__ = ["AnyArray", "Bool", "Float", "Int", "Scalar", "Shaped", "UInt"]
