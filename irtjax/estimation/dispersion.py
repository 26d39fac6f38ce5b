"""Whether the trials of a count agree more than chance: what the binomial model takes to be independent."""

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from irtjax.item_models.listing import CURVES_OF_COUNTS, WITH_ASYMPTOTES
from irtjax.item_models.protocol import PredictorParameters
from irtjax.responses.values import OnScales
from irtjax.types import Float

AT_A_TIME = 2**20  # counts
FEWEST = 30  # counts of several trials, fewer of which would not tell


def of_counts(
    responses: OnScales,
    models: Sequence[str],
    items: PredictorParameters,
    ability: Float[np.ndarray, "J D"],
) -> float | None:
    """Σ (k - n P)² / Σ n P (1 - P) over the counts of two trials and more, P at the estimates.

    About 1 where trials are independent given the ability, a little less with few subjects, whose abilities and items
    follow the counts. Errors of estimates are some √ of it too small. None where there are hardly any counts.

    Args:
        responses: counts among them.
        models: of the items.
        items: their parameters.
        ability: of the subjects.
    """
    chosen = np.isin(models, list(CURVES_OF_COUNTS))
    if responses.trials is None or not chosen.any():
        return None
    given = responses.answered(chosen)
    assert given.trials is not None
    several = given.trials > 1
    if several.sum() < FEWEST:
        return None
    slope, intercept = np.asarray(items.slope), np.asarray(items.intercept)
    asymptotes = expit(np.asarray(items.others).T) if set(models) & set(WITH_ASYMPTOTES) else None
    squares = variance = 0.0
    for at in np.array_split(np.flatnonzero(several), -(-int(several.sum()) // AT_A_TIME)):
        of, k, n = given.items[at], given.values[at], given.trials[at]
        p = expit((ability[given.subjects[at]] * slope[of]).sum(axis=1) + intercept[of])
        if asymptotes is not None:
            low, high = asymptotes[:, of]
            p = low + (high - low) * p
        squares, variance = squares + ((k - n * p) ** 2).sum(), variance + (n * p * (1 - p)).sum()
    return float(squares / variance) if variance > 0 else None
