"""Warnings about a fit: no convergence, or a scale that does not measure what it seems to."""

import warnings

import numpy as np

from irtjax.estimation.result import Fit
from irtjax.responses.matrix import counts
from irtjax.types import Float, Int

RESPONSES = 2**21  # worked on at a time, in float64
MANY = 0.1  # share of items that speak against one dimension
REPRODUCED = 0.95  # correlation of difficulties between samples
LOGITS = 6.0  # difficulties beyond it count as this
STEEP = 20.0  # a slope that no real item has


class FitWarning(UserWarning):
    """A fit that has not converged, or whose scale is doubtful; the message says what to do."""


def item_rest_correlations(values: Int[np.ndarray, "J I"]) -> Float[np.ndarray, " I"]:
    """Correlation (I,) of each item with the share right of all other items, over the subjects who answered it.

    Args:
        values: (J, I) int8; -1 missing.

    Returns:
        NaN where an item or the rest does not vary.
    """
    right_total, observed_total = (total.astype(float) for total in counts(values, axis=1))
    several = observed_total > 1  # others have no rest
    unit = np.divide(1.0, observed_total - 1, out=np.zeros_like(observed_total), where=several)
    share = right_total * unit  # share right of the rest, plus the item's own part y · unit
    rows = np.stack([several, share, share**2, unit, share * unit, unit**2]).astype(float)
    correlations, step = [], max(1, RESPONSES // values.shape[0])
    for at in range(0, values.shape[1], step):
        block = values[:, at : at + step]
        number, rest, rest_square = rows[:3] @ (block >= 0)
        right, right_share, _, right_unit, right_both, right_square = rows @ (block == 1)
        together = right_share - right_unit
        rest, rest_square = rest - right_unit, rest_square - 2 * right_both + right_square
        with np.errstate(invalid="ignore", divide="ignore"):
            covariance = together - right * rest / number
            spread = np.sqrt((right - right**2 / number) * (rest_square - rest**2 / number))
            correlations.append(np.where(spread > 1e-9 * number, covariance / spread, np.nan))
    return np.concatenate(correlations)


def difficulty_reliability(difficulty: Float[np.ndarray, " I"], standard_error: Float[np.ndarray, " I"]) -> float:
    """Expected correlation of difficulties between two samples: 1 - mean squared standard error / variance."""
    b, se = np.clip(difficulty, -LOGITS, LOGITS), np.minimum(np.nan_to_num(standard_error, nan=LOGITS), LOGITS)
    return float(max(0.0, 1 - np.mean(se**2) / max(b.var(), 1e-12)))


def warn(fit: Fit, stacklevel: int = 3) -> None:
    """Warns of what is doubtful about a fit, as a `FitWarning` that points at the caller `stacklevel` frames up."""
    if not fit.converged:
        warnings.warn(
            f"not converged after {fit.iterations} iterations: allow more, or ask whether the data support the model",
            FitWarning,
            stacklevel=stacklevel,
        )
    asymptotes = {"guessing", "upper"} & set(fit.item_columns)
    if asymptotes and "difficulty" in fit.item_columns and np.isfinite(fit.difficulty_se).any():
        reliability = difficulty_reliability(fit.difficulty, fit.difficulty_se)
        if reliability < REPRODUCED:
            warnings.warn(
                "the data hardly support asymptotes: by their standard errors, difficulties from other responses would "
                f"correlate with these at about {reliability:.2f} only; use the 2pl, or many more subjects",
                FitWarning,
                stacklevel=stacklevel,
            )
    steep = np.abs(np.asarray(fit.parameters.slope)).max(axis=1) > STEEP
    if steep.any():
        warnings.warn(
            f"{steep.sum()} items, such as '{fit.responses.item_ids[steep][0]}', separate the subjects so sharply that "
            f"their slope (over {STEEP:.0f}) may have no finite maximum: give a `slope_prior`",
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
            f"nodes ({spacing:.3f}), and snapped to them: leave `num_nodes` out, or raise it",
            FitWarning,
            stacklevel=stacklevel,
        )
    num_items = fit.responses.num_items
    # negative beyond two standard errors: small samples have negative correlations by chance
    noise = 2 / np.sqrt(fit.responses.num_subjects)
    negative_rest = int((item_rest_correlations(fit.responses.values) < -noise).sum())
    slope_se = np.nan_to_num(fit.item_columns.get("discrimination_se", np.zeros(num_items)))
    negative_slope = int((np.asarray(fit.parameters.slope)[:, 0] < -2 * slope_se).sum())
    if max(negative_rest, negative_slope) > MANY * num_items:
        warnings.warn(
            f"of {num_items} items {negative_rest} correlate negatively with the rest and {negative_slope} have a "
            "negative slope: one dimension does not mean 'more right answers' here; fit groups of items on their own "
            "(such as each gold label), or the 1pl",
            FitWarning,
            stacklevel=stacklevel,
        )
