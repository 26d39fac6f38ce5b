"""Responses wherever they are, in memory or left in files: how both are read and counted."""

from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np

from irtjax import processes
from irtjax.errors import InputError
from irtjax.responses.matrix import ResponseMatrix, counts
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.sparse_values import SparseValues
from irtjax.responses.stored import ALL, StoredResponses, StoredValues
from irtjax.types import Int

Responses = ResponseMatrix | StoredResponses | SparseResponses
OnScales = ScaledResponses | SparseResponses  # whose scales are there

MOST_CELLS = 2**27  # of a matrix that is made of single answers, where each takes 8 bytes, and that several times


def on_scales(responses: Any) -> TypeGuard[OnScales]:
    """Whether items have scales of their own, and are not right or wrong."""
    return getattr(responses, "scales", None) is not None


def whole(responses: Any) -> Any:
    """The `ResponseMatrix` or `ScaledResponses` of all cells, for what holds several numbers of 8 bytes for each cell.

    Raises:
        InputError: responses that are held by the answer have too many cells for that.
    """
    cells = responses.num_subjects * responses.num_items
    if isinstance(responses, SparseResponses) and cells > MOST_CELLS:
        raise InputError(
            f"{responses.num_subjects:,} subjects × {responses.num_items:,} items with {responses.num_answers:,} "
            f"answers: this goes through all cells, of which {MOST_CELLS:,} fit into memory: give it fewer subjects or "
            "items (`choose_subjects`, `choose_items`)"
        )
    return responses.read()


def in_memory(responses: Any) -> Any:
    """Responses that were left in files, as a matrix; others as they are."""
    return responses.read() if isinstance(responses, StoredResponses) else responses


@runtime_checkable
class Values(Protocol):
    """What can be read like a matrix (J, I) int8: `values[rows, columns]`, both of them slices, is an array."""

    @property
    def shape(self) -> tuple[int, ...]:
        """J and I."""

    def __getitem__(self, at: tuple[slice, slice]) -> np.ndarray:
        """A part of it; 1 right, 0 wrong, -1 missing."""


def counts_of(values: Values, axis: int) -> tuple[Int[np.ndarray, " N"], Int[np.ndarray, " N"]]:
    """As `counts`; what is stored in files is counted once, each process a part."""
    return values.counts(axis) if isinstance(values, StoredValues | SparseValues) else counts(np.asarray(values), axis)


def keep(values: Values, subjects: slice = ALL, items: slice = ALL) -> None:
    """As `StoredValues.keep`; what is in memory already stays there."""
    if isinstance(values, StoredValues):
        values.keep(subjects, items)


def mine(values: Values) -> tuple[slice, slice]:
    """Subjects and items of this process's part in sums over all; the parts of all processes are the whole."""
    if processes.number() == 1:
        return ALL, ALL
    return (isinstance(values, StoredValues) and values.held) or (ALL, processes.share(values.shape[1]))
