"""Responses that are missing by design: the subjects who were asked the same items have one form of the test."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.responses.matrix import MISSING
from irtjax.responses.sparse import SparseResponses
from irtjax.types import Int

FEWEST = 30  # subjects of a form, and of a pair of items


class Form(NamedTuple):
    """A form of a test.

    Attributes:
        items: positions of its items.
        values: responses of its subjects to its items, none of them missing.
    """

    items: Int[np.ndarray, " K"]
    values: Int[np.ndarray, "N K"]


def forms(values: Int[np.ndarray, "J I"]) -> list[Form]:
    """The forms of a test, that of most subjects first.

    Args:
        values: responses; nothing missing is a single form. Else forms of fewer than `FEWEST` subjects are left out.
    """
    found = [Form(np.flatnonzero(seen), values[np.ix_(rows, seen)]) for rows, seen in patterns(values)]
    return [form for form in found if len(form.values) >= FEWEST or len(form.values) == len(values)]


def forms_of_answers(responses: SparseResponses) -> list[Form]:
    """The forms of at least `FEWEST` subjects, by single answers; that of most subjects first."""
    number, starts = np.diff(responses.starts), responses.starts
    marks = np.random.default_rng(0).integers(2**63, size=(2, responses.num_items), dtype=np.uint64)
    sums = [np.add.reduceat(np.append(mark[responses.items], np.uint64(0)), starts[:-1]) for mark in marks]
    same = np.stack([*sums, number.astype(np.uint64)], axis=1)[number > 0]  # alike where the items are, as good as sure
    _, which, sizes = np.unique(same, axis=0, return_inverse=True, return_counts=True)
    subjects = np.flatnonzero(number > 0)[np.argsort(which.ravel(), kind="stable")]
    ends = np.cumsum(sizes)
    found = []
    for k in np.argsort(-sizes, kind="stable"):
        if sizes[k] < FEWEST:
            break
        rows = subjects[ends[k] - sizes[k] : ends[k]]
        at = starts[rows][:, None] + np.arange(number[rows[0]])
        found.append(Form(responses.items[at[0]].astype(int), responses.answers[at].astype(int)))
    return found


def form_table(responses: Any) -> pd.DataFrame:
    """One row per form of a design: `form, num_subjects, num_items, first_item, last_item`.

    Args:
        responses: right/wrong ones, or `ScaledResponses`.
    """
    ids = responses.item_ids
    rows = [
        (number, len(form.values), form.items.size, ids[form.items[0]], ids[form.items[-1]])
        for number, form in enumerate(forms(np.asarray(responses.values)), 1)
    ]
    return pd.DataFrame(rows, columns=["form", "num_subjects", "num_items", "first_item", "last_item"])


def patterns(values: Int[np.ndarray, "J I"]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Subjects (N,) who answered the same items, and which these are, (I,) bool; that of most subjects first."""
    if not (values == MISSING).any():
        return [(np.arange(len(values)), np.ones(values.shape[1], bool))]
    seen, which, sizes = np.unique(values != MISSING, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(-sizes, kind="stable")
    return [(np.flatnonzero(which.ravel() == k), seen[k]) for k in order]


def require_design(responses: Any) -> None:
    """Refuses missing answers that follow no design, and designs that leave pairs of items apart.

    Raises:
        InputError: no `FEWEST` subjects answered the same items, or a pair of items has fewer subjects in common.
    """
    values = responses.values
    if not forms(values):
        most = len(patterns(values)[0][0])
        raise InputError(
            f"missing answers follow no design: at most {most} subjects answered the same items, {FEWEST} are needed; "
            "leave only those answers empty that were not asked for, and score skipped ones as wrong"
        )
    seen = (values != MISSING).astype(float)
    together = seen.T @ seen
    apart = np.argwhere(np.triu(together < FEWEST, 1))
    if len(apart):
        first, second = apart[0]
        raise InputError(
            f"{together[first, second]:.0f} subjects answered both item '{responses.item_ids[first]}' and item "
            f"'{responses.item_ids[second]}' (1 of {len(apart):,} such pairs), {FEWEST} are needed: a design has to "
            "give every two blocks of items to some subjects"
        )
