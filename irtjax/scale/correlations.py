"""Correlations of responses as they are given, of the subjects who gave both."""

import numpy as np

from irtjax.types import Float


def correlations_of(values: Float[np.ndarray, "J I"]) -> Float[np.ndarray, "I I"]:
    """Pearson correlations of items, over the subjects who answered both; 0 where an item does not vary among these.

    Of right and wrong answers it is phi.

    Args:
        values: right (1) and wrong (0), or numbers of grades; NaN where missing.
    """
    seen = (~np.isnan(values)).astype(float)
    x = np.nan_to_num(values - np.nanmean(values, axis=0))
    n = np.maximum(seen.T @ seen, 1)
    mean, square = x.T @ seen / n, (x**2).T @ seen / n
    covariance = x.T @ x / n - mean * mean.T
    spread = np.sqrt(np.maximum(square - mean**2, 0.0))
    product = spread * spread.T
    return np.divide(covariance, product, out=np.zeros_like(product), where=product > 1e-12)
