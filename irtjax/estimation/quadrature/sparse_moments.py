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
from irtjax.types import Float, Int

TABLE = 2**24  # scores of cells at nodes that are held at once
WEIGHTS = 2**26  # posterior weights of the subjects that are taken at once: 0.5 GB
CHUNK = 2**19  # scores of answers at nodes that a thread holds
PRODUCTS = 2**22  # of scores that a thread holds before they are added up
SPREAD = 1.25  # how much longer the longest of some subjects may be who are taken together


def most_subjects(answers: SparseAnswers, num_nodes: int) -> int:
    """How many subjects may be taken at once."""
    most = max(1, WEIGHTS // num_nodes)
    if answers.cells.adds is None:  # each answer is a cell then
        mean = len(answers.columns) / max(answers.num_subjects, 1)
        most = min(most, max(1, int(TABLE / (8 * num_nodes * max(mean, 1)))))
    return most


class ScoreRows(NamedTuple):
    """Scores at nodes as sums over statistics and trials: (T - n E T) ∂η.

    Attributes:
        own: (K, M + I, Q) in the k-th own parameter of the item of each row.
        common: (C, M + I, Q) in what items share.
        parameter: (K, M + I) which it is; P where there is none.
        of_populations: (G, Q, C) of what subjects have of populations; None of one population.
    """

    own: Float[np.ndarray, "K R Q"]
    common: Float[np.ndarray, "C R Q"]
    parameter: Int[np.ndarray, "K R"]
    of_populations: Float[np.ndarray, "G Q C"] | None


def rows_of(scores: Any, num_items: int) -> ScoreRows:
    """The rows of `score_moments.Scores` at nodes."""
    per_item = scores.columns.shape[1]
    width = num_items * per_item
    mean, common = np.asarray(scores.mean)[:, :width], np.asarray(scores.common)[:, :width]
    num_own, item = len(scores.columns), scores.columns[:, 0] // per_item
    nth = np.arange(num_own) - np.searchsorted(item, item)
    number = int(nth.max(initial=-1)) + 1
    own = np.zeros((number, width + num_items, len(mean)))
    place = np.full((number, num_items), num_own + scores.common.shape[2])
    for k in range(number):
        at = np.flatnonzero(nth == k)
        place[k, item[at]] = at
        by = np.zeros_like(mean)
        for s in range(per_item):
            by[:, scores.columns[at, s]] = scores.own[:, at, s]
        own[k] = _of_answers(mean, by, num_items)
    shared = [_of_answers(mean, common[:, :, k], num_items) for k in range(common.shape[2])]
    more = scores.mean.shape[1] - width
    return ScoreRows(
        own,
        np.stack(shared) if shared else np.zeros((0, *own.shape[1:])),
        np.concatenate([np.repeat(place, per_item, axis=1), place], axis=1),
        np.moveaxis(np.asarray(scores.common)[:, width:], 1, 0) if more else None,
    )


def _of_answers(mean: Float[np.ndarray, "Q M"], by: Float[np.ndarray, "Q M"], num_items: int) -> np.ndarray:
    """What statistics and trials add to a score (M + I, Q)."""
    return np.concatenate([by.T, -(mean * by).reshape(len(by), num_items, -1).sum(axis=2).T])


def squared_means(
    weights: Float[np.ndarray, "J Q"],
    answers: SparseAnswers,
    mean: Float[np.ndarray, "Q M"],
    by: Float[np.ndarray, "Q M K"],
) -> Float[np.ndarray, "I K K"]:
    """Squares (I, K, K) of posterior mean scores, ∂η being `by`, summed over subjects."""
    answers = answers.with_cells()
    size = by.shape[2]
    table = np.stack([answers.cells.adds @ _of_answers(mean, by[:, :, k], answers.num_items) for k in range(size)])
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
    for k, n in zip(*np.tril_indices(size, -1), strict=True):
        found[n, k] = found[k, n]
    return np.moveaxis(found, 2, 0)


def products(weights: Float[np.ndarray, "J Q"], answers: SparseAnswers) -> Float[np.ndarray, "Q I T T"]:
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
    answers, rows = answers.with_cells(), rows_of(scores, answers.num_items)
    own, common = (_of_cells(answers, some) for some in (rows.own, rows.common))
    table = _Table(own, common, rows.parameter[:, -answers.num_items :].T)
    shared = None
    if rows.of_populations is not None:
        of_subjects = np.asarray(answers.of_population(len(rows.of_populations)), float)
        shared = of_subjects, rows.of_populations
    size = scores.size + 1  # the last of which is for what an item does not have
    parts = list(_alike(np.diff(answers.starts), len(scores.mean) * max(1, len(own))))

    def some(of_parts: range) -> Float[np.ndarray, "P P"]:
        result, held = np.zeros(size * size), []
        for number in of_parts:
            held.append(_of_subjects(size, parts[number], weights, answers, table, shared))
            # a sum over the places of all pairs reads and writes all of them: there are more products than that
            if number == of_parts[-1] or sum(len(places) for places, _ in held) > max(PRODUCTS, size * size):
                places, found = map(np.concatenate, zip(*held, strict=True))
                result += np.bincount(places, found, size * size)
                held.clear()
        return result.reshape(size, size)

    half = sum(shared_out(some, len(parts), threads(weights.size)))[:-1, :-1]
    return half + half.T


class _Table(NamedTuple):
    """Scores of cells at nodes.

    Attributes:
        own: (K, C, Q) in the parameters of the item of the cell.
        common: (L, C, Q) in those that items share.
        parameter: (I, K) which those of an item are.
    """

    own: Float[np.ndarray, "K C Q"]
    common: Float[np.ndarray, "L C Q"]
    parameter: Int[np.ndarray, "I K"]


def _of_cells(answers: SparseAnswers, rows: Float[np.ndarray, "K R Q"]) -> Float[np.ndarray, "K C Q"]:
    result = np.empty((len(rows), answers.cells.adds.shape[0], rows.shape[2]))
    for k, one in enumerate(rows):
        result[k] = answers.cells.adds @ one
    return result


def _alike(lengths: Int[np.ndarray, " J"], of_answer: int) -> Iterator[Int[np.ndarray, " n"]]:
    """Subjects with about as many answers each, few enough to be held at a time."""
    order = np.argsort(lengths, kind="stable")
    at = 0
    while at < len(order):
        longest = max(1, int(SPREAD * lengths[order[at]]))
        end = at + int(np.searchsorted(lengths[order[at:]], longest, side="right"))
        end = min(end, at + max(1, CHUNK // (longest * of_answer)))
        yield order[at:end]
        at = end


def _of_subjects(
    num_parameters: int,
    rows: Int[np.ndarray, " n"],
    weights: Float[np.ndarray, "J Q"],
    answers: SparseAnswers,
    table: _Table,
    shared: tuple[Any, Any] | None,
) -> tuple[Int[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """Places in a matrix (P, P), and what the covariances of the scores of some subjects add there; half of each pair.

    The other half belongs to its mirror image.
    """
    some = answers.rows(rows)
    lengths = np.diff(some.starts)
    number, most, (size, _, num_nodes) = len(rows), int(lengths.max(initial=0)), table.own.shape
    who = np.repeat(np.arange(number), lengths)
    nth = np.arange(len(some.columns)) - some.starts[:-1][who]
    num_common = len(table.common)
    scores = np.zeros((number, most * size + num_common, num_nodes))
    at = np.full((number, most * size + num_common), num_parameters - 1)
    for k in range(size):
        scores[who, nth * size + k] = table.own[k][some.columns]
        at[who, nth * size + k] = table.parameter[answers.cells.item[some.columns], k]
    if num_common:
        cells = some.matrix()
        for k in range(num_common):
            scores[:, most * size + k] = cells @ table.common[k]
            at[:, most * size + k] = num_parameters - 1 - num_common + k
    if shared is not None:
        of_subjects, by_node = shared
        scores[:, most * size :] += np.einsum("ng,gqk->nkq", of_subjects[rows], by_node)
    scores -= scores @ weights[rows][:, :, None]
    scores *= np.sqrt(weights[rows])[:, None, :]
    found = scores @ scores.transpose(0, 2, 1)
    one, other = np.tril_indices(at.shape[1])
    found = found[:, one, other]
    found[:, one == other] /= 2
    return (at[:, one] * num_parameters + at[:, other]).ravel(), found.ravel()
