"""Which item should the next label be asked for? Labels spread over items or classes, or spent where needed most.

Lalor (2020, section 4.4.3) asks whether a choice of labels that balances classes, or goes by uncertainty, needs fewer.
"""

import functools
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


Spent = list[tuple[int, np.ndarray]]  # the counts (I, C) at each budget


# Lists, of which single numbers are read and written faster than of arrays.
def _first_labels(drawn: list[list[int]], num_classes: int) -> list[list[int]]:
    """Counts of each class, (I, C), with one label of each item."""
    return [[int(label == labels[0]) for label in range(num_classes)] for labels in drawn]


def _spent_by_value(
    value: Callable[[np.ndarray], np.ndarray],
    drawn: list[list[int]],
    num_classes: int,
    budgets: Sequence[int],
    ties: list[float],
) -> Spent:
    """Each label to the item of the largest value."""
    counts, given = _first_labels(drawn, num_classes), [1] * len(drawn)
    known: dict[tuple[int, ...], float] = {}

    def of(item: int) -> float:
        key = tuple(counts[item])
        if key not in known:
            known[key] = -float(value(np.array(key)))
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


def _spent_by_class(drawn: list[list[int]], num_classes: int, budgets: Sequence[int], ties: list[float]) -> Spent:
    """Each label to the class with the fewest, and in it to the item with the fewest."""
    counts, given = _first_labels(drawn, num_classes), [1] * len(drawn)
    of_item = [labels[0] for labels in drawn]
    of_class = [of_item.count(label) for label in range(num_classes)]  # labels of the items of a class
    heaps: list[list[tuple[int, float, int]]] = [[] for _ in range(num_classes)]
    for item, labels in enumerate(drawn):
        if len(labels) > 1:
            heapq.heappush(heaps[of_item[item]], (1, ties[item], item))
    found, spent = [], len(drawn)
    for budget in budgets:
        while spent < budget * len(drawn):
            poorest = min((label for label in range(num_classes) if heaps[label]), key=of_class.__getitem__)
            _, tie, item = heapq.heappop(heaps[poorest])
            label = drawn[item][given[item]]
            counts[item][label] += 1
            given[item] += 1
            spent += 1
            of_class[poorest] += 1
            if counts[item][label] > counts[item][poorest]:  # another class now, which its labels go with
                of_class[poorest] -= given[item]
                of_class[label] += given[item]
                of_item[item] = label
            if given[item] < len(drawn[item]):
                heapq.heappush(heaps[of_item[item]], (given[item], tie, item))
        found.append((budget, np.array(counts)))
    return found


# what the next label goes to: the item of the largest value of its labels so far, or an item of the poorest class
CHOICES: dict[str, Callable[..., Spent]] = {
    "even": functools.partial(_spent_by_value, lambda counts: -counts.sum(-1)),
    "expected gain": functools.partial(_spent_by_value, expected_gain),
    "entropy": functools.partial(_spent_by_value, entropy_so_far),
    "balanced classes": _spent_by_class,
}


@checks_types
def divergence_by_budget(
    counts: Int[AnyArray, "I C"], budgets: Sequence[int], *, runs: int = 10, seed: int = 0
) -> pd.DataFrame:
    """How far soft labels are from those of all people, against how many labels an item has on average.

    In each run the labels of an item come in random order, without replacement, the same for each way to choose. Each
    item has one to begin with; every further label goes where one of `CHOICES` says: to the item of the largest
    value, or to the class with the fewest labels, and in it to the item with the fewest. The class of an item is its
    most frequent label so far.

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
        for choice, spend in CHOICES.items():
            for budget, found in spend(drawn, counts.shape[1], budgets, rng.random(len(counts)).tolist()):
                divergence = float(DIVERGENCES["add ½"](everyone, found).mean())
                rows.append({"run": run, "choice": choice, "labels": budget, "kl": divergence})
    return pd.DataFrame(rows)
