"""How good are predicted probabilities? Log-loss, Brier score, area under the ROC curve, and calibration."""

import numpy as np
from scipy.stats import rankdata

from irtjax.integration.prediction import LEAST_PREDICTED
from irtjax.types import Float, Int

BINS = 15
DIGITS = 12  # of predictions that are compared
METRICS = ("log_loss", "brier", "auc", "calibration_error")


def scores(right: Int[np.ndarray, " N"], probability: Float[np.ndarray, " N"]) -> dict[str, float]:
    """Scores of N predictions, by the names of `METRICS`; NaN where there are none, or one of them is NaN.

    * `log_loss`: -mean log of the probability of what happened, in nats. A probability below 1e-12 counts as 1e-12.
    * `brier`: mean squared difference of probability and answer (Brier 1950).
    * `auc`: probability that a right answer had the higher prediction of a right and a wrong one, ties counted half
      (Hanley and McNeil 1982); NaN where all answers are the same.
    * `calibration_error`: Σ_b n_b |share right in b - mean prediction in b| / N over the bins of `calibration_bins`
      (Naeini, Cooper and Hauskrecht 2015). By chance it is above 0, the more so the fewer predictions there are.

    Args:
        right: 1 or 0.
        probability: predicted, of 1.
    """
    if not right.size or np.isnan(probability).any():
        return dict.fromkeys(METRICS, np.nan)
    happened = np.where(right == 1, probability, 1 - probability)
    num_right = int(right.sum())
    num_pairs = num_right * (right.size - num_right)
    ranks = rankdata(np.round(probability, DIGITS))[right == 1].sum()  # what differs by rounding alone is tied
    _, predicted, observed = calibration_bins(right, probability)
    return {
        "log_loss": float(-np.log(np.maximum(happened, LEAST_PREDICTED)).mean()),
        "brier": float(((right - probability) ** 2).mean()),
        "auc": (ranks - num_right * (num_right + 1) / 2) / num_pairs if num_pairs else np.nan,
        "calibration_error": float(np.abs(observed - predicted).sum() / right.size),
    }


def calibration_bins(
    right: Int[np.ndarray, " N"], probability: Float[np.ndarray, " N"]
) -> tuple[Float[np.ndarray, " B"], Float[np.ndarray, " B"], Float[np.ndarray, " B"]]:
    """Sums in 15 bins of equal width: of predictions (but NaN), of their probabilities, and of right answers."""
    known = ~np.isnan(probability)
    right, probability = right[known], probability[known]
    bins = np.minimum((probability * BINS).astype(int), BINS - 1)
    weights = (np.ones(right.size), probability, right.astype(float))
    number, predicted, observed = (np.bincount(bins, weights=weight, minlength=BINS) for weight in weights)
    return number, predicted, observed
