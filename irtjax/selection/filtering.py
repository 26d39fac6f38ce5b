"""Data filtering: which training examples to keep, by item difficulty (Lalor, Wu and Yu 2019, section 4)."""

from typing import NamedTuple

import jax
import numpy as np

from irtjax.errors import InputError
from irtjax.training.trainer import Plan

STRATEGIES = ("AVI", "AVO", "UB", "LB", "PCUB", "PCLB", "random")


def ranking(strategy: str, difficulty: np.ndarray, percent_correct: np.ndarray, seed: int = 0) -> np.ndarray:
    """Training examples in the order in which a strategy takes them in as its threshold d moves.

    =======  ===================  =======================================
    AVI      keep |b| < d         average examples first
    AVO      keep |b| > d         extreme examples, easy or hard, first
    UB       keep b < d           easy examples first
    LB       keep b > d           hard examples first
    PCUB     keep pc < d          examples that few answer right first
    PCLB     keep pc > d          examples that most answer right first
    random   control              any order
    =======  ===================  =======================================

    The first k of the order are what the strategy keeps at the threshold that keeps k examples.

    Args:
        strategy: one of `STRATEGIES`.
        difficulty: (N,) b, relative to the mean ability of the crowd.
        percent_correct: (N,) pc, 0 to 1.
        seed: of the random order, which also decides among ties (many where few answered).

    Returns:
        (N,) indices.

    Raises:
        InputError: unknown strategy.
    """
    key = _key(strategy, difficulty, percent_correct)
    shuffled = np.random.default_rng(seed).permutation(difficulty.size)
    return shuffled[np.argsort(key[shuffled], kind="stable")]


def threshold(strategy: str, difficulty: np.ndarray, percent_correct: np.ndarray, kept: np.ndarray) -> float:
    """The threshold d at which a strategy keeps the examples `kept`, (K,) indices: the value of the last of them.

    NaN for the random choice. Examples at the threshold itself are all, some or one of those kept.
    """
    if strategy == "random":
        return float("nan")
    last = float(_key(strategy, difficulty, percent_correct)[kept].max())
    return -last if strategy in ("AVO", "LB", "PCLB") else last


def _key(strategy: str, difficulty: np.ndarray, percent_correct: np.ndarray) -> np.ndarray:
    """What a strategy sorts by, those it keeps first."""
    keys = {
        "AVI": np.abs(difficulty),
        "AVO": -np.abs(difficulty),
        "UB": difficulty,
        "LB": -difficulty,
        "PCUB": percent_correct,
        "PCLB": -percent_correct,
        "random": np.zeros_like(difficulty),
    }
    if strategy not in keys:
        raise InputError(f"unknown filtering strategy {strategy!r}, expected one of {', '.join(STRATEGIES)}")
    return keys[strategy]


class SubsetRow(NamedTuple):
    """What one network's plan is made of.

    Attributes:
        seed: of weights and minibatches; networks of equal seeds start from equal weights, so that strategies can be
            compared pair by pair.
        order: (N,) indices from `ranking`.
        size: examples kept.
        learning_rate: of its optimizer.
        width: hidden units that are not masked.
    """

    seed: jax.Array
    order: jax.Array
    size: jax.Array
    learning_rate: jax.Array
    width: jax.Array


def plan_subset(row: SubsetRow, labels: jax.Array) -> Plan:
    """A network trained on the first `size` examples of its order, with gold labels (N,)."""
    return Plan(jax.random.key(row.seed), row.order, row.size, labels, row.learning_rate, row.width)
