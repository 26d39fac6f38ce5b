"""Counts and shares beside categories: which model goes with which, and what of an item has no finite maximum."""

from collections.abc import Sequence

import numpy as np

from irtjax.errors import InputError
from irtjax.item_models.listing import CATEGORICAL, OF_COUNTS, OF_SHARES
from irtjax.responses.scaled import ScaledResponses
from irtjax.types import Bool, Float


def check_models(responses: ScaledResponses, models: Sequence[str]) -> None:
    """Refuses models of other responses than an item has.

    Raises:
        InputError: names the item.
    """
    observed = responses.observed
    for i, (name, scale) in enumerate(zip(models, responses.scales, strict=True)):
        item, trials = f"item {str(responses.item_ids[i])!r}: the model {name}", responses.trials
        if name in CATEGORICAL and scale.labels is None:
            raise InputError(f"{item} needs grades or categories, and the responses are counts or shares")
        if name not in CATEGORICAL and scale.labels is not None:
            raise InputError(f"{item} needs counts or shares, and the responses are categories")
        seen = observed[:, i]
        if name in OF_COUNTS and trials is None:
            raise InputError(f"{item} needs the number of trials of each response")
        if name in OF_SHARES:
            y = responses.values[seen, i]
            if (y > 1).any() or (trials is not None and (trials[seen, i] != 1).any()):
                raise InputError(f"{item} needs shares from 0 to 1, and the responses are counts")
            ends = (y == 0) | (y == 1)
            if name == "beta" and ends.any():
                subject = str(responses.subject_ids[seen][np.argmax(ends)])
                raise InputError(
                    f"subject {subject!r}, {item} has no shares of exactly {y[np.argmax(ends)]:g}: take ordered_beta"
                )


def without_maximum(responses: ScaledResponses, models: Sequence[str]) -> Bool[np.ndarray, " I"]:
    """Items of counts or shares whose parameters have no finite estimate by maximum likelihood.

    Every trial failed, or none did: difficulty. Fewer than two different shares between 0 and 1: the precision.
    """
    lost, observed = np.zeros(responses.num_items, bool), responses.observed
    for i, name in enumerate(models):
        seen = observed[:, i]
        values = responses.values[seen, i]
        if name in OF_COUNTS:
            assert responses.trials is not None
            lost[i] = values.sum() in (0, responses.trials[seen, i].sum())
        elif name in OF_SHARES:
            lost[i] = len(np.unique(values[(values > 0) & (values < 1)])) < 2
    return lost


def explain(responses: ScaledResponses, models: Sequence[str], lost: Bool[np.ndarray, " I"], dims: int) -> str:
    """The error of items without finite maximum where there are no priors."""
    i = int(np.argmax(lost))
    why = (
        "all trials failed, or none did, so that no difficulty is the likeliest"
        if models[i] in OF_COUNTS
        else "fewer than two different shares are between 0 and 1, so that no precision is the likeliest"
    )
    way = "leave it out" if dims > 1 else "leave it out, or fit with priors"
    return f"item {str(responses.item_ids[i])!r} (1 of {lost.sum()} such): {why}: {way}"


def ends(responses: ScaledResponses, models: Sequence[str], determined: bool) -> Bool[np.ndarray, "I 2"]:
    """Whether an item has cuts of exactly 0, and 1: all but items of ordered shares where nobody has such a share.

    Under priors, which keep cuts finite, one item with such a share is enough for all.
    """
    ordered = np.array([name == "ordered_beta" for name in models])
    given = np.stack([(np.asarray(responses.values) == end).any(axis=0) for end in (0, 1)], axis=1)
    if not determined:
        given = np.broadcast_to(given[ordered].any(axis=0), given.shape)
    return given | ~ordered[:, None]


def successes(
    responses: ScaledResponses, models: Sequence[str]
) -> tuple[Float[np.ndarray, " N"], Float[np.ndarray, " N"]]:
    """Counts and shares as right answers to right/wrong items, and how many were given: those over each cut, too."""
    counts, shares, ordered = (np.isin(models, names) for names in (OF_COUNTS, OF_SHARES, ("ordered_beta",)))
    observed, values = responses.observed, np.where(responses.observed, responses.values, 0.0)
    trials = observed if responses.trials is None else np.where(observed, responses.trials, 0)
    agree = np.array([name == "beta_binomial" for name in models])  # trials of a response may all be as one
    values = np.where(agree, values / np.maximum(trials, 1), values)
    trials = np.where(agree, observed, trials)
    given = observed.sum(axis=0)
    over = ((values > 0) & observed).sum(axis=0), (values == 1).sum(axis=0)
    right = [values.sum(axis=0)[counts | shares], *(number[ordered] for number in over)]
    total = [np.where(counts, trials.sum(axis=0), given)[counts | shares], given[ordered], given[ordered]]
    return np.concatenate(right), np.concatenate(total).astype(float)
