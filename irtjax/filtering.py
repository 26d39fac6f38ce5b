"""Data filtering: which training examples to keep, by item difficulty (Lalor, Wu and Yu 2019, section 4)."""

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.errors import InputError
from irtjax.training import Plan

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
    shuffled = np.random.default_rng(seed).permutation(difficulty.size)
    return shuffled[np.argsort(keys[strategy][shuffled], kind="stable")]


def plan_subsets(orders: np.ndarray, sizes: np.ndarray, seeds: np.ndarray, labels: np.ndarray) -> Plan:
    """Training plans of J networks: the first `sizes[j]` examples of `orders[j]`, with gold labels.

    Args:
        orders: (J, N) indices from `ranking`.
        sizes: (J,) examples kept.
        seeds: (J,) of weights and minibatches; equal seeds start from equal weights, so that strategies can be
            compared pair by pair.
        labels: (N,) gold labels.
    """
    labels = jnp.asarray(labels)
    return Plan(
        key=jax.vmap(jax.random.key)(jnp.asarray(seeds, jnp.uint32)),
        order=jnp.asarray(orders, jnp.int32),
        size=jnp.asarray(sizes, jnp.int32),
        labels=jnp.broadcast_to(labels, (len(sizes), labels.size)),
    )
