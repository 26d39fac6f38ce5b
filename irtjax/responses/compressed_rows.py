"""Compressed rows: entries row by row, each row's in the order of their columns; how entries come into that order."""

import numpy as np
import scipy.sparse

from irtjax.types import Bool, Int, Shaped

TOGETHER = 2**20  # answers that are sorted at once


def sorted_answers(
    subjects: Int[np.ndarray, " N"],
    items: Int[np.ndarray, " N"],
    answers: Shaped[np.ndarray, " N"],
    shape: tuple[int, int],
) -> tuple[Int[np.ndarray, " ends"], Int[np.ndarray, " N"], Shaped[np.ndarray, " N"]]:
    """Answers subject by subject, items in their order; of one cell in the order in which they came."""
    starts, order = in_rows(subjects, items, shape)
    return starts, items[order].astype(np.int32, copy=False), answers[order]


def in_rows(
    subjects: Int[np.ndarray, " N"], items: Int[np.ndarray, " N"], shape: tuple[int, int]
) -> tuple[Int[np.ndarray, " ends"], Int[np.ndarray, " N"]]:
    """Where the answers of each subject begin, and their order: by subjects, then items, then as they came.

    Subjects are put in order by counting, which compares nothing; then the items of some at a time are sorted, so that
    all of it takes little more memory than the order itself.
    """
    starts, order = grouped(subjects, shape[0])
    first = 0
    while first < shape[0]:
        after = max(first + 1, int(np.searchsorted(starts, starts[first] + TOGETHER, side="right")) - 1)
        own = order[starts[first] : starts[after]]
        row = np.repeat(np.arange(after - first), np.diff(starts[first : after + 1]))
        own[:] = own[np.argsort(row * shape[1] + items[own], kind="stable")]
        first = after
    return starts, order


def inverse(order: Int[np.ndarray, " N"]) -> Int[np.ndarray, " N"]:
    """The place of each entry in an order."""
    place = np.empty_like(order)
    for at in range(0, len(order), TOGETHER):
        some = order[at : at + TOGETHER]
        place[some] = np.arange(at, at + len(some), dtype=order.dtype)
    return place


def grouped(keys: Int[np.ndarray, " N"], size: int) -> tuple[Int[np.ndarray, " ends"], Int[np.ndarray, " N"]]:
    """Where each key from 0 to `size` - 1 begins in the stable order by keys, and this order; by counting."""
    if not len(keys):
        return np.zeros(size + 1, int), np.zeros(0, np.int32)
    number = np.int32 if len(keys) < 2**31 else np.int64
    ends = np.arange(len(keys) + 1, dtype=number)
    rows = scipy.sparse.csr_array(
        (np.empty(len(keys), np.int8), keys.astype(number, copy=False), ends), (len(keys), size)
    )
    columns = rows.tocsc()  # as SciPy turns sparse arrays
    return columns.indptr.astype(int), columns.indices


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
