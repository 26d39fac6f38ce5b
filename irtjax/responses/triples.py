"""Answers as triples, (subject, item, answer) in any order: how they are checked, and put into rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from irtjax.errors import InputError, NotScoredError
from irtjax.responses.compressed_rows import answered_again, kept_answers, sorted_answers
from irtjax.responses.masks import unmasked
from irtjax.responses.matrix import MISSING, require_sound_ids

REPEATS = ("refuse", "last")  # what is done with a second answer of a subject to an item


def in_rows(
    subjects: Any,
    items: Any,
    answers: Any,
    subject_ids: np.ndarray | Sequence[str],
    item_ids: np.ndarray | Sequence[str],
    repeats: str,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the answers of each subject begin, their items, and the answers.

    Args and errors are those of `irtjax.responses.sparse.SparseResponses.from_triples`.
    """
    if repeats not in REPEATS:
        raise InputError(f"`repeats` {repeats!r}, expected one of {', '.join(REPEATS)}")
    for what, ids in (("subject", subject_ids), ("item", item_ids)):
        require_sound_ids(ids, what)
    subjects, items, answers = (np.asarray(leaf).ravel() for leaf in (subjects, items, unmasked(answers)))
    if not len(subjects) == len(items) == len(answers):
        raise InputError(f"{len(subjects):,} subjects, {len(items):,} items and {len(answers):,} answers")
    for what, at, ids in (("subjects", subjects, subject_ids), ("items", items, item_ids)):
        if at.dtype.kind not in "iu":
            raise InputError(f"`{what}` are of type {at.dtype}, expected positions in the ids")
        if len(at) and not (at.min() >= 0 and at.max() < len(ids)):
            raise InputError(f"`{what}` are from {at.min()} to {at.max()}, expected 0 to {len(ids) - 1:,}")
    if answers.dtype.kind not in "biuf":
        raise InputError(f"answers of type {answers.dtype}, expected numbers")
    there = ~(answers < 0) & (answers == answers) if answers.dtype.kind in "if" else np.ones(len(answers), bool)
    if not there.all():
        broken = answers[~there]
        broken = broken[(broken != MISSING) & (broken == broken)]
        if broken.size:
            raise NotScoredError(f"answer {broken[0]:g}, expected 0, 1 or -1 (missing)")
        subjects, items, answers = subjects[there], items[there], answers[there]
    if not len(answers):
        raise InputError("there is no answer")
    starts, items, answers = sorted_answers(subjects, items, answers, (len(subject_ids), len(item_ids)))
    again = answered_again(starts, items)
    if again.any():
        first = int(np.flatnonzero(again)[0])
        if repeats == "refuse":
            j = int(np.searchsorted(starts, first, side="right")) - 1
            raise InputError(
                f"subject {str(subject_ids[j])!r} answered item {str(item_ids[items[first]])!r} more than once "
                f"({int(again.sum()):,} such answers): take the last (`repeats='last'`), or count them "
                "(`model='binomial'`)"
            )
        starts, items, answers = kept_answers(starts, items, answers, ~np.append(again[1:], False))
    return starts, items, answers
