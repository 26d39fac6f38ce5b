"""Distribution of the number of right answers given the ability."""

import numpy as np

from irtjax.types import Float


def score_distribution(
    p: Float[np.ndarray, "Q I"], start: Float[np.ndarray, "S Q"] | None = None
) -> Float[np.ndarray, "_ Q"]:
    """P(S = s | θ) of the number S of right answers to I items, by the recursion of Lord and Wingersky (1984).

    Args:
        p: probabilities of a right answer.
        start: distribution of the score on other items, to which these items are added.

    Returns:
        One row per score: I + 1 rows, or S + I with `start`.
    """
    scores = np.ones((1, len(p))) if start is None else start
    for right in p.T:
        following = np.zeros((len(scores) + 1, len(right)))
        following[:-1] = scores * (1 - right)
        following[1:] += scores * right
        scores = following
    return scores


def rest_score_distributions(p: Float[np.ndarray, "Q I"]) -> Float[np.ndarray, "I I Q"]:
    """P(S - y_i = s | θ) for each item i, the distribution of the score on all other items: item by score by node.

    The items are halved again and again, and all items outside a half are added once for the whole half. That takes
    I log₂ I additions of an item instead of I².

    Args:
        p: probabilities of a right answer.
    """
    num_items = p.shape[1]
    rest = np.empty((num_items, num_items, len(p)))

    def descend(low: int, high: int, others: np.ndarray) -> None:
        if high - low == 1:
            rest[low] = others
            return
        middle = (low + high) // 2
        descend(low, middle, score_distribution(p[:, middle:high], others))
        descend(middle, high, score_distribution(p[:, low:middle], others))

    descend(0, num_items, np.ones((1, len(p))))
    return rest
