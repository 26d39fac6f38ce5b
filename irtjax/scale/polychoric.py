"""Polychoric correlations: those of normal variables, of which ordered responses show only between which thresholds.

Two-step maximum likelihood (Olsson 1979): thresholds are those of the margins of a pair's table, and the correlation is
the one that makes the table the likeliest,

    l(ρ) = Σ_ij n_ij log π_ij(ρ),     π_ij = Φ₂(a_i, b_j) - Φ₂(a_{i-1}, b_j) - Φ₂(a_i, b_{j-1}) + Φ₂(a_{i-1}, b_{j-1}).

With two categories each it is the tetrachoric correlation (`irtjax.scale.tetrachoric`).
"""

from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.fits.reading import AUTO, read
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.values import whole
from irtjax.scale.tetrachoric import CONTINUITY, FEW, LARGEST, MANY, MAX_STEPS, MODERATE, TOLERANCE, tetrachoric
from irtjax.types import Float, Int

FAR = 40.0  # an infinite threshold, as normal distribution functions of doubles have it
ENTRIES = 2**24  # of arrays at a time
LEAST = 1e-12  # of a probability


@checks_types
def polychoric(responses: Any, grades: Any = None) -> Float[np.ndarray, "I I"]:
    """Matrix of polychoric correlations of ordered responses.

    Args:
        responses: grades, as `irtjax.fit` takes them, or `ScaledResponses`. Each item has at least two grades that were
            given. Pairs are of those who answered both items.
        grades: as of `irtjax.fit`.

    Returns:
        Correlations; NaN for a pair that no subject answered both of, or where one of the items does not vary among
        these. The matrix need not be positive semidefinite (`irtjax.scale.tetrachoric.positive_definite`). An empty
        cell of a table of two by two counts as half a subject, as in tetrachoric correlations; of larger tables not.

    Raises:
        InputError: counts, shares, or what cannot be read as grades.
    """
    if not isinstance(responses, ScaledResponses):
        responses = whole(read(responses, "graded" if grades is not None else AUTO, grades=grades)[0])
    if not isinstance(responses, ScaledResponses):  # right and wrong answers
        return tetrachoric(np.asarray(responses.values))
    if any(scale.labels is None for scale in responses.scales):
        item = next(str(i) for i, s in zip(responses.item_ids, responses.scales, strict=True) if s.labels is None)
        raise InputError(f"item {item!r} has counts or shares: polychoric correlations are of ordered grades")
    return of_categories(np.asarray(responses.values).astype(int))


def of_categories(values: Int[np.ndarray, "J I"]) -> Float[np.ndarray, "I I"]:
    """The same of categories from 0, negative where missing."""
    number, most = values.shape[1], int(values.max(initial=0)) + 1
    chosen = (values[:, :, None] == np.arange(most)).reshape(len(values), number * most).astype(float)
    tables = (chosen.T @ chosen).reshape(number, most, number, most).swapaxes(1, 2)
    first, second = np.triu_indices(number, 1)
    matrix = np.eye(number)
    matrix[first, second] = matrix[second, first] = of_tables(tables[first, second])
    return matrix


def of_table(table: Float[np.ndarray, "K L"]) -> float:
    """The correlation of one pair, from its contingency table; NaN where a margin has one category."""
    return float(of_tables(np.asarray(table, float)[None])[0])


def of_tables(tables: Float[np.ndarray, "P K L"]) -> Float[np.ndarray, " P"]:
    """The correlations of pairs, from their contingency tables; NaN where a margin has one category."""
    tables = np.asarray(tables, float)
    rows, columns = tables.sum(axis=2) > 0, tables.sum(axis=1) > 0
    numbers = rows.sum(axis=1), columns.sum(axis=1)
    empty = rows[:, :, None] & columns[:, None, :] & (tables == 0)
    tables = np.where(empty & ((numbers[0] == 2) & (numbers[1] == 2))[:, None, None], CONTINUITY, tables)
    found, known = np.full(len(tables), np.nan), np.flatnonzero((numbers[0] > 1) & (numbers[1] > 1))
    size = max(1, ENTRIES // (tables.shape[1] * tables.shape[2] * FEW))
    for at in range(0, len(known), size):
        some = known[at : at + size]
        found[some] = _most_likely(tables[some], FEW)
    strong = np.flatnonzero(np.abs(np.nan_to_num(found)) > MODERATE)
    for at in range(0, len(strong), size):
        some = strong[at : at + size]
        found[some] = _most_likely(tables[some], MANY)
    return found


def _most_likely(tables: Float[np.ndarray, "P K L"], num_nodes: int) -> Float[np.ndarray, " P"]:
    """The maxima by scoring, each within an interval at whose ends the likelihood rises and falls."""
    n = tables.sum(axis=(1, 2))
    shares = tables / n[:, None, None]
    a, b = (_thresholds(shares.sum(axis=axis)) for axis in (2, 1))
    rho, low, high = np.zeros(len(n)), np.full(len(n), -LARGEST), np.full(len(n), LARGEST)
    for _ in range(MAX_STEPS):
        cdf, density = _bivariate(a, b, rho, num_nodes)
        p, by = (np.diff(np.diff(x, axis=1), axis=2) for x in (cdf, density))
        p = np.maximum(p, LEAST)
        slope, information = (shares * by / p).sum(axis=(1, 2)), (by**2 / p).sum(axis=(1, 2))
        low, high = np.where(slope > 0, rho, low), np.where(slope > 0, high, rho)
        following = rho + slope / np.maximum(information, LEAST)
        following = np.where((following > low) & (following < high), following, (low + high) / 2)
        moved, rho = np.abs(following - rho).max(), following
        if moved < TOLERANCE:
            break
    return rho


def _thresholds(shares: Float[np.ndarray, "P K"]) -> Float[np.ndarray, "P _"]:
    sums = np.clip(np.cumsum(shares, axis=1)[:, :-1], 0, 1)
    ends = np.zeros((len(shares), 1))
    return np.clip(ndtri(np.concatenate([ends, sums, ends + 1], axis=1)), -FAR, FAR)


def _bivariate(
    h: Float[np.ndarray, "P K"], k: Float[np.ndarray, "P L"], rho: Float[np.ndarray, " P"], num_nodes: int
) -> tuple[Float[np.ndarray, "P K L"], Float[np.ndarray, "P K L"]]:
    """P(X ≤ h, Y ≤ k), as `irtjax.scale.tetrachoric.bivariate_normal_cdf`, and its derivative, the density."""
    nodes, weights = np.polynomial.legendre.leggauss(num_nodes)
    angle = np.arcsin(rho)[:, None, None]
    h_, k_ = h[:, 1:-1, None], k[:, None, 1:-1]  # at the ends, which are infinite, there is no density
    squares, product = h_**2 + k_**2, h_ * k_
    inside = np.zeros(squares.shape)
    for node, weight in zip(nodes, weights, strict=True):
        t = angle * (node + 1) / 2
        inside += weight * np.exp((2 * product * np.sin(t) - squares) / (2 * np.cos(t) ** 2))
    gap = (1 - rho**2)[:, None, None]
    density = np.exp((2 * rho[:, None, None] * product - squares) / (2 * gap)) / (2 * np.pi * np.sqrt(gap))
    around = (0, 0), (1, 1), (1, 1)
    of_independent = ndtr(h)[:, :, None] * ndtr(k)[:, None, :]
    return of_independent + np.pad(inside * angle / (4 * np.pi), around), np.pad(density, around)
