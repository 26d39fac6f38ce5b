"""Whether the trials of a count agree more than chance: what the binomial model takes to be independent."""

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from irtjax.item_models.listing import CURVES_OF_COUNTS, WITH_ASYMPTOTES
from irtjax.item_models.protocol import PredictorParameters
from irtjax.responses.scaled import ScaledResponses
from irtjax.types import Float

FEWEST = 30  # counts of several trials, fewer of which would not tell


def of_counts(
    responses: ScaledResponses,
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
    k, n = np.asarray(responses.values)[:, chosen], np.asarray(responses.trials)[:, chosen]
    p = expit(ability @ np.asarray(items.slope)[chosen].T + np.asarray(items.intercept)[chosen])
    if set(models) & set(WITH_ASYMPTOTES):
        low, high = expit(np.asarray(items.others)[chosen].T)
        p = low + (high - low) * p
    several = (k >= 0) & (n > 1)
    variance = (n * p * (1 - p))[several].sum()
    if several.sum() < FEWEST or not variance > 0:
        return None
    return float(((k - n * p)[several] ** 2).sum() / variance)
