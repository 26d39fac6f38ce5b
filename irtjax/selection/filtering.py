"""Data filtering: which training examples to keep, by item difficulty (Lalor, Wu and Yu 2019, section 4)."""

from collections.abc import Callable

import numpy as np

from irtjax.choices import of_each
from irtjax.errors import InputError
from irtjax.selection import choices
from irtjax.selection.choices import FILTERS
from irtjax.types import AnyArray, Float, Int

CENTRES: dict[str, Callable[[np.ndarray], float]] = of_each(
    choices.CENTRES,
    {
        "difficulty": lambda difficulty: float(difficulty.mean()),
        "median": lambda difficulty: float(np.median(difficulty)),
        "ability": lambda difficulty: 0.0,
        "midpoint": lambda difficulty: float(difficulty.mean()) / 2,
    },
)


def centre_of(difficulty: Float[AnyArray, " N"], centre: str) -> float:
    """The difficulty of an average example, in logits.

        ==========  ============================================================
        difficulty  the mean difficulty
        median      the median difficulty
        ability     0, the mean ability of the crowd
        midpoint    halfway between mean ability and mean difficulty
        ==========  ============================================================

    The studies filter around b = 0 under vague priors (Lalor, Wu and Yu 2019), which with abilities of mean 0 is near
    the mean ability, as in fits here. Where the means of abilities and difficulties are both free and both 0 when a
    fit by gradients starts, they end up with the midpoint at 0.

    Args:
        difficulty: (N,) b, relative to the mean ability of the crowd.
        centre: one of `CENTRES`.

    Raises:
        InputError: unknown centre.
    """
    if centre not in CENTRES:
        raise InputError(f"unknown centre {centre!r}, expected one of {', '.join(CENTRES)}")
    return CENTRES[centre](np.asarray(difficulty))


def ranking(
    strategy: str,
    difficulty: Float[AnyArray, " N"],
    percent_correct: Float[AnyArray, " N"],
    seed: int = 0,
    centre: str = "difficulty",
) -> Int[np.ndarray, " N"]:
    """Training examples in the order in which a strategy takes them in as its threshold d moves.

        =======  ===================  =======================================
        AVI      keep |b - c| < d     average examples first
        AVO      keep |b - c| > d     extreme examples, easy or hard, first
        UB       keep b < d           easy examples first
        LB       keep b > d           hard examples first
        PCUB     keep pc < d          examples that few answer right first
        PCLB     keep pc > d          examples that most answer right first
        random   control              any order
        =======  ===================  =======================================

    The first k of the order are what the strategy keeps at the threshold that keeps k examples.

    Args:
        strategy: one of `FILTERS`.
        difficulty: (N,) b, relative to the mean ability of the crowd.
        percent_correct: (N,) pc, 0 to 1.
        seed: of the random order, which also decides among ties (many where few answered).
        centre: what c is, see `centre_of`.

    Returns:
        (N,) indices.

    Raises:
        InputError: unknown strategy or centre.
    """
    key = _key(strategy, difficulty, percent_correct, centre)
    shuffled = np.random.default_rng(seed).permutation(difficulty.size)
    return shuffled[np.argsort(key[shuffled], kind="stable")]


def within_classes(order: Int[AnyArray, " N"], labels: Int[AnyArray, " N"]) -> Int[np.ndarray, " N"]:
    """An order in which the first k, for every k, have as much of each class as all examples have, to within one.

    Within a class the order stays: a strategy then chooses among the examples of a class, and not among classes
    (Lalor 2020, section 5.4.3). Example r = 0, 1, … of the n of its class comes at (r + 1/2) / n.

    Args:
        order: (N,) indices, as from `ranking`.
        labels: (N,) classes of the examples.
    """
    order = np.asarray(order)
    _, of_class, sizes = np.unique(np.asarray(labels)[order], return_inverse=True, return_counts=True)
    by_class = np.argsort(of_class, kind="stable")
    rank = np.empty(order.size)
    rank[by_class] = np.arange(order.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return order[np.argsort((rank + 0.5) / sizes[of_class], kind="stable")]


def drawn(
    difficulty: Float[AnyArray, " N"], difficulty_se: Float[AnyArray, " N"], seed: int
) -> Float[np.ndarray, " N"]:
    """Difficulties (N,) drawn from their normal posteriors: what a strategy keeps then differs by seed (Thompson 1933).

    Where standard errors are as large as the differences between items, one choice of examples is one of many.
    """
    return np.asarray(difficulty) + np.asarray(difficulty_se) * np.random.default_rng(seed).normal(
        size=np.shape(difficulty)
    )


def number_kept(share: float, num_examples: int) -> int:
    """How many of the examples a strategy keeps: `share` (0 to 1) of them, rounded, at least 1."""
    return max(round(share * num_examples), 1)


def threshold(
    strategy: str,
    difficulty: Float[AnyArray, " N"],
    percent_correct: Float[AnyArray, " N"],
    kept: Int[AnyArray, " K"],
    centre: str = "difficulty",
) -> float:
    """The threshold d at which a strategy keeps the examples `kept`, (K,) indices: the value of the last of them.

    NaN for the random choice. Examples at the threshold itself are all, some or one of those kept.
    """
    if strategy == "random":
        return float("nan")
    last = float(_key(strategy, difficulty, percent_correct, centre)[kept].max())
    return -last if strategy in ("AVO", "LB", "PCLB") else last


def _key(strategy: str, difficulty: AnyArray, percent_correct: AnyArray, centre: str) -> np.ndarray:
    """What a strategy sorts by, those it keeps first."""
    distance = np.abs(difficulty - centre_of(difficulty, centre))
    keys = {
        "AVI": distance,
        "AVO": -distance,
        "UB": difficulty,
        "LB": -difficulty,
        "PCUB": percent_correct,
        "PCLB": -percent_correct,
        "random": np.zeros_like(difficulty),
    }
    if strategy not in keys:
        raise InputError(f"unknown filtering strategy {strategy!r}, expected one of {', '.join(FILTERS)}")
    return np.asarray(keys[strategy])
