"""Soft labels: the shares of an item's answers that went to each class, and how many answers they need.

    p_i(y) = n_iy / n_i

with n_iy of the n_i answers to item i for class y (Lalor, Wu and Yu 2018; Lalor 2020, chapter 4).
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.stats import entropy

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.soft_labels.annotations import Annotations, of_codes
from irtjax.types import AnyArray, Float, Int, Shaped

TOLERANCE = 1e-6  # of a sum of shares
BINS = 10  # of the probability of the gold label
ROUNDING = 1e-9  # less than any two shares of answers differ by: 10 × 3/10 must not fall below 3


def soft_labels(counts: Int[AnyArray, "I C"]) -> Float[np.ndarray, "I C"]:
    """Shares of answers (I, C) from their numbers, as `irtjax.responses.agreement.label_counts` has them.

    Raises:
        InputError: an item without answers.
    """
    counts = np.asarray(counts)
    total = counts.sum(1)
    if (total < 1).any():
        raise InputError(f"item number {int(np.argmax(total < 1)) + 1} has no answers")
    return counts / total[:, None]


def check_soft_labels(shares: Float[AnyArray, "I C"], names: AnyArray) -> None:
    """Refuses what are no probabilities of classes.

    Args:
        shares: (I, C).
        names: (I,) of the items, for the error.

    Raises:
        InputError: names the first item whose shares are negative, not finite, or do not sum to 1.
    """
    shares = np.asarray(shares, float)
    sums = shares.sum(1)
    bad = ~np.isfinite(shares).all(1) | (shares < 0).any(1)
    if bad.any():
        raise InputError(f"item {names[int(np.argmax(bad))]}: a soft label that is negative or no number")
    off = np.abs(sums - 1) > TOLERANCE
    if off.any():
        at = int(np.argmax(off))
        raise InputError(
            f"item {names[at]}: its soft labels sum to {sums[at]:.6g}, expected 1: divide them by their sum"
        )


def gold_histogram(shares: Float[AnyArray, "I C"], gold: Int[AnyArray, " I"]) -> Int[np.ndarray, " B"]:
    """How many items have a probability of the gold label from 0 to 0.1, 0.1 to 0.2 and so on; 1 is in the last bin.

    Args:
        shares: (I, C) soft labels.
        gold: (I,) class numbers.
    """
    of_gold = np.asarray(shares)[np.arange(len(shares)), gold]
    bins = np.floor(BINS * of_gold + ROUNDING).astype(int)
    return np.bincount(np.minimum(bins, BINS - 1), minlength=BINS)


def kl(p: Float[np.ndarray, "*B C"], q: Float[np.ndarray, "*B C"]) -> Float[np.ndarray, "*B"]:
    """KL(p ‖ q) = Σ_y p(y) log(p(y) / q(y)) in nats; infinite where q rules out what p allows."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 0, p * (np.log(p) - np.log(q)), 0.0)
    return terms.sum(-1)


# From the answers of all people, as shares p, and the counts of those drawn: the divergence between them.
# A class that none of those drawn chose has a share of 0, against which KL is infinite: what is put in its place
# decides the curve.
DIVERGENCES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add ½": lambda p, counts: kl(p, _shares(counts + 0.5)),
    "floor 1e-3": lambda p, counts: kl(p, np.maximum(_shares(counts), 1e-3)),
    "floor 1e-10": lambda p, counts: kl(p, np.maximum(_shares(counts), 1e-10)),
    "reverse": lambda p, counts: kl(_shares(counts), p),
}


def _shares(counts: np.ndarray) -> np.ndarray:
    return counts / counts.sum(-1, keepdims=True)


@checks_types
def divergence_by_number(
    answers: Int[AnyArray, "R I"] | Annotations,
    num_classes: int,
    numbers: Int[AnyArray, " K"],
    runs: int = 10,
    seed: int = 0,
) -> pd.DataFrame:
    """How far soft labels of a few people are from those of all, against how many they are.

    In each run people are drawn one after the other without replacement. After each number of them, the divergence of
    the soft labels of all from theirs is averaged over the items; items that none of them answered are left out.

    Args:
        answers: (R, I) class numbers of R people, -1 where one did not answer; or one by one.
        num_classes: C.
        numbers: of people drawn.
        runs: of the draw.
        seed: of the runs.

    Returns:
        One row per run and number: `run`, `people`, one column per name in `DIVERGENCES`, in nats, and `unseen`, the
        share of an item's classes that all people together chose and none of those drawn did; NaN where these
        answered nothing.

    Raises:
        InputError: a number below 1 or above R, or an item that nobody answered.
    """
    given, numbers = answers if isinstance(answers, Annotations) else of_codes(np.asarray(answers)), np.asarray(numbers)
    people = given.num_people
    if numbers.min() < 1 or numbers.max() > people:
        raise InputError(f"{numbers.min()} to {numbers.max()} people, expected 1 to {people}")
    everyone = soft_labels(given.counts(num_classes))
    rows = []
    for run in range(runs):
        turn = np.empty(people, int)
        turn[np.random.default_rng((seed, run)).permutation(people)] = np.arange(people)
        turns = turn[given.people]
        for number in np.sort(numbers):
            counts = given.counts(num_classes, turns < number)
            seen = counts.sum(1) > 0
            values, unseen = dict.fromkeys(DIVERGENCES, np.nan), np.nan
            if seen.any():
                values = {name: float(of(everyone[seen], counts[seen]).mean()) for name, of in DIVERGENCES.items()}
                possible = everyone[seen] > 0
                unseen = float((possible & (counts[seen] == 0)).sum() / possible.sum())
            rows.append({"run": run, "people": int(number), **values, "unseen": unseen})
    return pd.DataFrame(rows)


def people_and_networks(
    ids: Shaped[AnyArray, " I"],
    difficulty: Float[np.ndarray, " I"],
    people: Float[np.ndarray, "I C"],
    networks: Shaped[np.ndarray, "I C"],
) -> pd.DataFrame:
    """How far soft labels of a crowd are from those of people.

    Args:
        ids: (I,) of the items.
        difficulty: (I,) NaN where it is not known.
        people: (I, C) shares of their answers.
        networks: (I, C) numbers of networks that chose each class; half of one is added to each.

    Returns:
        One row per item: `item_id, difficulty, kl`, that of people ‖ networks in nats, and the entropies of both.
    """
    shares = _shares(networks + 0.5)
    entropies = {name: entropy(p, axis=1) for name, p in (("people", people), ("networks", shares))}
    return pd.DataFrame(
        {
            "item_id": ids,
            "difficulty": difficulty,
            "kl": kl(people, shares),
            **{f"entropy_{name}": values for name, values in entropies.items()},
        }
    )


def by_quarter(table: pd.DataFrame) -> pd.DataFrame:
    """A table of `people_and_networks`, whose difficulties are known, in quarters by difficulty, the easiest first.

    Returns:
        One row per quarter: `easiest` and `hardest` difficulty, number of `items`, and the means of `kl,
        entropy_people, entropy_networks`. Fewer rows where there are fewer difficulties.
    """
    quarters = pd.qcut(table.difficulty, min(4, len(table)), duplicates="drop")
    means = {name: (name, "mean") for name in ("kl", "entropy_people", "entropy_networks")}
    of_difficulty = {
        "easiest": ("difficulty", "min"),
        "hardest": ("difficulty", "max"),
        "items": ("difficulty", "size"),
    }
    return table.groupby(quarters, observed=True).agg(**of_difficulty, **means)
