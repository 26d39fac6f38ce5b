"""What trainings under several strategies come to: means over seeds with their intervals."""

import numpy as np
import pandas as pd
from scipy.stats import t


def interval(values: pd.Series | np.ndarray) -> float:
    """Half width of the 95% interval of a mean by Student's t; NaN for a single value."""
    values = np.asarray(values)
    if values.size < 2:
        return float("nan")
    return float(t.ppf(0.975, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size))
