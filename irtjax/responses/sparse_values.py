"""Single answers, read like a matrix: blocks of it are made when they are asked for."""

from typing import Any

import numpy as np
import scipy.sparse

from irtjax.errors import InputError
from irtjax.responses.matrix import MISSING
from irtjax.types import Bool, Int, Shaped


class SparseValues:
    """Responses as a matrix (J, I) that is never whole: `values[subjects, items]`, both of them slices, is an array.

    Attributes:
        responses: the answers, `SparseResponses`.
        shape: J and I.
        size: J times I.
        dtype: of the answers.
    """

    def __init__(self, responses: Any) -> None:
        self.responses, self.shape = responses, (responses.num_subjects, responses.num_items)
        self.size, self.dtype = self.shape[0] * self.shape[1], np.asarray(responses.answers).dtype

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        """Not all at once.

        Raises:
            InputError: always.
        """
        raise InputError("this needs the whole matrix of responses: give it `responses.read()`")

    def __getitem__(self, at: tuple[slice, slice]) -> Shaped[np.ndarray, "_ _"]:
        if not isinstance(at, tuple) or not all(isinstance(one, slice) and one.step is None for one in at):
            raise InputError("this needs the whole matrix of responses: give it `responses.read()`")
        subjects, items = (range(*one.indices(size)) for one, size in zip(at, self.shape, strict=True))
        own = self.responses
        part = slice(int(own.starts[subjects.start]), int(own.starts[max(subjects.stop, subjects.start)]))
        columns, answers = own.items[part], own.answers[part]
        rows = np.repeat(
            np.arange(len(subjects)), np.diff(own.starts[subjects.start : subjects.start + len(subjects) + 1])
        )
        result = np.full((len(subjects), len(items)), MISSING, self.dtype)
        here = (columns >= items.start) & (columns < items.stop)
        result[rows[here], columns[here] - items.start] = answers[here]
        return result

    def counts(self, axis: int) -> tuple[Shaped[np.ndarray, " N"], Int[np.ndarray, " N"]]:
        """As `SparseResponses.counts`."""
        return self.responses.counts(axis)

    def observed(self, chosen: Bool[np.ndarray, " I"]) -> Any:
        """Which of some items each subject answered: 1, in an array of SciPy (J, chosen)."""
        own = self.responses.choose_items(chosen)
        return scipy.sparse.csr_array((np.ones(own.num_answers), own.items, own.starts), own.values.shape)
