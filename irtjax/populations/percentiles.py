"""Where an ability stands among people."""

import numpy as np

from irtjax.types import Float

SAME = 1e-4  # logits within which abilities are equal: files round, and the same answers must have the same ability


def percentile_among(people: Float[np.ndarray, " P"], ability: Float[np.ndarray, " J"]) -> Float[np.ndarray, " J"]:
    """The percentage of people with a lower ability, plus half of those with the same.

    Args:
        people: abilities in any order; NaN for those who have none.
        ability: those to place among them.
    """
    known = np.sort(people[~np.isnan(people)])
    below = np.searchsorted(known, ability - SAME, side="left")
    not_above = np.searchsorted(known, ability + SAME, side="right")
    return 50 * (below + not_above) / known.size
