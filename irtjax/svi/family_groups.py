"""What groups of subjects of about the same ability responded, from which items are estimated before a fit begins."""

from collections.abc import Callable

import numpy as np
import scipy.sparse

from irtjax.estimation.quadrature.item_score import Counts
from irtjax.integration.sparse_answers import sparse_answers
from irtjax.item_models.families import Families
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.values import OnScales
from irtjax.types import Float, Int

GROUPS = 32  # of subjects
EQUAL = 5  # decimals in which abilities are equal, in logits
TOGETHER = 2**20  # responses, or curves of items at abilities, worked on at once


def counts_by_group(responses: OnScales, families: Families) -> Callable[[Float[np.ndarray, " J"]], Counts]:
    """A function of abilities (J,): statistics at the mean ability of each of the groups that it makes of subjects."""
    sums = (
        _of_answers(responses, families) if isinstance(responses, SparseResponses) else _of_cells(responses, families)
    )

    def counts(theta: Float[np.ndarray, " J"]) -> Counts:
        group = groups(theta)
        nodes = np.bincount(group, theta) / np.bincount(group)
        return Counts(families, nodes[:, None], *sums(group))

    return counts


Sums = Callable[[Int[np.ndarray, " J"]], tuple[Float[np.ndarray, "G M"], Float[np.ndarray, "G I"]]]


def _of_cells(responses: ScaledResponses, families: Families) -> Sums:
    """Sums of statistics and of trials over groups, out of a matrix."""

    def sums(group: Int[np.ndarray, " J"]) -> tuple[Float[np.ndarray, "G M"], Float[np.ndarray, "G I"]]:
        belongs = (np.arange(group.max() + 1)[:, None] == group[None, :]).astype(float)
        statistics, observed = [], []
        for part in parts(responses.num_items, responses.num_subjects):
            values = np.asarray(responses.values[:, part])
            of_trials = (values >= 0).astype(float)
            if responses.trials is not None:
                of_trials *= responses.trials[:, part]
            statistics.append(belongs @ np.asarray(families.statistics(values)))
            observed.append(belongs @ of_trials)
        return np.concatenate(statistics, axis=1), np.concatenate(observed, axis=1)

    return sums


def _of_answers(responses: SparseResponses, families: Families) -> Sums:
    """The same, out of single answers."""
    own = responses.starts, responses.items, np.asarray(responses.answers), responses.num_items
    answers = sparse_answers(*own, families, responses.trials)
    entries = answers.matrix()

    def sums(group: Int[np.ndarray, " J"]) -> tuple[Float[np.ndarray, "G M"], Float[np.ndarray, "G I"]]:
        ends = np.arange(len(group) + 1)
        belongs = scipy.sparse.csr_array((np.ones(len(group)), group, ends), (len(group), group.max() + 1))
        return answers.expected((entries.T @ belongs).toarray())

    return sums


def groups(theta: Float[np.ndarray, " J"]) -> Int[np.ndarray, " J"]:
    """The group of each subject, of equal size by ability; equal ones in the order of the subjects."""
    # or rounding would tell those apart who responded alike, in one way in a matrix and in another answer by answer
    order = np.argsort(np.argsort(np.round(theta, EQUAL), kind="stable"), kind="stable")
    return order * min(GROUPS, len(theta)) // len(theta)


def parts(num_items: int, size: int) -> list[slice]:
    """The items in parts, of each of which there are so many numbers."""
    each = max(1, TOGETHER // size)
    return [slice(at, at + each) for at in range(0, num_items, each)]
