"""The check of normal posteriors: the exact marginal likelihood of some subjects."""

import numpy as np

from irtjax import processes
from irtjax.estimation.driver import Estimate
from irtjax.integration.posteriors import posteriors
from irtjax.responses.values import Values

MOST_SUBJECTS, FEWEST_SUBJECTS = 64, 8
RESPONSES = 2**22  # that the sample answered at most, unless that is less than the fewest subjects


def sampled_error(estimate: Estimate, values: Values, mine: slice = slice(None)) -> float:
    """What exact integration would add to the log-likelihood of all subjects, by a sample of them, in nats; D = 1.

    Args:
        estimate: of all items.
        values: responses (J, I).
        mine: the items whose responses this process has.
    """
    num_subjects, num_items = values.shape
    number = min(num_subjects, max(FEWEST_SUBJECTS, min(MOST_SUBJECTS, RESPONSES // num_items)))
    rows = np.linspace(0, num_subjects - 1, number).astype(int)
    exact = np.empty(number)
    near = estimate.ability[rows], estimate.ability_se[rows]
    items = range(*mine.indices(num_items))
    parts = [values[row : row + 1, items.start : items.stop] for row in rows]
    answers = processes.gather(np.concatenate(parts).T, items.start).T
    mean, sd = estimate.population
    for part in posteriors(estimate.items, answers, mean, sd, near=near):
        exact[part.rows] = part.log_likelihood
    return float((exact - estimate.log_likelihoods[rows]).mean()) * num_subjects
