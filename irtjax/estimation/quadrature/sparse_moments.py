"""Posterior means and covariances of scores, as `score_moments` has them, over single answers.

The score of an answer in the parameters of its item is a function of the cell and the node alone: a table. Only the
parameters of the items that a subject answered have scores. So the products of scores of one subject are a small
matrix, and the cost of all of them goes with the squares of the numbers of answers, not of items.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from irtjax.integration.sparse_answers import SparseAnswers
from irtjax.integration.sparse_e_step import shared_out, threads
from irtjax.integration.sparse_grid import BLAS
from irtjax.types import Float, Int

TABLE = 2**24  # scores of cells at nodes that are held at once
WEIGHTS = 2**21  # posterior weights of the subjects that are taken at once
CHUNK = 2**19  # scores of answers at nodes that a thread holds
SPREAD = 1.5  # how much longer the longest of some subjects may be who are taken together


def most_subjects(answers: SparseAnswers, num_nodes: int) -> int:
    """How many subjects may be taken at once."""
    most = max(1, WEIGHTS // num_nodes)
    if answers.cells.adds is None:  # each answer is a cell then
        mean = len(answers.columns) / max(answers.num_subjects, 1)
        most = min(most, max(1, int(TABLE / (8 * num_nodes * max(mean, 1)))))
    return most


class _Table(NamedTuple):
    """Scores of cells at nodes.

    Attributes:
        own: (K, C, Q) in the parameters of the item of the cell.
        common: (L, C, Q) in those that items share.
    """

    own: Float[np.ndarray, "K C Q"]
    common: Float[np.ndarray, "L C Q"]


def _of_cells(answers: SparseAnswers, mean: Float[np.ndarray, "Q M"], by: Float[np.ndarray, "Q M"]) -> np.ndarray:
    """Scores (C, Q) of cells in one parameter of each item: (T - n E T) ∂η."""
    size = mean.shape[1]
    both = np.concatenate([by.T, -(mean * by).reshape(len(by), answers.num_items, -1).sum(axis=2).T])
    assert size + answers.num_items == len(both)
    return answers.cells.adds @ both


def squared_means(
    weights: Float[np.ndarray, "J Q"],
    answers: SparseAnswers,
    mean: Float[np.ndarray, "Q M"],
    by: Float[np.ndarray, "Q M K"],
) -> Float[np.ndarray, "I K K"]:
    """Squares (I, K, K) of posterior mean scores, ∂η being `by`, summed over subjects."""
    answers = answers.with_cells()
    size = by.shape[2]
    table = np.stack([_of_cells(answers, mean, by[:, :, k]) for k in range(size)])
    subjects, item = answers.subjects(), answers.cells.item[answers.columns]
    step = max(1, CHUNK // weights.shape[1])

    def some(chunks: range) -> np.ndarray:
        result = np.zeros((size, size, answers.num_items))
        for number in chunks:
            at = slice(number * step, (number + 1) * step)
            of_subjects, cells = weights[subjects[at]], answers.columns[at]
            means = [np.einsum("nq,nq->n", of_subjects, table[k][cells]) for k in range(size)]
            for k in range(size):
                for n in range(k + 1):
                    result[k, n] += np.bincount(item[at], means[k] * means[n], answers.num_items)
        return result

    number = -(-len(subjects) // step)
    found = sum(shared_out(some, number, threads(len(subjects) * weights.shape[1])))
    lower = np.moveaxis(found, 2, 0)
    return lower + np.tril(lower, -1).swapaxes(1, 2)


def products(weights: Float[np.ndarray, "J Q"], answers: SparseAnswers) -> Float[np.ndarray, "Q I S+1 S+1"]:
    """Products of the statistics and the trials of each item, as the posteriors expect them."""
    answers = answers.with_cells()
    of_cells = answers.matrix().T @ weights
    adds, item, num_items = answers.cells.adds, answers.cells.item, answers.num_items
    per_item = adds.shape[1] // num_items - 1
    statistics = [adds[:, s : num_items * per_item : per_item].sum(axis=1) for s in range(per_item)]
    parts = [*statistics, adds[:, num_items * per_item :].sum(axis=1)]
    result = np.empty((weights.shape[1], num_items, per_item + 1, per_item + 1))
    for k, one in enumerate(parts):
        for n, other in enumerate(parts[: k + 1]):
            both = np.zeros((num_items, weights.shape[1]))
            np.add.at(both, item, of_cells * (np.asarray(one) * np.asarray(other))[:, None])
            result[:, :, k, n] = result[:, :, n, k] = both.T
    return result


def covariances(weights: Float[np.ndarray, "J Q"], answers: SparseAnswers, scores: Any) -> Float[np.ndarray, "P P"]:
    """Posterior covariances (P, P) of the scores of all parameters, summed over subjects.

    Args:
        weights: of the posteriors at nodes.
        answers: of J subjects.
        scores: `score_moments.Scores` at the nodes.
    """
    answers = answers.with_cells()
    num_own, num_common = scores.own.shape[1], scores.common.shape[2]
    num_columns = answers.cells.adds.shape[1] - answers.num_items
    mean, of_items = scores.mean[:, :num_columns], scores.common[:, :num_columns]
    place = _places(scores.columns, num_columns // answers.num_items, answers.num_items)
    own = []
    for at in place.T:
        by = np.zeros_like(mean)
        for s in range(scores.columns.shape[1]):
            by[:, scores.columns[at[at >= 0], s]] = scores.own[:, at[at >= 0], s]
        own.append(_of_cells(answers, mean, by))
    common = [_of_cells(answers, mean, of_items[:, :, k]) for k in range(num_common)]
    none = np.zeros((0, *answers.cells.adds.shape[:1], len(mean)))
    table = _Table(np.stack(own) if own else none, np.stack(common) if common else none)
    shared = _of_populations(answers, scores, num_columns)
    result = np.zeros((num_own + num_common + 1,) * 2)  # the last of which is for what an item does not have
    with BLAS.limit(limits=1, user_api="blas"):  # products of small matrices: threads would wait for each other
        for rows in _alike(np.diff(answers.starts), len(mean) * max(1, place.shape[1])):
            result += _of_subjects(len(result), rows, weights, answers, table, place, shared)
    return result[:-1, :-1]


def _places(columns: Int[np.ndarray, "N S"], per_item: int, num_items: int) -> Int[np.ndarray, "I K"]:
    """The parameters of each item, by their numbers; -1 where it has fewer."""
    item = columns[:, 0] // per_item
    nth = np.arange(len(item)) - np.searchsorted(item, item)
    result = np.full((num_items, int(nth.max(initial=-1)) + 1), -1)
    result[item, nth] = np.arange(len(item))
    return result


def _of_populations(answers: SparseAnswers, scores: Any, num_columns: int) -> tuple[Any, Any] | None:
    """What each subject has of the populations (J, G), and its scores (G, Q, L) in the parameters in common."""
    more = scores.mean.shape[1] - num_columns
    of_subjects = answers.of_population(more) if more > 0 else None
    if of_subjects is None:
        return None
    return np.asarray(of_subjects, float), np.moveaxis(scores.common[:, num_columns:], 1, 0)


def _alike(lengths: Int[np.ndarray, " J"], of_answer: int) -> Iterator[Int[np.ndarray, " n"]]:
    """Subjects with about as many answers each, few enough to be held at a time."""
    order = np.argsort(lengths, kind="stable")
    at = 0
    while at < len(order):
        longest = max(1, int(SPREAD * lengths[order[at]]))
        end = at + int(np.searchsorted(lengths[order[at:]], longest, side="right"))
        end = min(end, at + max(1, CHUNK * 8 // (longest * of_answer)))
        yield order[at:end]
        at = end


def _of_subjects(
    num_parameters: int,
    rows: Int[np.ndarray, " n"],
    weights: Float[np.ndarray, "J Q"],
    answers: SparseAnswers,
    table: _Table,
    place: Int[np.ndarray, "I K"],
    shared: tuple[Any, Any] | None,
) -> Float[np.ndarray, "P P"]:
    """The covariances of the scores of some subjects."""
    some, root = answers.rows(rows), np.sqrt(weights[rows])
    lengths = np.diff(some.starts)
    number, most, (size, _, num_nodes) = len(rows), int(lengths.max(initial=0)), table.own.shape
    who = np.repeat(np.arange(number), lengths)
    nth = np.arange(len(some.columns)) - some.starts[:-1][who]
    num_common = len(table.common)
    scores = np.zeros((number, most * size + num_common, num_nodes))
    at = np.full((number, most * size + num_common), num_parameters - 1)
    for k in range(size):
        scores[who, nth * size + k] = table.own[k][some.columns]
        at[who, nth * size + k] = place[answers.cells.item[some.columns], k] % num_parameters  # -1 is the last
    if num_common:
        cells = some.matrix()
        for k in range(num_common):
            scores[:, most * size + k] = cells @ table.common[k]
            at[:, most * size + k] = num_parameters - 1 - num_common + k
    if shared is not None:
        of_subjects, by_node = shared
        scores[:, most * size :] += np.einsum("ng,gqk->nkq", of_subjects[rows], by_node)
    means = np.einsum("npq,nq->np", scores, weights[rows])
    scores -= means[:, :, None]
    scores *= root[:, None, :]
    found = scores @ scores.transpose(0, 2, 1)
    pairs = at[:, :, None] * num_parameters + at[:, None, :]
    return np.bincount(pairs.ravel(), found.ravel(), num_parameters**2).reshape(num_parameters, -1)
