"""DIF by regression of each item on score and group (Swaminathan and Rogers 1990; Zumbo 1999 for grades).

Of an item with categories 0 … K, P(y >= k) = σ(x - t_k), of which right/wrong is the case K = 1, and for a subject of
score s in group g

    x = β s        x = β s + γ_g        x = β s + γ_g + δ_g s,

without DIF, with DIF that is uniform over scores, and with DIF that is not.
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from irtjax.groups.cumulative_logits import Ordered, fit_ordered
from irtjax.groups.matching import Graded, matched_on, numbered
from irtjax.responses.compressed_rows import grouped, rows_of
from irtjax.types import Bool, Float, Int

ENTRIES = 2**17  # responses times parameters of a block of items, which fits into the cache
NONE, UNIFORM, BOTH = range(3)  # models: without DIF, uniform, both


class ScoreRegression(NamedTuple):
    """Of each item, (I,); chi-squares of likelihood ratios.

    Attributes:
        uniform: of γ, with G - 1 degrees of freedom.
        nonuniform: of δ beside γ, G - 1.
        both: of γ and δ, 2 (G - 1).
        nagelkerke: (I, 3) R² of the three models (Nagelkerke 1991).
        cox_snell: (I, 3) R² as 1 - exp(-2 (l - l₀) / n).
        log_odds: (I, G - 1) γ without δ, of a higher response in the group than in the first.
    """

    uniform: Float[np.ndarray, " I"]
    nonuniform: Float[np.ndarray, " I"]
    both: Float[np.ndarray, " I"]
    nagelkerke: Float[np.ndarray, "I 3"]
    cox_snell: Float[np.ndarray, "I 3"]
    log_odds: Float[np.ndarray, "I H"]


def score_regression(data: Graded, anchors: Bool[np.ndarray, " I"]) -> ScoreRegression:
    """Regressions of all items on the score on the anchors and the item itself, and the group.

    Args:
        data: responses, whose grades count by their order alone, and groups; subjects who answered no anchor are left
            out.
        anchors: (I,) whose responses make the score.

    Returns:
        NaN of items whose responses are all alike or of one group.
    """
    data, score = matched_on(data, anchors)
    codes, null = _codes(data)
    number = np.bincount(data.items, minlength=data.num_items)[:, None]
    heights, coefficients = _fits(data, codes, score)
    with np.errstate(all="ignore"):
        cox_snell = -np.expm1(-2 * (heights - null[:, None]) / number)
        nagelkerke = cox_snell / -np.expm1(2 * null[:, None] / number)
    tested = _tested(data)[:, None]
    ratios = np.where(tested, np.maximum(2 * np.diff(heights, axis=1), 0.0), np.nan)
    log_odds = np.where(tested, coefficients[:, UNIFORM, 1 : data.num_groups], np.nan)
    return ScoreRegression(ratios[:, 0], ratios[:, 1], ratios.sum(axis=1), nagelkerke, cox_snell, log_odds)


def _tested(data: Graded) -> Bool[np.ndarray, " I"]:
    """Items with responses of two groups or more, not all of them alike: of others nothing is compared."""

    def kinds(of: Any) -> Int[np.ndarray, " I"]:
        code, different = pd.factorize(of)
        number = max(len(different), 1)
        cells, _ = numbered(data.items.astype(np.int64) * number + code, data.num_items * number)
        return np.bincount(cells // number, minlength=data.num_items)

    return (kinds(data.y) > 1) & (kinds(data.member[data.subjects]) > 1)


def _codes(data: Graded) -> tuple[Int[np.ndarray, " N"], Float[np.ndarray, " I"]]:
    """Numbers 0 … K of the grades that were given to each item, and log-likelihoods of their frequencies alone."""
    rank, grades = pd.factorize(data.y, sort=True)
    cells = data.items.astype(np.int64) * len(grades) + rank
    used, place = numbered(cells, data.num_items * len(grades))
    items, counts = used // max(len(grades), 1), np.bincount(place, minlength=len(used))
    number = np.bincount(data.items, minlength=data.num_items)
    null = np.bincount(items, counts * np.log(counts / number[items]), data.num_items)
    return place - np.searchsorted(items, np.arange(data.num_items))[data.items], null


def _fits(
    data: Graded, codes: Int[np.ndarray, " N"], score: Float[np.ndarray, " N"]
) -> tuple[Float[np.ndarray, "I 3"], Float[np.ndarray, "I 3 P"]]:
    """Log-likelihoods and coefficients of the models, by scores that are standardised; 0 where all responses are alike.

    Items of one number of categories are taken together, some at a time.
    """
    number, top = np.bincount(data.items, minlength=data.num_items), np.zeros(data.num_items, int)
    np.maximum.at(top, data.items, codes)
    cells = np.concatenate([[0], np.cumsum(top + 1)])
    starts, order = grouped(cells[data.items] + codes, int(cells[-1]))
    mean = np.bincount(data.items, score, data.num_items) / np.maximum(number, 1)
    apart = score - mean[data.items]
    spread = np.sqrt(np.bincount(data.items, apart**2, data.num_items) / np.maximum(number, 1))
    z = apart / np.where(spread > 0, spread, 1.0)[data.items]
    others = data.num_groups - 1
    width = 1 + BOTH * others
    heights, coefficients = np.zeros((data.num_items, BOTH + 1)), np.zeros((data.num_items, BOTH + 1, width))
    for highest in np.unique(top[top > 0]).tolist():
        chosen = np.flatnonzero(top == highest)
        parts = np.cumsum(number[chosen]) // max(1, ENTRIES // (highest + width))
        for items in np.split(chosen, np.flatnonzero(np.diff(parts)) + 1):
            own, at = rows_of(starts, (cells[items][:, None] + np.arange(highest + 1)).ravel())
            rows = order[at]
            groups = (data.member[data.subjects[rows]] == np.arange(1, data.num_groups)[:, None]).astype(float)
            x = np.concatenate([z[None, rows], groups, groups * z[rows]])
            beta = None
            for model in range(BOTH + 1):  # each begins where the one before it has its maximum
                size = 1 + model * others
                heights[items, model], beta = fit_ordered(Ordered(own, x[:size], highest), beta)
                coefficients[items, model, :size] = beta[:, highest:]
    return heights, coefficients
