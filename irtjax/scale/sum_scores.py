"""Distribution of the number of right answers given the ability."""

import numpy as np


def score_distribution(p: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """P(S = s | θ) of the number S of right answers to I items, by the recursion of Lord and Wingersky (1984).

    Args:
        p: (Q, I) probabilities of a right answer.
        start: (s, Q) distribution of the score on other items, which these are added to.

    Returns:
        (I + 1, Q), or (s + I, Q) after `start`.
    """
    scores = np.ones((1, len(p))) if start is None else start
    for right in p.T:
        following = np.zeros((len(scores) + 1, len(right)))
        following[:-1] = scores * (1 - right)
        following[1:] += scores * right
        scores = following
    return scores


def rest_score_distributions(p: np.ndarray) -> np.ndarray:
    """P(S - y_i = s | θ) for each item i, the score on all others: (I, I, Q), item by score by node.

    By halves: what two halves of the items have in common, all that is outside both, is added once. That is
    I log₂ I additions of an item instead of I².

    Args:
        p: (Q, I) probabilities of a right answer.
    """
    num_items = p.shape[1]
    rest = np.empty((num_items, num_items, len(p)))

    def descend(low, high, others):
        if high - low == 1:
            rest[low] = others
            return
        middle = (low + high) // 2
        descend(low, middle, score_distribution(p[:, middle:high], others))
        descend(middle, high, score_distribution(p[:, low:middle], others))

    descend(0, num_items, np.ones((1, len(p))))
    return rest
