"""Counts whose trials agree as the model of their items has them: categories (n, k); and what they weigh."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from irtjax.errors import InputError
from irtjax.item_models.beta_binomial import BetaBinomial
from irtjax.item_models.categories import Indicators
from irtjax.item_models.families import Families
from irtjax.types import Bool, Float, Int, Shaped

MOST_CATEGORIES = 2000  # pairs of n and k of a test


class Coded(NamedTuple):
    """Responses as the engine takes them.

    Attributes:
        model: whose families know which numbers of trials there are.
        values: (J, I) with categories in place of counts; or (N,).
        trials: (J, I) of those that are counts still, or (N,); None where there are none.
        top: (I,) of the items.
    """

    model: Families
    values: Any
    trials: Int[np.ndarray, "..."] | None
    top: Int[np.ndarray, " I"]


def coded(
    model: Families,
    values: Shaped[np.ndarray, "..."],
    trials: Int[np.ndarray, "..."] | None,
    top: Int[np.ndarray, " I"],
    items: Int[np.ndarray, " N"] | None = None,
) -> Coded:
    """Responses with their categories (n, k) where items are of this family; as they are where none is.

    Args:
        model: of the items.
        values: (J, I) of all subjects to all items; or (N,) of single responses.
        trials: of these; None where there are no counts.
        top: of the items.
        items: of single responses.

    Raises:
        InputError: no trials, or more categories than are feasible.
    """
    family = next((one for one in model.families if isinstance(one, BetaBinomial)), None)
    if family is None:
        return Coded(model, values, trials, top)
    if trials is None:
        raise InputError("beta_binomial: counts need their numbers of trials: give them by `trials`")
    columns = np.broadcast_to(np.arange(len(top)), values.shape) if items is None else items
    own = _own(model, family, len(top))
    here = own[columns] & (values >= 0)
    n, of = np.asarray(trials)[here], columns[here]
    different = np.unique(n) if n.size else np.ones(1, int)
    if (number := int((different + 1).sum())) > MOST_CATEGORIES:
        raise InputError(
            f"beta_binomial: {len(different)} different numbers of trials, up to {different[-1]}, have {number:,} "
            f"different counts, and by mml and in scores {MOST_CATEGORIES:,} are feasible: fit by svi, which gives "
            "abilities too, or take the binomial"
        )
    pairs = of.astype(np.int64) * len(different) + np.searchsorted(different, n)
    counts = np.bincount(pairs, minlength=len(top) * len(different)).reshape(len(top), -1)[own].astype(float)
    counts[counts.sum(axis=1) == 0, 0] = 1.0
    designs, rows = np.unique(counts / counts.sum(axis=1, keepdims=True), axis=0, return_inverse=True)
    known = dataclasses.replace(
        family, trials=tuple(different.tolist()), designs=tuple(tuple(row) for row in designs.tolist())
    )
    families = tuple(known if one is family else one for one in model.families)
    per_item = max(model.per_item, known.num_statistics(0))
    model = dataclasses.replace(model, families=families, per_item=per_item)
    values, top = numbered(model, values, trials, items)[0], np.array(top)
    top[own] = rows.ravel()
    only = all(isinstance(one, Indicators) for one in families)
    return Coded(model, values, None if only else np.where(own[columns], 1, trials), top)


def numbered(
    model: Families,
    values: Shaped[np.ndarray, "..."],
    trials: Shaped[np.ndarray, "..."],
    items: Int[np.ndarray, " N"] | None = None,
) -> tuple[Shaped[np.ndarray, "..."], Float[np.ndarray, "..."]]:
    """Responses as a model has them that knows their numbers of trials, and how often it has A for each.

    That is 1 for a category (n, k), else the trials, and 0 where a response is missing. Responses are of subjects to
    all items, or single ones, as `coded` has them.

    Raises:
        InputError: a response has a number of trials that the model does not know, or successes that are no number.
    """
    codes, times = np.array(values), np.where(values >= 0, trials, 0).astype(float)
    family = next((one for one in model.families if isinstance(one, BetaBinomial)), None)
    if family is None:
        return codes, times
    columns = np.broadcast_to(np.arange(values.shape[-1]), values.shape) if items is None else items
    here = _own(model, family, int(columns.max(initial=-1)) + 1)[columns] & (values >= 0)
    known, n, k = np.array(family.trials), np.asarray(trials)[here], values[here]
    places = np.minimum(np.searchsorted(known, n), len(known) - 1)
    if (wrong := known[places] != n).any():
        raise InputError(
            f"beta_binomial: a response of {n[wrong][0]:g} trials, where there are responses of "
            f"{', '.join(map(str, known))}: say by `trials` how many there are"
        )
    if (broken := k != np.floor(k)).any():
        raise InputError(f"beta_binomial: {k[broken][0]:g} successes: expected a whole number")
    before = np.concatenate([[0], np.cumsum(known + 1)[:-1]])
    codes[here], times[here] = before[places] + k, 1.0
    return codes, times


def _own(model: Families, family: BetaBinomial, num_items: int) -> Bool[np.ndarray, " I"]:
    """Which items are of the family."""
    own = np.zeros(num_items, bool)
    own[next(items for one, items in model.groups(num_items) if one is family)] = True
    return own


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
