"""Distribution of the sum of the responses to items, right/wrong ones or of categories 0 … K, given the ability."""

from collections.abc import Iterator

import numpy as np

from irtjax.types import Float, Int


def of_right(p: Float[np.ndarray, "Q I"]) -> Float[np.ndarray, "Q I 2"]:
    """Probabilities of the two categories of right/wrong items."""
    return np.stack([1 - p, p], axis=2)


def sum_distribution(
    p: Float[np.ndarray, "Q I C"], top: Int[np.ndarray, " I"], start: np.ndarray | None = None
) -> Float[np.ndarray, "_ Q"]:
    """P(S = s | θ) of the sum S of categories (Thissen, Pommerich, Billeaud and Williams 1995).

    Of right/wrong items it is the recursion of Lord and Wingersky (1984).

    Args:
        p: probabilities of the categories.
        top: (I,) the highest category of each item; those beyond it do not count.
        start: distribution of the sum over other items, one row per sum, to which these items are added.

    Returns:
        One row per sum, from 0 on.
    """
    sums = np.ones((1, len(p))) if start is None else start
    for categories, highest in zip(p.transpose(1, 2, 0), top, strict=True):
        following = np.zeros((len(sums) + int(highest), sums.shape[1]))
        for k in range(int(highest) + 1):
            following[k : k + len(sums)] += sums * categories[k]
        sums = following
    return sums


def rest_distributions(
    p: Float[np.ndarray, "Q I C"], top: np.ndarray
) -> Iterator[tuple[int, Float[np.ndarray, "_ Q"]]]:
    """Each item i, in order, and P(S - y_i = s | θ), the distribution of the sum over all other items.

    The items are halved again and again, and all items outside a half are added once for the whole half. That takes
    I log₂ I additions of an item instead of I².

    Args:
        p: probabilities of the categories.
        top: (I,) the highest category of each item.
    """

    def descend(low: int, high: int, others: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        if high - low == 1:
            yield low, others
            return
        middle = (low + high) // 2
        yield from descend(low, middle, sum_distribution(p[:, middle:high], top[middle:high], others))
        yield from descend(middle, high, sum_distribution(p[:, low:middle], top[low:middle], others))

    yield from descend(0, p.shape[1], np.ones((1, len(p))))
