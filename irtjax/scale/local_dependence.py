"""Do two items share more than the ability explains? Correlations of residuals (Q3)."""

import numpy as np
import pandas as pd
from scipy.stats import norm

from irtjax.scale.multiple_tests import holm
from irtjax.types import Bool, Float

FEWEST = 4  # subjects that a correlation needs


def q3(residuals: Float[np.ndarray, "J I"], observed: Bool[np.ndarray, "J I"]) -> Float[np.ndarray, "I I"]:
    """Correlations of residuals of two items over the subjects that answered both (Yen 1984).

    Args:
        residuals: responses less what is expected at the estimated abilities.
        observed: which responses there are.

    Returns:
        NaN where fewer than four subjects answered both, or a residual does not vary.
    """
    seen = observed.astype(float)
    x = np.where(observed, residuals, 0.0)
    x = x - np.where(observed, x.sum(axis=0) / np.maximum(seen.sum(axis=0), 1), 0.0)
    n = seen.T @ seen
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (x.T @ seen) / n
        square = (x**2).T @ seen / n - mean**2
        found = (x.T @ x / n - mean * mean.T) / np.sqrt(square * square.T)
    return np.where((n >= FEWEST) & (square > 0) & (square.T > 0), found, np.nan)


def pair_table(
    correlations: Float[np.ndarray, "I I"], observed: Bool[np.ndarray, "J I"], item_ids: np.ndarray
) -> pd.DataFrame:
    """One row per pair, the most dependent first: `q3`, its excess over the mean of all pairs, and how sure that is.

    Without local dependence Q3 is about -1 / (I - 1) and not 0, as abilities follow the responses: what counts is by
    how much a pair differs from the mean (Christensen, Makransky and Horton 2017). Its p-value is by Fisher's z,
    (atanh Q3 - atanh mean) sqrt(n - 3), as if residuals were a normal sample.
    """
    first, second = np.triu_indices(len(correlations), 1)
    values = correlations[first, second]
    seen = observed.astype(float)
    n = (seen.T @ seen)[first, second]
    mean = np.nanmean(values) if np.isfinite(values).any() else np.nan
    with np.errstate(invalid="ignore", divide="ignore"):
        z = (np.arctanh(values) - np.arctanh(mean)) * np.sqrt(n - 3)
    p_value = 2 * norm.sf(np.abs(z))
    table = pd.DataFrame(
        {
            "first": item_ids[first],
            "second": item_ids[second],
            "num_subjects": n.astype(int),
            "q3": values,
            "q3_excess": values - mean,
            "p_value": p_value,
            "p_holm": holm(p_value),
        }
    )
    return table.iloc[np.argsort(-np.nan_to_num(np.abs(z), nan=-1.0), kind="stable")].reset_index(drop=True)
