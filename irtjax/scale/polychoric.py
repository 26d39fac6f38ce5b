"""Polychoric correlations: those of normal variables, of which ordered responses show only between which thresholds.

Two-step maximum likelihood (Olsson 1979): thresholds are those of the margins of a pair's table, and the correlation is
the one that makes the table the likeliest,

    l(ρ) = Σ_ij n_ij log π_ij(ρ),     π_ij = Φ₂(a_i, b_j) - Φ₂(a_{i-1}, b_j) - Φ₂(a_i, b_{j-1}) + Φ₂(a_{i-1}, b_{j-1}).

With two categories each it is the tetrachoric correlation (`irtjax.scale.tetrachoric`).
"""

from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from irtjax.errors import InputError
from irtjax.fits.reading import AUTO, read
from irtjax.responses.scaled import ScaledResponses
from irtjax.scale.tetrachoric import CONTINUITY, LARGEST, tetrachoric
from irtjax.types import Float, Int

FAR = 40.0  # an infinite threshold, as normal distribution functions of doubles have it
NODES, WEIGHTS = np.polynomial.legendre.leggauss(48)
STEPS = 60  # of golden sections, each of which leaves 0.618 of an interval
GOLDEN = (np.sqrt(5) - 1) / 2
LEAST = 1e-12  # of a probability


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
        responses = read(responses, "graded" if grades is not None else AUTO, grades=grades)[0]
    if not isinstance(responses, ScaledResponses):  # right and wrong answers
        return tetrachoric(np.asarray(responses.read().values))
    if any(scale.labels is None for scale in responses.scales):
        item = next(str(i) for i, s in zip(responses.item_ids, responses.scales, strict=True) if s.labels is None)
        raise InputError(f"item {item!r} has counts or shares: polychoric correlations are of ordered grades")
    return of_categories(np.asarray(responses.values).astype(int))


def of_categories(values: Int[np.ndarray, "J I"]) -> Float[np.ndarray, "I I"]:
    """The same of categories from 0, negative where missing."""
    number = values.shape[1]
    matrix = np.eye(number)
    for i in range(number):
        for j in range(i):
            matrix[i, j] = matrix[j, i] = of_table(_table(values[:, i], values[:, j]))
    return matrix


def of_table(table: Float[np.ndarray, "K L"]) -> float:
    """The correlation of one pair, from its contingency table; NaN where a margin has one category."""
    table = np.asarray(table, float)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    if min(table.shape, default=0) < 2:
        return float("nan")
    if table.shape == (2, 2):
        table = np.where(table == 0, CONTINUITY, table)
    shares = table / table.sum()
    a, b = (_thresholds(shares.sum(axis=axis)) for axis in (1, 0))

    def likelihood(rho: float) -> float:
        cdf = _bivariate(a[:, None], b[None, :], rho)
        p = np.maximum(np.diff(np.diff(cdf, axis=0), axis=1), LEAST)
        return float((shares * np.log(p)).sum())

    low, high = -LARGEST, LARGEST  # the likelihood has one maximum
    inner = [high - GOLDEN * (high - low), low + GOLDEN * (high - low)]
    found = [likelihood(rho) for rho in inner]
    for _ in range(STEPS):
        if found[0] < found[1]:
            low, inner[0], found[0] = inner[0], inner[1], found[1]
            inner[1] = low + GOLDEN * (high - low)
            found[1] = likelihood(inner[1])
        else:
            high, inner[1], found[1] = inner[1], inner[0], found[0]
            inner[0] = high - GOLDEN * (high - low)
            found[0] = likelihood(inner[0])
    return (low + high) / 2


def _table(first: Int[np.ndarray, " J"], second: Int[np.ndarray, " J"]) -> Float[np.ndarray, "K L"]:
    both = (first >= 0) & (second >= 0)
    shape = max(int(first.max()), 0) + 1, max(int(second.max()), 0) + 1
    flat = np.bincount(first[both] * shape[1] + second[both], minlength=shape[0] * shape[1])
    return flat.reshape(shape).astype(float)


def _thresholds(shares: Float[np.ndarray, " K"]) -> Float[np.ndarray, " _"]:
    return np.clip(ndtri(np.concatenate([[0.0], np.clip(np.cumsum(shares)[:-1], 0, 1), [1.0]])), -FAR, FAR)


def _bivariate(h: Float[np.ndarray, "K 1"], k: Float[np.ndarray, "1 L"], rho: float) -> Float[np.ndarray, "K L"]:
    """P(X ≤ h, Y ≤ k), as `irtjax.scale.tetrachoric.bivariate_normal_cdf`."""
    angle = np.arcsin(rho)
    t = angle * (NODES + 1) / 2
    h_, k_ = h[..., None], k[..., None]
    inside = np.exp(-(h_**2 + k_**2 - 2 * h_ * k_ * np.sin(t)) / (2 * np.cos(t) ** 2))
    return ndtr(h) * ndtr(k) + (inside @ WEIGHTS) * angle / (4 * np.pi)
