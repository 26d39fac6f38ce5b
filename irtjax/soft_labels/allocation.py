"""Which item should the next label be asked for? Labels spread over items or classes, or spent where needed most.

Lalor (2020, section 4.4.3) asks whether a choice of labels that balances classes, or goes by uncertainty, needs fewer.
"""

import heapq
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from scipy.special import digamma
from scipy.stats import entropy

from irtjax.arguments import checks_types, whole_number
from irtjax.errors import InputError
from irtjax.soft_labels.labels import DIVERGENCES, soft_labels
from irtjax.types import AnyArray, Float, Int

ADDED = 0.5  # to each class, as Jeffreys' prior of shares has it


def expected_divergence(counts: Float[AnyArray, "*B C"]) -> Float[np.ndarray, "*B"]:
    r"""How far the soft label of an item is expected to be from its true shares, in nats.

    .. math::
        E\, KL(p \| \hat p) = \sum_y \hat p_y \left(\psi(a_y + 1) - \psi(A + 1) - \log \hat p_y\right),
        \quad \hat p_y = a_y / A

    under the posterior p ~ Dirichlet(a), with a the counts and ½, and A their sum: it is the mutual information of p
    and the next label.

    Args:
        counts: (..., C) labels of each class.
    """
    a = np.asarray(counts, float) + ADDED
    total = a.sum(-1, keepdims=True)
    share = a / total
    return (share * (digamma(a + 1) - digamma(total + 1) - np.log(share))).sum(-1)


def expected_gain(counts: Float[AnyArray, "*B C"]) -> Float[np.ndarray, "*B"]:
    """By how much one more label is expected to lower `expected_divergence`, in nats.

    Args:
        counts: (..., C) labels of each class.
    """
    counts = np.asarray(counts, float)
    share = (counts + ADDED) / (counts + ADDED).sum(-1, keepdims=True)
    after = expected_divergence(counts[..., None, :] + np.eye(counts.shape[-1]))
    return expected_divergence(counts) - (share * after).sum(-1)


def entropy_so_far(counts: Float[AnyArray, "*B C"]) -> Float[np.ndarray, "*B"]:
    """Entropy of the soft label, (counts + ½) / their sum, in nats.

    Args:
        counts: (..., C) labels of each class.
    """
    return entropy(np.asarray(counts, float) + ADDED, axis=-1)


def class_balance(counts: Float[AnyArray, "*B C"], first: Int[AnyArray, " C"]) -> Float[np.ndarray, "*B"]:
    """Minus the labels of an item times the items of its class: if equal over items, classes have equally many labels.

    Args:
        counts: (..., C) labels of each class; the most frequent is the class of the item.
        first: (C,) items of each class, by the first label of each item.
    """
    counts = np.asarray(counts)
    return -counts.sum(-1) * np.maximum(first, 1)[counts.argmax(-1)].astype(float)


# What the next label goes to: the item of the largest value, by its labels so far and the first labels of all items.
CHOICES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "even": lambda counts, first: -counts.sum(-1),
    "expected gain": lambda counts, first: expected_gain(counts),
    "entropy": lambda counts, first: entropy_so_far(counts),
    "balanced classes": class_balance,
}


@checks_types
def divergence_by_budget(
    counts: Int[AnyArray, "I C"], budgets: Sequence[int], *, runs: int = 10, seed: int = 0
) -> pd.DataFrame:
    """How far soft labels are from those of all people, against how many labels an item has on average.

    In each run the labels of an item come in random order, without replacement, the same for each way to choose. Each
    item has one to begin with; every further label goes to the item of the largest value in `CHOICES`.

    Args:
        counts: (I, C) labels of all people.
        budgets: mean numbers of labels per item, up to the number that the item with fewest has.
        runs: of the draw.
        seed: of the runs.

    Returns:
        One row per run, way to choose and budget: `run, choice, labels` and `kl`, the mean over items of KL(all ‖ those
        drawn) in nats, half a label added to each class.

    Raises:
        InputError: budgets that are none, or runs below 1.
    """
    counts = np.asarray(counts)
    whole_number("runs", runs, 1)
    least = int(counts.sum(1).min()) if counts.size else 0
    budgets = sorted(set(budgets))
    if not budgets or budgets[0] < 1 or budgets[-1] > least:
        raise InputError(f"`budgets` {budgets}: expected 1 to {least:,} labels, as many as every item has")
    everyone = soft_labels(counts)
    rows = []
    for run in range(runs):
        rng = np.random.default_rng((seed, run))
        drawn = [rng.permutation(np.repeat(np.arange(counts.shape[1]), row)).tolist() for row in counts]
        for choice, value in CHOICES.items():
            for budget, found in _spent(drawn, counts.shape[1], budgets, value, rng.random(len(counts)).tolist()):
                divergence = float(DIVERGENCES["add ½"](everyone, found).mean())
                rows.append({"run": run, "choice": choice, "labels": budget, "kl": divergence})
    return pd.DataFrame(rows)


def _spent(
    drawn: list[list[int]],
    num_classes: int,
    budgets: Sequence[int],
    value: Callable[[np.ndarray, np.ndarray], np.ndarray],
    ties: list[float],
) -> list[tuple[int, np.ndarray]]:
    """The counts (I, C) at each budget; lists, of which single numbers are read and written faster than of arrays."""
    counts = [[0] * num_classes for _ in drawn]
    for item, labels in enumerate(drawn):
        counts[item][labels[0]] = 1
    first = np.sum(counts, axis=0)
    given = [1] * len(drawn)
    known: dict[tuple[int, ...], float] = {}

    def of(item: int) -> float:
        key = tuple(counts[item])
        if key not in known:
            known[key] = -float(value(np.array(key), first))
        return known[key]

    heap = [(of(item), ties[item], item) for item in range(len(drawn))]
    heapq.heapify(heap)
    found, spent = [], len(drawn)
    for budget in budgets:
        while spent < budget * len(drawn):
            _, tie, item = heap[0]
            counts[item][drawn[item][given[item]]] += 1
            given[item] += 1
            spent += 1
            if given[item] < len(drawn[item]):
                heapq.heapreplace(heap, (of(item), tie, item))
            else:
                heapq.heappop(heap)
        found.append((budget, np.array(counts)))
    return found
