"""The marginal log-likelihood at given item parameters, by one rule for whatever package they come from.

The rule is 1,201 equally spaced abilities in [-6, 6], weighted by the density of the standard normal distribution, the
weights divided by their sum, in float64. It is slower than an estimator's, and exact as long as no item is much steeper
than the spacing of 0.01.
"""

from typing import NamedTuple

import numpy as np

NODES = np.linspace(-6, 6, 1201)
CHUNK = 512  # subjects


class Items(NamedTuple):
    """Parameters of I items, each (I,): P = c + (d - c) σ(slope θ + intercept), c = `lower`, d = 1 - `slip`.

    The slip, not d, because 1 - d would be lost where d is close to 1.
    """

    slope: np.ndarray
    intercept: np.ndarray
    lower: np.ndarray
    slip: np.ndarray


def log_probabilities(items: Items, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log P and log(1 - P) for every ability and item, each (Q, I), without cancellation in either tail.

    With x = slope θ + intercept, P = c σ(-x) + d σ(x) and 1 - P = (1 - c) σ(-x) + (1 - d) σ(x): sums of what is
    positive, taken on the log scale.

    Args:
        items: of I items.
        theta: (Q,) abilities.
    """
    slope, intercept, lower, slip = (np.asarray(parameter, float) for parameter in items)
    x = theta[:, None] * slope + intercept
    log_s, log_not_s = -np.logaddexp(0, -x), -np.logaddexp(0, x)
    with np.errstate(divide="ignore"):  # an asymptote of 0 or 1 has no part in the sum
        right = np.logaddexp(np.log(lower) + log_not_s, np.log1p(-slip) + log_s)
        wrong = np.logaddexp(np.log1p(-lower) + log_not_s, np.log(slip) + log_s)
    return right, wrong


def log_likelihoods(items: Items, values: np.ndarray) -> np.ndarray:
    """Marginal log-likelihood of each subject, (J,), in nats.

    Args:
        items: of I items.
        values: (J, I) responses: 1 right, 0 wrong, negative missing.
    """
    log_weights = -(NODES**2) / 2
    log_weights -= np.logaddexp.reduce(log_weights)
    right, wrong = log_probabilities(items, NODES)
    chunks = []
    for start in range(0, len(values), CHUNK):
        y = values[start : start + CHUNK]
        joint = (y == 1).astype(float) @ right.T + (y == 0).astype(float) @ wrong.T + log_weights
        chunks.append(np.logaddexp.reduce(joint, axis=1))
    return np.concatenate(chunks)
