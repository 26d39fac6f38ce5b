"""Warnings that a fit owes its user: no convergence, and a scale that does not measure what it seems to."""

import warnings

import numpy as np

from irtjax.inference.result import Fit

BLOCK = 4096
MANY = 0.1  # share of items


class FitWarning(UserWarning):
    """A fit that has not converged, or whose scale is doubtful; the message says what to do."""


def item_rest_correlations(values: np.ndarray) -> np.ndarray:
    """Correlation (I,) of each item with the share right of all other items, over the subjects who answered it.

    Args:
        values: (J, I) int8; -1 missing.

    Returns:
        NaN where an item or the rest does not vary.
    """
    observed_total = (values >= 0).sum(axis=1)[:, None].astype(float)
    right_total = (values == 1).sum(axis=1)[:, None].astype(float)
    correlations = []
    for at in range(0, values.shape[1], BLOCK):
        block = values[:, at : at + BLOCK]
        weight, y = (block >= 0).astype(float), (block == 1).astype(float)
        with np.errstate(invalid="ignore", divide="ignore"):
            rest = np.where(weight > 0, (right_total - y) / (observed_total - weight), 0.0)
            rest, weight = np.nan_to_num(rest), np.where(np.isfinite(rest), weight, 0.0)
            number = weight.sum(0)
            y_mean, rest_mean = (weight * y).sum(0) / number, (weight * rest).sum(0) / number
            y_centred, rest_centred = weight * (y - y_mean), weight * (rest - rest_mean)
            spread = np.sqrt((y_centred**2).sum(0) * (rest_centred**2).sum(0))
            correlations.append((y_centred * rest_centred).sum(0) / spread)
    return np.concatenate(correlations)


def warn(fit: Fit, stacklevel: int = 3) -> None:
    """Warns of what is doubtful about a fit."""
    if not fit.converged:
        warnings.warn(
            f"not converged after {fit.iterations} iterations: allow more, or ask whether the data support the model",
            FitWarning,
            stacklevel=stacklevel,
        )
    if fit.parameters.slope.shape[1] > 1:
        return
    spacing = fit.details.get("node_spacing")
    width = np.median(fit.ability_se)
    if spacing is not None and width < spacing:
        warnings.warn(
            f"the posteriors of ability (median standard deviation {width:.3f}) are narrower than the spacing of the "
            f"nodes ({spacing:.3f}), and snapped to them: leave num_nodes out, or raise it",
            FitWarning,
            stacklevel=stacklevel,
        )
    num_items = fit.responses.num_items
    # negative beyond two standard errors: small samples have negative correlations by chance
    noise = 2 / np.sqrt(fit.responses.num_subjects)
    negative_rest = int((item_rest_correlations(fit.responses.values) < -noise).sum())
    slope_se = fit.item_columns.get("discrimination_se", np.zeros(num_items))
    negative_slope = int((np.asarray(fit.parameters.slope)[:, 0] < -2 * slope_se).sum())
    if max(negative_rest, negative_slope) > MANY * num_items:
        warnings.warn(
            f"of {num_items} items {negative_rest} correlate negatively with the rest and {negative_slope} have a "
            "negative slope: one dimension does not mean 'more right answers' here; fit groups of items on their own "
            "(such as each gold label), or the 1pl",
            FitWarning,
            stacklevel=stacklevel,
        )
