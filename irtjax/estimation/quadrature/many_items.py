"""Standard errors where there are too many parameters for a matrix of all: exact but for small shares.

The observed information A is nearly block-diagonal: what the answers to one item say of another is little. But a few
directions concern all items at once. Along them the scale could be stretched here and there, and all items with it:
where subjects are asked what suits them, items of different difficulty are linked by chains of subjects alone. With D
the blocks of A, of each item and of what all share, and L L' = D,

    A⁻¹ ≈ D⁻¹ + Σ_k λ_k / (1 - λ_k) u_k u_k',     u_k = L'⁻¹ x_k,

over the largest eigenvalues λ_k of 1 - L⁻¹ A L'⁻¹, with their eigenvectors x_k (Lanczos, in ARPACK). Those that are
left out are small, and each adds λ/(1 - λ) of a share of the variance. Parameters that items share, such as those of
populations, are eliminated: A⁻¹ is that of the items alone, A_oo⁻¹, and X S⁻¹ X' with X = A_oo⁻¹ A_oc, from conjugate
gradients, and S = A_cc - A_co X. A product of A with a vector takes one pass over the answers (Louis 1982, as in
`observed_information`): the posterior covariance of the score of each answer with that of the whole direction.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, cg, eigsh

from irtjax import processes
from irtjax.estimation.problem import Layout, Specification, layout
from irtjax.estimation.quadrature import observed_information
from irtjax.estimation.quadrature.complete_data import Part, complete_at
from irtjax.estimation.quadrature.score_moments import Scores
from irtjax.estimation.quadrature.sparse_moments import ScoreRows, rows_of
from irtjax.integration.sparse_answers import SparseAnswers
from irtjax.integration.sparse_e_step import WEIGHTS, shared_out, threads
from irtjax.item_models.protocol import Items
from irtjax.populations.kinds import Populations
from irtjax.types import Bool, Float, Int

Product = Callable[[Float[np.ndarray, " P"]], Float[np.ndarray, " P"]]  # of the information with a vector

DIRECTIONS = 6  # that are looked for
PRECISION = 0.01  # of their eigenvalues
MOST_RESTARTS = 2
OF_COMMON, MOST_STEPS = 1e-4, 50  # precision and steps of conjugate gradients
IDENTIFIED = 1 - 1e-6  # of an eigenvalue, beyond which a direction is not determined


class Covariances(NamedTuple):
    """The inverse of the information, as blocks and directions.

    Attributes:
        places: (I, K) the parameters of each item among all, -1 where one is held; beyond N those that items share.
        root: (I, K, K) L⁻¹ of each item, the identity of what is held or has no information.
        known: (N,) whether a parameter of its own has a block that can be inverted.
        directions: (N, R) u.
        shares: (R,) λ / (1 - λ).
        by_common: (N, C) X.
        common: (C, C) S⁻¹.
    """

    places: Int[np.ndarray, "I K"]
    root: Float[np.ndarray, "I K K"]
    known: Bool[np.ndarray, " N"]
    directions: Float[np.ndarray, "N R"]
    shares: Float[np.ndarray, " R"]
    by_common: Float[np.ndarray, "N C"]
    common: Float[np.ndarray, "C C"]

    def times_root(self, vector: Float[np.ndarray, " N"], *, transposed: bool = False) -> Float[np.ndarray, " N"]:
        """L⁻¹ or L'⁻¹ times a vector; 0 for what is not known."""
        own = (self.places >= 0) & (self.places < len(self.known))
        root = self.root.swapaxes(1, 2) if transposed else self.root
        by_item = np.einsum("ikl,il->ik", root, np.where(own, vector[np.where(own, self.places, 0)], 0.0))
        result = np.empty_like(vector)
        result[self.places[own]] = by_item[own]
        return np.where(self.known, result, 0.0)

    def of_own(self, vector: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
        """A_oo⁻¹ times a vector."""
        of_blocks = self.times_root(self.times_root(vector), transposed=True)
        return of_blocks + self.directions @ (self.shares * (self.directions.T @ vector))

    def squared_length(self, vector: Float[np.ndarray, " P"]) -> float:
        """Vector' A⁻¹ vector."""
        own, common = np.split(vector, [len(self.known)])
        rest = common - self.by_common.T @ own
        return float(own @ self.of_own(own) + rest @ self.common @ rest)

    def of_items(self) -> Float[np.ndarray, "I K K"]:
        """Those of the parameters of each item; 0 where one is held, NaN where nothing is known of an item."""
        num_own, free = len(self.known), self.places >= 0
        own = free & (self.places < num_own)
        at = np.where(own, self.places, 0)
        result = np.where(own[:, :, None] & own[:, None, :], self.root.swapaxes(1, 2) @ self.root, 0.0)
        some = np.where(own[:, :, None], self.directions[at], 0.0)
        result += (some * self.shares) @ some.swapaxes(1, 2)
        of_common = np.where(free & ~own, self.places - num_own, 0)
        unit = np.eye(len(self.common))[of_common] if len(self.common) else 0.0
        by = np.where(own[:, :, None], -self.by_common[at], np.where(free[:, :, None], unit, 0.0))
        result += by @ self.common @ by.swapaxes(1, 2)
        result[(own & ~self.known[at]).any(axis=1)] = np.nan
        return result

    def between(self, places: Int[np.ndarray, " n"]) -> Float[np.ndarray, "n n"]:
        """Those of some of the parameters that items share."""
        at = places - len(self.known)
        return self.common[np.ix_(at, at)]


@np.errstate(all="ignore")  # an item may have run off to infinity
def covariances_of(
    items: Items, population: Populations, parts: Sequence[Part], specification: Specification
) -> Covariances | None:
    """The inverse of the observed information, log-prior included; None where the answers do not determine it.

    Args:
        items: the estimate.
        population: of the estimate.
        parts: all subjects, with their posteriors on nodes that all of them share.
        specification: what is free; priors.
    """
    places = layout(specification)
    index, (rows, columns) = observed_information.positions(places, population)
    of_complete = _sparse(observed_information.of_priors(items, specification, index), rows, columns, places.size)
    scores: Scores | None = None
    for part in parts:
        complete = complete_at(items, population, part)
        of_complete = of_complete + observed_information.of_complete_data(complete, population, part, places, _sparse)
        scores = observed_information.scores_at_nodes(complete, population, part, places)
    assert scores is not None
    missing = _Missing(rows_of(scores, len(items.intercept)), parts, places.num_own, places.size)

    def information(vector: Float[np.ndarray, " P"]) -> Float[np.ndarray, " P"]:
        return of_complete @ vector - missing.times(vector)

    blocks = observed_information.of_each_item(items, population, parts, specification).information
    found = _with_directions(_of_blocks(blocks, places), information, places.size)
    return None if found is None else _with_common(found, information, places.size)


def _of_blocks(blocks: Float[np.ndarray, "I K K"], places: Layout) -> Covariances:
    """Roots of the inverses of blocks; what has none is not known."""
    width, num_own = blocks.shape[1], places.num_own
    index = places.items[:, :width]
    own = (index >= 0) & (index < num_own)
    blocks = np.where(own[:, :, None] & own[:, None, :], blocks, np.eye(width))
    fine = np.isfinite(blocks).all(axis=(1, 2))
    fine[fine] = np.linalg.eigvalsh(blocks[fine])[:, 0] > 0
    roots = np.broadcast_to(np.eye(width), blocks.shape).copy()
    roots[fine] = np.linalg.inv(np.linalg.cholesky(blocks[fine]))
    known = np.ones(num_own, bool)
    known[index[own & ~fine[:, None]]] = False
    none, number = np.zeros((num_own, 0)), places.size - num_own
    return Covariances(index, roots, known, none, np.zeros(0), np.zeros((num_own, number)), np.zeros((number, number)))


def _with_directions(found: Covariances, information: Product, size: int) -> Covariances | None:
    """Blocks with the directions that concern all items; None where one of them is not determined."""
    num_own = len(found.known)
    rest = np.zeros(size - num_own)

    def apply(x: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
        x = np.where(found.known, x.ravel(), 0.0)
        at = found.times_root(x, transposed=True)
        return x - found.times_root(information(np.concatenate([at, rest]))[:num_own])

    number = min(DIRECTIONS, num_own - 2)
    if number < 1:
        return found
    begun = np.random.default_rng(0).standard_normal(num_own)
    operator = LinearOperator((num_own, num_own), matvec=apply, dtype=float)
    try:
        values, vectors = eigsh(operator, number, which="LA", v0=begun, tol=PRECISION, maxiter=MOST_RESTARTS)
    except ArpackNoConvergence as error:  # small ones, of which there are many alike
        values, vectors = error.eigenvalues, error.eigenvectors
    if values.size and values.max() > IDENTIFIED:
        return None
    directions = np.array([found.times_root(x, transposed=True) for x in vectors.T]).reshape(-1, num_own).T
    return found._replace(directions=directions, shares=values / (1 - values))


def _with_common(found: Covariances, information: Product, size: int) -> Covariances | None:
    """The same with what items share; None where the answers do not determine it."""
    num_own = len(found.known)
    number = size - num_own
    if not number:
        return found
    columns = np.stack([information(_unit(size, k)) for k in range(num_own, size)], axis=1)
    cross = np.where(found.known[:, None], columns[:num_own], 0.0)

    def apply(x: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
        return np.where(found.known, information(np.concatenate([x.ravel(), np.zeros(number)]))[:num_own], x.ravel())

    def precondition(x: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
        return np.where(found.known, found.of_own(x.ravel()), x.ravel())

    operator, inverse = (
        LinearOperator((num_own, num_own), matvec=times, dtype=float) for times in (apply, precondition)
    )
    solved = [cg(operator, column, M=inverse, rtol=OF_COMMON, maxiter=MOST_STEPS)[0] for column in cross.T]
    by_common = np.stack(solved, axis=1)
    rest = columns[num_own:] - cross.T @ by_common
    covariance = observed_information.covariance((rest + rest.T) / 2)
    return None if np.isnan(covariance).any() else found._replace(by_common=by_common, common=covariance)


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
