"""Adjustment of p-values for many tests at once."""

import numpy as np
from statsmodels.stats.multitest import multipletests

from irtjax.types import Float


def holm(p_values: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Adjusted p-values of Holm (1979); NaN stands for a test that could not be made, and does not count."""
    adjusted, made = np.full(p_values.shape, np.nan), np.isfinite(p_values)
    if made.any():
        adjusted[made] = multipletests(p_values[made], method="holm")[1]
    return adjusted
