"""Counts whose trials agree as the model of their items has them: categories (n, k); and what they weigh."""

import dataclasses
from typing import NamedTuple

import numpy as np

from irtjax.errors import InputError
from irtjax.item_models.beta_binomial import BetaBinomial
from irtjax.item_models.categories import Indicators
from irtjax.item_models.families import Families
from irtjax.types import Float, Int, Shaped

MOST_CATEGORIES = 2000  # pairs of n and k of a test


class Coded(NamedTuple):
    """Responses as the engine takes them.

    Attributes:
        model: whose families know which numbers of trials there are.
        values: (J, I) with categories in place of counts.
        trials: (J, I) of those that are counts still; None where there are none.
        top: (I,) of the items.
    """

    model: Families
    values: Shaped[np.ndarray, "J I"]
    trials: Int[np.ndarray, "J I"] | None
    top: Int[np.ndarray, " I"]


def coded(
    model: Families,
    values: Shaped[np.ndarray, "J I"],
    trials: Int[np.ndarray, "J I"] | None,
    top: Int[np.ndarray, " I"],
) -> Coded:
    """Responses with their categories (n, k) where items are of this family; as they are where none is.

    Raises:
        InputError: no trials, or more categories than are feasible.
    """
    found = [(family, items) for family, items in model.groups(len(top)) if isinstance(family, BetaBinomial)]
    if not found:
        return Coded(model, values, trials, top)
    ((family, items),) = found
    if trials is None:
        raise InputError("beta_binomial: counts need their numbers of trials: give them by `trials`")
    there, n = values[:, items] >= 0, np.asarray(trials)[:, items]
    different = np.unique(n[there]) if there.any() else np.ones(1, int)
    if (number := int((different + 1).sum())) > MOST_CATEGORIES:
        raise InputError(
            f"beta_binomial: {len(different)} different numbers of trials, up to {different[-1]}, have {number:,} "
            f"different counts, and by mml and in scores {MOST_CATEGORIES:,} are feasible: fit by svi, which gives "
            "abilities too, or take the binomial"
        )
    counts = np.stack([((n == one) & there).sum(axis=0) for one in different], axis=1).astype(float)
    counts[counts.sum(axis=1) == 0, 0] = 1.0
    designs, rows = np.unique(counts / counts.sum(axis=1, keepdims=True), axis=0, return_inverse=True)
    known = dataclasses.replace(
        family, trials=tuple(different.tolist()), designs=tuple(tuple(row) for row in designs.tolist())
    )
    families = tuple(known if one is family else one for one in model.families)
    per_item = max(model.per_item, known.num_statistics(0))
    model = dataclasses.replace(model, families=families, per_item=per_item)
    values, trials, top = numbered(model, values, trials)[0], np.array(trials), np.array(top)
    trials[:, items], top[items] = 1, rows.ravel()
    only = all(isinstance(one, Indicators) for one in families)
    return Coded(model, values, None if only else trials, top)


def numbered(
    model: Families, values: Shaped[np.ndarray, "J I"], trials: Shaped[np.ndarray, "J I"]
) -> tuple[Shaped[np.ndarray, "J I"], Float[np.ndarray, "J I"]]:
    """Responses as a model has them that knows their numbers of trials, and how often it has A for each.

    That is 1 for a category (n, k), else the trials, and 0 where a response is missing.

    Raises:
        InputError: a response has a number of trials that the model does not know, or successes that are no number.
    """
    codes, times = np.array(values), np.where(values >= 0, trials, 0).astype(float)
    for family, items in model.groups(values.shape[1]):
        if not isinstance(family, BetaBinomial):
            continue
        known, n, there = np.array(family.trials), trials[:, items], values[:, items] >= 0
        places = np.minimum(np.searchsorted(known, n), len(known) - 1)
        if (wrong := there & (known[places] != n)).any():
            raise InputError(
                f"beta_binomial: a response of {n[wrong][0]:g} trials, where there are responses of "
                f"{', '.join(map(str, known))}: say by `trials` how many there are"
            )
        if (broken := there & (values[:, items] != np.floor(values[:, items]))).any():
            raise InputError(f"beta_binomial: {values[:, items][broken][0]:g} successes: expected a whole number")
        before = np.concatenate([[0], np.cumsum(known + 1)[:-1]])
        codes[:, items] = np.where(there, before[places] + values[:, items], values[:, items])
        times[:, items] = there
    return codes, times


def effective_trials(
    model: Families, others: Float[np.ndarray, "I L"], trials: Float[np.ndarray, "*J I"]
) -> Float[np.ndarray, "*J I"]:
    """So many independent trials would vary as much: n / (1 + (n - 1) ρ) where trials agree (Kish 1965), else n.

    With P the chance of a trial, a share k/n of n trials of which any two correlate by ρ has the variance

        P (1 - P) (1 + (n - 1) ρ) / n.
    """
    found = np.array(trials, float)
    for family, items in model.groups(found.shape[-1]):
        if isinstance(family, BetaBinomial):
            n = found[..., items]
            found[..., items] = n / (1 + np.maximum(n - 1, 0) * np.asarray(family.correlation(others[items])))
    return found
