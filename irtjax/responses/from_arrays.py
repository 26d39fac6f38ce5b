"""Responses on scales of their own, out of arrays of grades, counts or shares."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.responses.masks import as_floats
from irtjax.responses.matrix import MISSING
from irtjax.responses.scaled import Scale, ScaledResponses
from irtjax.types import Shaped

Ids = Sequence[str] | np.ndarray


@checks_types
def of_grades(
    table: Shaped[np.ndarray, "J I"], subject_ids: Ids, item_ids: Ids, labels: Sequence[Any] = ()
) -> ScaledResponses:
    """Grades on one scale.

    Args:
        table: grades as they were given, NaN where missing.
        subject_ids: of the rows.
        item_ids: of the columns.
        labels: all grades of the scale, in order; by default those that occur.

    Raises:
        InputError: a grade that is not of the scale.
    """
    array = as_floats(table)
    there = np.isfinite(array)
    known = np.unique(array[there]) if not len(labels) else np.array(labels, float)
    places = np.searchsorted(known, array)
    found = there & (known[np.minimum(places, len(known) - 1)] == array)
    if (there & ~found).any():
        j, i = np.argwhere(there & ~found)[0]
        raise InputError(
            f"{_cell(j, i, subject_ids, item_ids)}: grade {array[j, i]:g}, expected one of "
            + ", ".join(f"{label:g}" for label in known)
        )
    scale = Scale(tuple(int(label) if label == int(label) else float(label) for label in known))
    values = np.where(there, places, MISSING).astype(np.int8)
    return ScaledResponses(values, np.array(subject_ids), np.array(item_ids), (scale,) * array.shape[1])


@checks_types
def of_counts(
    successes: Shaped[np.ndarray, "J I"],
    trials: Any,
    subject_ids: Ids,
    item_ids: Ids,
) -> ScaledResponses:
    """Successes of a number of trials.

    Args:
        successes: k, NaN where missing.
        trials: n, of all, of each item (I,), of each subject (J, 1) or of each response (J, I).
        subject_ids: of the rows.
        item_ids: of the columns.

    Raises:
        InputError: what is no number of successes, or no trials of a response; names subject and item.
    """
    k = as_floats(successes)
    try:
        n = np.broadcast_to(np.asarray(trials, float), k.shape)
    except ValueError as error:
        message = f"trials {np.shape(trials)} of responses {k.shape}: expected one number, (I,), (J, 1) or (J, I)"
        raise InputError(message) from error
    there = ~np.isnan(k)
    whole = np.isfinite(n) & (n >= 1) & (n == np.floor(n))
    for bad, expected in (
        (there & ~whole, "expected a whole number of trials, 1 or more"),
        (there & ~(np.isfinite(k) & (k >= 0) & (k == np.floor(k))), "expected a whole number of successes, 0 or more"),
        (there & (k > n), "more successes than trials"),
    ):
        if bad.any():
            j, i = np.argwhere(bad)[0]
            raise InputError(f"{_cell(j, i, subject_ids, item_ids)}: {k[j, i]:g} of {n[j, i]:g}, {expected}")
    values, trials = np.where(there, k, MISSING).astype(np.int32), np.where(there, n, 1).astype(np.int32)
    return ScaledResponses(values, np.array(subject_ids), np.array(item_ids), (Scale(),) * k.shape[1], trials)


@checks_types
def of_shares(
    table: Shaped[np.ndarray, "J I"], subject_ids: Ids, item_ids: Ids, *, ends: bool = True
) -> ScaledResponses:
    """Shares from 0 to 1, NaN where missing.

    Args:
        table: the shares.
        subject_ids: of the rows.
        item_ids: of the columns.
        ends: whether a share may be exactly 0 or 1.

    Raises:
        InputError: a share that is less than 0 or more than 1, or an end where there may be none.
    """
    shares = as_floats(table)
    there = ~np.isnan(shares)
    inside = (shares >= 0) & (shares <= 1) if ends else (shares > 0) & (shares < 1)
    if (there & ~inside).any():
        j, i = np.argwhere(there & ~inside)[0]
        expected = "expected a share from 0 to 1" if ends else "expected a share between 0 and 1, not one of them"
        raise InputError(f"{_cell(j, i, subject_ids, item_ids)}: {shares[j, i]:g}, {expected}")
    values = np.where(there, shares, MISSING)
    return ScaledResponses(values, np.array(subject_ids), np.array(item_ids), (Scale(),) * shares.shape[1])


def _cell(j: Any, i: Any, subject_ids: Ids, item_ids: Ids) -> str:
    return f"subject {str(subject_ids[j])!r}, item {str(item_ids[i])!r}"
