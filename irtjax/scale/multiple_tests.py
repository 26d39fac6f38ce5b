"""Many tests at once."""

import numpy as np
from statsmodels.stats.multitest import multipletests


def holm(p_values: np.ndarray) -> np.ndarray:
    """Adjusted p-values of Holm (1979); NaN, for tests that could not be made, stays and does not count."""
    p_values = np.asarray(p_values, float)
    adjusted, made = np.full(p_values.shape, np.nan), np.isfinite(p_values)
    if made.any():
        adjusted[made] = multipletests(p_values[made], method="holm")[1]
    return adjusted
