"""Answers of subjects as rows that are filled up to few different lengths, so that few programs are compiled."""

from collections.abc import Iterator

import numpy as np

from irtjax.responses.matrix import MISSING
from irtjax.responses.sparse import SparseResponses
from irtjax.types import Int, Shaped

SHORTEST = 8  # answers of a row
TOGETHER = 2**18  # answers of all rows that are handed out at once


def padded_rows(
    responses: SparseResponses, subjects: Int[np.ndarray, " n"] | None = None
) -> Iterator[tuple[Int[np.ndarray, " B"], Int[np.ndarray, "R L"], Shaped[np.ndarray, "R L"]]]:
    """Some subjects at a time who answered about as many items.

    Args:
        responses: of all subjects.
        subjects: positions of those that are wanted; None for all.

    Yields:
        Their positions (B,), the items (R, L) that they answered, and how: -1, of item 0, where there are no more. R is
        a power of 2 and no less than B, L a power of 2.
    """
    wanted = np.arange(responses.num_subjects) if subjects is None else np.asarray(subjects)
    number = np.diff(responses.starts)[wanted]
    lengths = np.maximum(SHORTEST, 2 ** np.ceil(np.log2(np.maximum(number, 1))).astype(int))
    for length in np.unique(lengths):
        alike = wanted[lengths == length]
        size = max(1, TOGETHER // int(length))
        for first in range(0, len(alike), size):
            rows = alike[first : first + size]
            yield rows, *_filled(responses, rows, int(length), 1 << (len(rows) - 1).bit_length())


def _filled(
    responses: SparseResponses, rows: Int[np.ndarray, " B"], length: int, height: int
) -> tuple[Int[np.ndarray, "R L"], Shaped[np.ndarray, "R L"]]:
    at = responses.starts[rows][:, None] + np.arange(length)
    there = at < responses.starts[rows + 1][:, None]
    items = np.zeros((height, length), np.int32)
    answers = np.full((height, length), MISSING, np.asarray(responses.answers).dtype)
    items[: len(rows)][there], answers[: len(rows)][there] = (
        of[at[there]] for of in (responses.items, responses.answers)
    )
    return items, answers
