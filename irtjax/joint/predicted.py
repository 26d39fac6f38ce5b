"""What networks that predict difficulties say of items, and how close that is to what responses say."""

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from irtjax.fits.result import Z_95
from irtjax.joint.train import Predictions
from irtjax.types import Float, Shaped


def against_responses(
    said: Predictions, difficulty: Float[np.ndarray, " N"], error: Float[np.ndarray, " N"], *, predicts: bool
) -> dict[str, Float[np.ndarray, " S"]]:
    """How close each network's predictions are to difficulties, and its softmax uncertainty.

    Args:
        said: of S networks, about N items.
        difficulty: by the responses, in logits.
        error: its standard errors.
        predicts: whether the networks predict difficulties; else there is `spearman_doubt` alone.

    Returns:
        Rank correlations `spearman_doubt` of difficulty and 1 - confidence, and `spearman` of difficulty and its
        prediction; the root mean square error `rmse` in logits; and the `coverage` of 95% intervals.
    """
    columns = {"spearman_doubt": np.array([spearmanr(-row, difficulty).statistic for row in said.confidence])}
    if not predicts:
        return columns
    off = said.difficulty - difficulty
    columns["spearman"] = np.array([spearmanr(row, difficulty).statistic for row in said.difficulty])
    columns["rmse"] = np.sqrt((off**2).mean(1))
    columns["coverage"] = (np.abs(off) < Z_95 * np.hypot(said.difficulty_sd, error)).mean(1)
    return columns


def outside_scores(said: Predictions, *, predicts: bool) -> dict[str, Float[np.ndarray, "S N"]]:
    """What may be larger for out-of-distribution examples."""
    scores = {"doubt": 1 - said.confidence}
    return scores | ({"difficulty": said.difficulty, "difficulty_sd": said.difficulty_sd} if predicts else {})


def together(said: Predictions, item_ids: Shaped[np.ndarray, " N"]) -> pd.DataFrame:
    """What the networks say together of each item; variances within and between networks add up."""
    within, between = (said.difficulty_sd**2).mean(0), said.difficulty.var(0)
    return pd.DataFrame(
        {
            "item_id": item_ids,
            "predicted": said.difficulty.mean(0),
            "predicted_sd": np.sqrt(within + between),
            "doubt": 1 - said.confidence.mean(0),
        }
    )
