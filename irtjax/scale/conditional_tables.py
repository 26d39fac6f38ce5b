"""Exact tests of 2 × 2 tables given their margins: Fisher's noncentral hypergeometric distribution."""

import numpy as np
from scipy.special import gammaln

from irtjax.types import Float

REACH = 12.0  # standard deviations about the mode that carry all the mass
MARGIN = 12  # counts beside, where the distribution is narrow or skewed
ENTRIES = 2**21  # probabilities that are held at a time


def two_sided_p_values(
    tables: Float[np.ndarray, "P 2 2"], odds_ratio: Float[np.ndarray, " P"]
) -> Float[np.ndarray, " P"]:
    """Chance of a count at least as far out as the observed one, given the margins and the odds ratio.

    With k subjects in the cell (1, 1), margins r and c and n subjects, P(k) ∝ C(r, k) C(n - r, c - k) ψ^k (Fisher
    1935; Harkness 1965). Twice the smaller tail, and at most 1: as it is exact, it is below a level at most as often as
    the level says, however few subjects there are.

    Args:
        tables: counts, at (u, v) of subjects with u in the first and v in the second variable.
        odds_ratio: ψ of each table.
    """
    counts = np.rint(tables)
    n, r, c = counts.sum((1, 2)), counts[:, 1].sum(1), counts[:, :, 1].sum(1)
    observed, log_odds = counts[:, 1, 1], np.log(odds_ratio)
    least, most = np.maximum(0, r + c - n), np.minimum(r, c)
    centre = _cell(n, r, c, odds_ratio)
    cells = np.stack([centre, r - centre, c - centre, n - r - c + centre])
    spread = 1 / np.sqrt((1 / np.maximum(cells, 0.5)).sum(axis=0))
    half = np.ceil(REACH * spread) + MARGIN
    low = np.maximum(least, np.minimum(np.floor(centre) - half, observed - MARGIN))
    high = np.minimum(most, np.maximum(np.floor(centre) + half, observed + half))
    width = (high - low).astype(int) + 1
    result = np.ones(len(counts))
    order = np.argsort(width)
    at = 0
    while at < len(order):  # narrow ones first, so that those of one block are alike
        size = 1
        while at + size < len(order) and (size + 1) * width[order[at + size]] <= ENTRIES:
            size += 1
        some = order[at : at + size]
        at += size
        k = low[some, None] + np.arange(width[some].max())[None, :]
        inside = k <= high[some, None]
        k = np.minimum(k, high[some, None])
        log_weight = k * log_odds[some, None] - sum(
            gammaln(cell + 1) for cell in (k, r[some, None] - k, c[some, None] - k, (n - r - c)[some, None] + k)
        )
        log_weight = np.where(inside, log_weight, -np.inf)
        weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
        total = weight.sum(axis=1)
        below = (weight * (k <= observed[some, None])).sum(axis=1)
        above = (weight * (k >= observed[some, None])).sum(axis=1)
        result[some] = np.minimum(1.0, 2 * np.minimum(below, above) / total)
    return result


def _cell(
    n: Float[np.ndarray, " P"], r: Float[np.ndarray, " P"], c: Float[np.ndarray, " P"], odds: Float[np.ndarray, " P"]
) -> Float[np.ndarray, " P"]:
    """The cell (1, 1) of a table with these margins and odds ratio: x (n - r - c + x) = ψ (r - x)(c - x)."""
    linear = n + (odds - 1) * (r + c)
    root = np.sqrt(np.maximum(linear**2 - 4 * (odds - 1) * odds * r * c, 0.0))
    return np.clip(2 * odds * r * c / (linear + root), np.maximum(0, r + c - n), np.minimum(r, c))
