"""The check of normal posteriors: the exact marginal likelihood of some subjects."""

import numpy as np

from irtjax.estimation.mml.estimate import Estimate
from irtjax.estimation.posteriors import posteriors
from irtjax.types import Int

MOST_SUBJECTS, FEWEST_SUBJECTS = 64, 8
RESPONSES = 2**22  # that the sample answered at most, unless that is less than the fewest subjects


def sampled_error(estimate: Estimate, values: Int[np.ndarray, "J I"]) -> float:
    """What exact integration would add to the log-likelihood of all subjects, by a sample of them, in nats; D = 1."""
    num_subjects, num_items = values.shape
    number = min(num_subjects, max(FEWEST_SUBJECTS, min(MOST_SUBJECTS, RESPONSES // num_items)))
    rows = np.linspace(0, num_subjects - 1, number).astype(int)
    exact = np.empty(number)
    near = estimate.ability[rows], estimate.ability_se[rows]
    for part in posteriors(estimate.items, values[rows], *estimate.population, near=near):
        exact[part.rows] = part.log_likelihood
    return float((exact - estimate.log_likelihoods[rows]).mean()) * num_subjects
