"""Counts and shares beside categories: which model goes with which, and what of an item has no finite maximum."""

from collections.abc import Sequence

import numpy as np

from irtjax.errors import InputError
from irtjax.item_models.listing import CATEGORICAL, OF_COUNTS, OF_SHARES
from irtjax.responses.scaled import Answered
from irtjax.responses.values import OnScales
from irtjax.types import Bool, Float, Shaped


def check_models(responses: OnScales, models: Sequence[str]) -> None:
    """Refuses models of other responses than an item has.

    Raises:
        InputError: names the item.
    """
    of_shares = np.isin(models, OF_SHARES)
    given = responses.answered(of_shares)
    too_large = given.values > 1 if given.trials is None else (given.values > 1) | (given.trials != 1)
    counts = _any(given, too_large, len(models))
    ends = (given.values == 0) | (given.values == 1)
    for i, (name, scale) in enumerate(zip(models, responses.scales, strict=True)):
        item, trials = f"item {str(responses.item_ids[i])!r}: the model {name}", responses.trials
        if name in CATEGORICAL and scale.labels is None:
            raise InputError(f"{item} needs grades or categories, and the responses are counts or shares")
        if name not in CATEGORICAL and scale.labels is not None:
            raise InputError(f"{item} needs counts or shares, and the responses are categories")
        if name in OF_COUNTS and trials is None:
            raise InputError(f"{item} needs the number of trials of each response")
        if counts[i]:
            raise InputError(f"{item} needs shares from 0 to 1, and the responses are counts")
        if name == "beta" and (own := (given.items == i) & ends).any():
            at = int(np.argmax(own))
            subject = str(responses.subject_ids[given.subjects[at]])
            raise InputError(
                f"subject {subject!r}, {item} has no shares of exactly {given.values[at]:g}: take ordered_beta"
            )


def without_maximum(responses: OnScales, models: Sequence[str]) -> Bool[np.ndarray, " I"]:
    """Items of counts or shares whose parameters have no finite estimate by maximum likelihood.

    Every trial failed, or none did: difficulty. Fewer than two different shares between 0 and 1: the precision.
    """
    number = responses.num_items
    of_counts, of_shares = np.isin(models, OF_COUNTS), np.isin(models, OF_SHARES)
    counts, shares = responses.answered(of_counts), responses.answered(of_shares)
    total = _sum(counts, counts.values, number)
    lost = of_counts & ((total == 0) | (total == _sum(counts, counts.trials, number)))
    low, high = np.full(number, np.inf), np.full(number, -np.inf)
    between = (shares.values > 0) & (shares.values < 1)
    np.minimum.at(low, shares.items[between], shares.values[between])
    np.maximum.at(high, shares.items[between], shares.values[between])
    return lost | (of_shares & ~(low < high))


def _sum(given: Answered, what: Shaped[np.ndarray, " N"] | None, num_items: int) -> Float[np.ndarray, " I"]:
    """Of each item; what is None is 1."""
    return np.bincount(given.items, what, num_items).astype(float)


def _any(given: Answered, what: Bool[np.ndarray, " N"], num_items: int) -> Bool[np.ndarray, " I"]:
    """Whether it is so of some response to each item."""
    return np.bincount(given.items[what], minlength=num_items) > 0


def explain(responses: OnScales, models: Sequence[str], lost: Bool[np.ndarray, " I"], dims: int) -> str:
    """The error of items without finite maximum where there are no priors."""
    i = int(np.argmax(lost))
    why = (
        "all trials failed, or none did, so that no difficulty is the likeliest"
        if models[i] in OF_COUNTS
        else "fewer than two different shares are between 0 and 1, so that no precision is the likeliest"
    )
    way = "leave it out" if dims > 1 else "leave it out, or fit with priors"
    return f"item {str(responses.item_ids[i])!r} (1 of {lost.sum()} such): {why}: {way}"


def ends(responses: OnScales, models: Sequence[str], determined: bool) -> Bool[np.ndarray, "I 2"]:
    """Whether an item has cuts of exactly 0, and 1: all but items of ordered shares where nobody has such a share.

    Under priors, which keep cuts finite, one item with such a share is enough for all.
    """
    ordered = np.array([name == "ordered_beta" for name in models])
    found = responses.answered(ordered)
    given = np.stack([_any(found, found.values == end, len(models)) for end in (0, 1)], axis=1)
    if not determined:
        given = np.broadcast_to(given[ordered].any(axis=0), given.shape)
    return given | ~ordered[:, None]


def successes(responses: OnScales, models: Sequence[str]) -> tuple[Float[np.ndarray, " N"], Float[np.ndarray, " N"]]:
    """Counts and shares as right answers to right/wrong items, and how many were given: those over each cut, too."""
    counts, shares, ordered = (np.isin(models, names) for names in (OF_COUNTS, OF_SHARES, ("ordered_beta",)))
    found, number = responses.answered(counts | shares), len(models)
    trials = np.ones(len(found.values)) if found.trials is None else found.trials
    agree = np.array([name == "beta_binomial" for name in models])[found.items]  # trials may all be as one
    values, trials = np.where(agree, found.values / trials, found.values), np.where(agree, 1, trials)
    given = _sum(found, None, number)
    over = _sum(found, found.values > 0, number), _sum(found, found.values == 1, number)
    right = [_sum(found, values, number)[counts | shares], *(above[ordered] for above in over)]
    total = [np.where(counts, _sum(found, trials, number), given)[counts | shares], given[ordered], given[ordered]]
    return np.concatenate(right), np.concatenate(total)
