"""Means of functions of ability over the posteriors of subjects, at each of their answers.

Of an answer of subject j to item i it is Σ_q w_jq f_i(θ_q). Where most cells have an answer, a product of matrices has
that of every cell; where few have one, it is made for each answer alone.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from irtjax.types import Bool, Float, Int

DENSE = 0.04  # share of the cells, from which on a product of matrices takes no longer
AT_A_TIME = 2**17  # numbers gathered, which fit into the cache


class AnswerMeans(NamedTuple):
    """Answers, and the posteriors of those who gave them.

    Attributes:
        weights: (B, Q) of the nodes.
        subjects: (n,) the row of each answer there.
        items: (n,) what was answered.
    """

    weights: Float[np.ndarray, "B Q"]
    subjects: Int[np.ndarray, " n"]
    items: Int[np.ndarray, " n"]

    def of(
        self, tables: Sequence[Float[np.ndarray, "Q I"]], chosen: Bool[np.ndarray, " n"] | None = None
    ) -> list[Float[np.ndarray, " _"]]:
        """Means of some functions, each of which has a column for every item.

        Args:
            tables: of the functions.
            chosen: some of the answers.
        """
        subjects, items = (self.subjects, self.items) if chosen is None else (self.subjects[chosen], self.items[chosen])
        number = tables[0].shape[1]
        if len(self.subjects) >= DENSE * len(self.weights) * number:
            at = subjects.astype(np.int64) * number + items
            return [(self.weights @ table).ravel()[at] for table in tables]
        by_item = [np.ascontiguousarray(table.T) for table in tables]
        found = [np.empty(len(items)) for _ in tables]
        size = max(1, AT_A_TIME // self.weights.shape[1])
        for first in range(0, len(items), size):
            part = slice(first, first + size)
            weights, columns = self.weights[subjects[part]], items[part]
            for mean, table in zip(found, by_item, strict=True):
                np.einsum("nq,nq->n", weights, table[columns], out=mean[part])
        return found
