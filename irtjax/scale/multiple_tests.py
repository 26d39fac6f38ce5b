"""Adjustment of p-values for many tests at once."""

import numpy as np

from irtjax.types import Float


def holm(p_values: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Adjusted p-values of Holm (1979); NaN stands for a test that could not be made, and does not count.

    The k-th smallest of N p-values becomes the largest of (N - l + 1) p_l over l ≤ k, and at most 1.
    """
    adjusted, made = np.full(p_values.shape, np.nan), np.flatnonzero(np.isfinite(p_values))
    ascending = made[np.argsort(p_values[made])]
    adjusted[ascending] = np.maximum.accumulate(p_values[ascending] * np.arange(len(made), 0, -1))
    return np.minimum(adjusted, 1)
