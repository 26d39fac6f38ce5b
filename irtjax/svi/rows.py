"""Answers in rows of one width, by subject and by item, as kernels over single answers read them."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse

from irtjax import processes
from irtjax.kernels.answers import Answers, Rows, answers_at_once
from irtjax.kernels.one_pass_answers import ScaledAnswers, ScaledRows
from irtjax.responses.matrix import MISSING
from irtjax.types import Int, Shaped

WIDTHS = tuple(2**power for power in range(2, 9))  # of rows of answers
KEYS_AT_ONCE = 2**16  # of a side, that are written to rows
OF_A_ROW = 2  # answers in the time of which a row is begun

Compressed: TypeAlias = Any  # rows or columns of SciPy


class _Shape(NamedTuple):
    """Of the rows of a block: how often so many rows at a time, and answers in each."""

    times: int
    rows: int
    width: int


def of_codes(blocks: list[scipy.sparse.csr_array]) -> Answers:
    """Right and wrong answers of several blocks in rows, of one shape for those of all processes.

    Args:
        blocks: of the last two bits of their codes, by subject and item.
    """

    def rows(side: list[Compressed]) -> Rows:
        shape, keys = _keys(side)
        return Rows(_written(side, shape, lambda places, bits: 4 * places.astype(np.int32) + bits, np.int32, 0), keys)

    return Answers(rows(blocks), rows([block.tocsc() for block in blocks]))


def of_responses(blocks: list[scipy.sparse.csr_array], leaves: tuple[Shaped[np.ndarray, " N"], ...]) -> ScaledAnswers:
    """Responses on scales of their own, as `of_codes`.

    Args:
        blocks: of where each response is in the leaves, by subject and item.
        leaves: what responses are: values, and trials of counts.
    """

    def rows(side: list[Compressed]) -> ScaledRows:
        shape, keys = _keys(side)
        places = _written(side, shape, lambda places, _: places, np.int32, 0)
        cells = tuple(_written(side, shape, lambda _, at, leaf=leaf: leaf[at], leaf.dtype, MISSING) for leaf in leaves)
        return ScaledRows(places, keys, cells)

    return ScaledAnswers(rows(blocks), rows([block.tocsc() for block in blocks]))


def _keys(side: list[Compressed]) -> tuple[_Shape, Int[np.ndarray, "B T R"]]:
    """The shape of rows that takes the least work, and whose they are."""
    lengths = [np.diff(block.indptr) for block in side]
    numbers = [[int((-(-each // width)).sum()) for width in WIDTHS] for each in lengths]
    told = np.array(processes.everyone([np.sum(numbers, axis=0).tolist(), np.max(numbers, axis=0).tolist()]))
    best = int(np.argmin(told[:, 0].sum(axis=0) * (np.array(WIDTHS) + OF_A_ROW)))
    width, most = WIDTHS[best], int(told[:, 1, best].max())
    times = max(1, -(-most * width // answers_at_once()))
    shape = _Shape(times, -(-most // times), width)
    keys = np.empty((len(side), shape.times * shape.rows), np.int32)
    for row, each in zip(keys, lengths, strict=True):
        found = np.repeat(np.arange(len(each), dtype=np.int32), -(-each // width))
        row[: len(found)], row[len(found) :] = found, len(each) - 1
    return shape, keys.reshape(-1, shape.times, shape.rows)


def _written(
    side: list[Compressed], shape: _Shape, of: Callable, kind: np.dtype | type, padding: int
) -> Shaped[np.ndarray, "B T R W"]:
    """What `of` the places on the other side and the entries says of each answer, and padding behind them."""
    found = np.full((len(side), shape.times * shape.rows * shape.width), padding, kind)
    for row, block in zip(found, side, strict=True):
        each = np.diff(block.indptr)
        number = -(-each // shape.width)
        # an answer is further on by the padding of the keys before its own
        before = shape.width * (np.cumsum(number) - number) - block.indptr[:-1]
        for first in range(0, len(each), KEYS_AT_ONCE):
            some = slice(first, first + KEYS_AT_ONCE)
            begin, end = block.indptr[first], block.indptr[min(first + KEYS_AT_ONCE, len(each))]
            at = np.arange(begin, end) + np.repeat(before[some], each[some])
            row[at] = of(block.indices[begin:end], block.data[begin:end])
    return found.reshape(len(side), *shape)
