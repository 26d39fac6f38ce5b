"""Standard errors of what items share, where there are too many parameters for a matrix of all: exact.

Means and standard deviations of groups, and coefficients of covariates, are C parameters beside thousands of items.
With A the observed information, their covariances are the inverse of S = A_cc - A_co A_oo⁻¹ A_oc. The second factor,
A_oo⁻¹ A_oc, is found by conjugate gradients, preconditioned by the blocks of the items: a product of A with a vector
takes one pass over the answers (Louis 1982, as in `observed_information`), the posterior covariance of the score of
each answer with that of the whole direction.
"""

from collections.abc import Sequence

import numpy as np
import scipy.sparse

from irtjax import processes
from irtjax.estimation.problem import Specification, layout
from irtjax.estimation.quadrature import observed_information
from irtjax.estimation.quadrature.complete_data import Part, complete_at
from irtjax.estimation.quadrature.score_moments import Scores
from irtjax.estimation.quadrature.sparse_moments import ScoreRows, rows_of
from irtjax.integration.sparse_answers import SparseAnswers
from irtjax.integration.sparse_e_step import WEIGHTS, shared_out, threads
from irtjax.item_models.protocol import Items
from irtjax.populations.kinds import Populations
from irtjax.types import Bool, Float, Int

PRECISION, MOST_STEPS = 1e-5, 200  # of conjugate gradients


@np.errstate(all="ignore")  # an item may have run off to infinity
def covariances(
    items: Items, population: Populations, parts: Sequence[Part], specification: Specification
) -> Float[np.ndarray, "C C"]:
    """Covariances of the parameters that items share, log-prior included; NaN where the answers do not determine them.

    Args:
        items: the estimate.
        population: of the estimate.
        parts: all subjects, with their posteriors on nodes that all of them share.
        specification: what is free; priors.
    """
    places = layout(specification)
    size, num_own = places.size, places.num_own
    index, (rows, columns) = observed_information.positions(places, population)
    of_complete = _sparse(observed_information.of_priors(items, specification, index), rows, columns, size)
    scores: Scores | None = None
    for part in parts:
        complete = complete_at(items, population, part)
        of_complete = of_complete + observed_information.of_complete_data(complete, population, part, places, _sparse)
        scores = observed_information.scores_at_nodes(complete, population, part, places)
    assert scores is not None
    missing = _Missing(rows_of(scores, len(items.intercept)), parts, num_own, size)

    def information(vector: Float[np.ndarray, " P"]) -> Float[np.ndarray, " P"]:
        return of_complete @ vector - missing.times(vector)

    def of_own(vector: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
        return information(np.concatenate([vector.ravel(), np.zeros(size - num_own)]))[:num_own]

    from scipy.sparse.linalg import LinearOperator, cg  # takes a while to import, and few need it

    blocks = observed_information.of_each_item(items, population, parts, specification).information
    inverse, own = _inverses(blocks, places.items, num_own)

    def precondition(vector: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
        at = np.where(own, places.items[:, : own.shape[1]], 0)
        by_item = np.einsum("ikl,il->ik", inverse, np.where(own, vector.ravel()[at], 0.0))
        return np.bincount(at[own], by_item[own], num_own)

    by_unit = np.stack([information(_unit(size, k)) for k in range(num_own, size)], axis=1)
    operator, inverse_operator = (
        LinearOperator((num_own, num_own), matvec=times, dtype=float) for times in (of_own, precondition)
    )
    solved, left = zip(
        *(
            cg(operator, column, M=inverse_operator, rtol=PRECISION, maxiter=MOST_STEPS)
            for column in by_unit[:num_own].T
        ),
        strict=True,
    )
    if any(left):  # a ridge: what is not solved has no error that could be told
        return np.full((size - num_own,) * 2, np.nan)
    rest = by_unit[num_own:] - by_unit[:num_own].T @ np.stack(solved, axis=1)
    return observed_information.covariance((rest + rest.T) / 2)


def _inverses(
    blocks: Float[np.ndarray, "I K K"], index: Int[np.ndarray, "I L"], num_own: int
) -> tuple[Float[np.ndarray, "I K K"], Bool[np.ndarray, "I K"]]:
    """The inverses of the blocks of each item, the identity where there is none; and what is an item's own."""
    width = blocks.shape[1]
    own = (index[:, :width] >= 0) & (index[:, :width] < num_own)
    blocks = np.where(own[:, :, None] & own[:, None, :], blocks, np.eye(width))
    fine = np.isfinite(blocks).all(axis=(1, 2))
    fine[fine] = np.linalg.eigvalsh(blocks[fine])[:, 0] > 0
    blocks[~fine] = np.eye(width)
    return np.linalg.inv(blocks), own


def _sparse(entries: np.ndarray, rows: np.ndarray, columns: np.ndarray, size: int) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array((entries, (rows, columns)), (size, size))


def _unit(size: int, place: int) -> Float[np.ndarray, " P"]:
    result = np.zeros(size)
    result[place] = 1.0
    return result


class _Missing:
    """The information that abilities would have added: products of posterior covariances of scores with a vector."""

    def __init__(self, rows: ScoreRows, parts: Sequence[Part], num_own: int, size: int) -> None:
        self._rows, self._parts, self._num_own, self._size = rows, parts, num_own, size

    def times(self, vector: Float[np.ndarray, " P"]) -> Float[np.ndarray, " P"]:
        """Σ_j Cov_j(s, s'v), over the subjects of all processes."""
        rows, common = self._rows, vector[self._num_own :]
        padded = np.append(vector, 0.0)
        along = np.einsum("krq,kr->rq", rows.own, padded[rows.parameter]) + np.einsum("crq,c->rq", rows.common, common)
        of_rows, of_common = np.zeros_like(along), np.zeros(len(common))
        for answers, expected, _ in self._parts:
            assert isinstance(answers, SparseAnswers)
            found = _along(answers, np.asarray(expected.weights)[0], along, rows.of_populations, common)
            of_rows, of_common = of_rows + found[0], of_common + found[1]
        result = np.zeros(self._size + 1)
        np.add.at(result, rows.parameter, np.einsum("krq,rq->kr", rows.own, of_rows))
        result[self._num_own : self._size] = np.einsum("crq,rq->c", rows.common, of_rows) + of_common
        return processes.total(result[:-1])


def _along(
    answers: SparseAnswers,
    weights: Float[np.ndarray, "J Q"],
    along: Float[np.ndarray, "R Q"],
    of_populations: Float[np.ndarray, "G Q C"] | None,
    common: Float[np.ndarray, " C"],
) -> tuple[np.ndarray, np.ndarray]:
    """What each row (R, Q), and what subjects have of populations (C,), has in common with the score along a vector."""
    table = along if answers.cells.adds is None else answers.cells.adds @ along
    number = answers.num_subjects
    block = max(64, WEIGHTS // weights.shape[1])
    shares, by_node = None, None
    if of_populations is not None:
        shares = np.asarray(answers.of_population(len(of_populations)), float)
        by_node = of_populations @ common

    def some(blocks: range) -> tuple[np.ndarray, np.ndarray]:
        of_cells, of_common = np.zeros(table.shape), np.zeros(len(common))
        for n in blocks:
            at = slice(n * block, min((n + 1) * block, number))
            cells = answers.rows(at).matrix()
            score = cells @ table
            if shares is not None:
                score += shares[at] @ by_node
            score -= np.einsum("jq,jq->j", weights[at], score)[:, None]
            score *= weights[at]
            of_cells += cells.T @ score
            if shares is not None and of_populations is not None:
                of_common += np.einsum("gq,gqc->c", shares[at].T @ score, of_populations)
        return of_cells, of_common

    found = shared_out(some, -(-number // block), threads(weights.size))
    of_cells, of_common = (sum(part) for part in zip(*found, strict=True))
    return of_cells if answers.cells.adds is None else answers.cells.adds.T @ of_cells, of_common
