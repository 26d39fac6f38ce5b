"""Compressed rows: entries row by row, each row's in the order of their columns; how entries come into that order."""

import numpy as np
import scipy.sparse

from irtjax.types import Bool, Int, Shaped


def sorted_answers(
    subjects: Int[np.ndarray, " N"],
    items: Int[np.ndarray, " N"],
    answers: Shaped[np.ndarray, " N"],
    shape: tuple[int, int],
) -> tuple[Int[np.ndarray, " ends"], Int[np.ndarray, " N"], Shaped[np.ndarray, " N"]]:
    """Answers subject by subject, items in their order; of one cell in the order in which they came.

    Two passes of counting, first by item and then by subject, as SciPy turns sparse arrays: no comparisons.
    """
    by_item = in_order(items, shape[1])
    order = by_item[in_order(subjects[by_item], shape[0])]
    starts = np.concatenate([[0], np.cumsum(np.bincount(subjects, minlength=shape[0]))])
    return starts, items[order].astype(np.int32, copy=False), answers[order]


def in_order(keys: Int[np.ndarray, " N"], size: int) -> Int[np.ndarray, " N"]:
    """The stable order by keys from 0 to `size` - 1, by counting."""
    if not len(keys):
        return np.zeros(0, np.int32)
    number = np.int32 if len(keys) < 2**31 else np.int64
    ends = np.arange(len(keys) + 1, dtype=number)
    rows = scipy.sparse.csr_array(
        (np.empty(len(keys), np.int8), keys.astype(number, copy=False), ends), (len(keys), size)
    )
    return rows.tocsc().indices


def rows_of(
    starts: Int[np.ndarray, " ends"], rows: Int[np.ndarray, " n"]
) -> tuple[Int[np.ndarray, " _"], Int[np.ndarray, " N"]]:
    """Where the answers of some subjects begin when they are put side by side, and where each of these was before."""
    lengths = starts[rows + 1] - starts[rows]
    begin = np.concatenate([[0], np.cumsum(lengths)])
    return begin, np.repeat(starts[rows] - begin[:-1], lengths) + np.arange(begin[-1])


def answered_again(starts: Int[np.ndarray, " ends"], items: Int[np.ndarray, " N"]) -> Bool[np.ndarray, " N"]:
    """Whether the subject answered the item in the entry before."""
    again = np.zeros(len(items), bool)
    np.equal(items[1:], items[:-1], out=again[1:])
    again[starts[:-1][starts[:-1] < len(items)]] = False
    return again


def kept_answers(
    starts: Int[np.ndarray, " ends"],
    items: Int[np.ndarray, " N"],
    answers: Shaped[np.ndarray, " N"],
    kept: Bool[np.ndarray, " N"],
) -> tuple[Int[np.ndarray, " ends"], Int[np.ndarray, " n"], Shaped[np.ndarray, " n"]]:
    """Some of the answers, in compressed rows as all of them are."""
    return np.concatenate([[0], np.cumsum(kept)])[starts], items[kept], answers[kept]
