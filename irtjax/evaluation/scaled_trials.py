"""How many trials the responses to known items have, and what that makes of a response that is yet to come."""

from typing import Any, NamedTuple

import numpy as np

from irtjax.errors import InputError
from irtjax.item_models.beta_binomial import BetaBinomial
from irtjax.item_models.coded_counts import coded, effective_trials
from irtjax.responses.scaled import ScaledResponses
from irtjax.scoring.family_items import KnownItems
from irtjax.types import Float


class Trials(NamedTuple):
    """Of a response to each of I items, whose number of trials is one of those that there were.

    Attributes:
        known: the items, whose model knows these numbers where trials agree (`irtjax.item_models.coded_counts`).
        mean: (I,) number of trials; 1 but for counts.
        times: (I,) how often the model has A and the information for it: the same, and 1 where trials agree.
        effective: (I,) so many independent trials vary as much: the harmonic mean of n / (1 + (n - 1) ρ) where trials
            agree with the correlation ρ, and else the same as `mean`.
    """

    known: KnownItems
    mean: Float[np.ndarray, " I"]
    times: Float[np.ndarray, " I"]
    effective: Float[np.ndarray, " I"]


def trials_of(known: KnownItems, numbers: Any) -> Trials:
    """What the trials of responses come to.

    Args:
        known: the items.
        numbers: of trials of a response: one number, (I,), or (J, I) of many responses with 0 where there is none.

    Raises:
        InputError: of items whose trials agree a number that is not whole, or more different ones than are feasible.
    """
    size = len(known.item_ids)
    n = np.broadcast_to(np.atleast_2d(np.asarray(numbers, float)), (len(np.atleast_2d(numbers)), size))
    there = n > 0
    count = np.maximum(there.sum(axis=0), 1)
    mean = np.where(there.any(axis=0), n.sum(axis=0) / count, 1.0)
    agree = np.zeros(size, bool)
    for family, items in known.model.groups(size):
        agree[items] = isinstance(family, BetaBinomial)
    if not agree.any():
        return Trials(known, mean, mean, mean)
    if (broken := agree & (n != np.floor(n))).any():
        raise InputError(f"beta_binomial: {n[broken][0]:g} trials of a response: expected a whole number")
    found = coded(known.model, np.where(there, 0, -1), n.astype(int), np.asarray(known.parameters.top))
    own = known._replace(model=found.model, parameters=known.parameters._replace(top=found.top))
    effective = effective_trials(found.model, np.asarray(known.parameters.others), np.where(there, n, 1.0))
    one_each = 1 / np.where(there, effective, np.inf)
    harmonic = count / np.where(there.any(axis=0), one_each.sum(axis=0), 1.0)
    return Trials(own, mean, np.where(agree, 1.0, mean), np.where(agree, harmonic, mean))


def recorded_trials(responses: ScaledResponses) -> Float[np.ndarray, "J I"]:
    """Numbers of trials, 1 of what is no count, and 0 where a response is missing."""
    return np.where(responses.observed, 1.0 if responses.trials is None else responses.trials, 0.0)
