"""Scores of one test as scores of another, once their items are on one scale (Kolen and Brennan 2014, chapter 6)."""

from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
from scipy.optimize import brentq

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.groups.known_curves import KnownTest, known_test
from irtjax.groups.linking import Link
from irtjax.kernels.quadrature import rectangular
from irtjax.scale.sum_scores import sum_distribution
from irtjax.types import Float

TRUE, OBSERVED = "true_score", "observed_score"
NODES = 81
FARTHEST = 60.0  # logits at which a true score is looked for
ROOT = 1e-10  # logits


@checks_types
def equate(base: Any, other: Any, link: Link, method: str = TRUE, *, weight: float = 0.5) -> pd.DataFrame:
    """What each score of the other test is on the base test; scores are numbers of right answers, or sums of grades.

    * "true_score": θ with the expected score T'(θ) = s on the other test, and T(θ) on the base. Scores
      that no ability expects, below the sum of the guessing parameters and above that of the upper asymptotes, are
      interpolated to the ends (Kolen 1981).
    * "observed_score": the score with the same percentile rank (equipercentile), by the distributions of sum scores
      (Lord and Wingersky 1984) in a synthetic population, of which `weight` is that of the base.

    Args:
        base: items whose scale is kept, as of `irtjax.link`.
        other: items of the other test.
        link: of the other test to the base.
        method: one of these.
        weight: of the base population, N(0, 1), beside N(B, A²), that of the other test.

    Returns:
        One row per `score` of the other test: its `equated` score on the base, and for true scores the `ability` on the
        base scale, -inf and inf at the ends.

    Raises:
        InputError: an unknown method, or a weight that is no share.
    """
    if method not in (TRUE, OBSERVED):
        raise InputError(f"unknown method {method!r}, expected {TRUE} or {OBSERVED}")
    if not 0 <= weight <= 1:
        raise InputError(f"`weight` {weight:g}: expected a share from 0 to 1")
    tests = known_test(base), known_test(other)
    with jax.enable_x64(True):
        return _by_true_scores(*tests, link) if method == TRUE else _by_observed_scores(*tests, link, weight)


class _Range(NamedTuple):
    """Sums of a test: the lowest and highest there are, and those that the ends of the scale of ability expect."""

    low: float
    high: float
    expected_low: float
    expected_high: float


def _by_true_scores(base: KnownTest, other: KnownTest, link: Link) -> pd.DataFrame:
    """As `equate`."""
    of_base, of_other = _range(base), _range(other)
    rows = []
    for score in np.arange(of_other.low, of_other.high + 1):
        if of_other.expected_low < score < of_other.expected_high:
            own = brentq(lambda x, score=score: _total(other, x) - score, -FARTHEST, FARTHEST, xtol=ROOT)
            ability = float(link.abilities(own))
            rows.append((score, ability, _total(base, ability)))
        elif score <= of_other.expected_low:
            equated = np.interp(score, [of_other.low, of_other.expected_low], [of_base.low, of_base.expected_low])
            rows.append((score, -np.inf, float(equated) if score > of_other.low else of_base.low))
        else:
            equated = np.interp(score, [of_other.expected_high, of_other.high], [of_base.expected_high, of_base.high])
            rows.append((score, np.inf, float(equated) if score < of_other.high else of_base.high))
    return pd.DataFrame(rows, columns=["score", "ability", "equated"])


def _by_observed_scores(base: KnownTest, other: KnownTest, link: Link, weight: float) -> pd.DataFrame:
    """As `equate`."""
    rule = rectangular(NODES)
    z, weights = rule.nodes[:, 0], np.exp(rule.log_weights)
    theta = np.concatenate([z, link.abilities(z)])
    weights = np.concatenate([weight * weights, (1 - weight) * weights])
    of_base = _distribution(base, theta) @ weights
    of_other = _distribution(other, (theta - link.intercept) / link.slope) @ weights
    rank = np.cumsum(of_other) - of_other / 2
    cumulative = np.cumsum(of_base)
    upper = np.minimum(np.searchsorted(cumulative, rank, side="right"), len(of_base) - 1)
    below = cumulative[upper] - of_base[upper]
    equated = upper - 0.5 + (rank - below) / of_base[upper]
    scores = _range(other).low + np.arange(len(of_other))
    return pd.DataFrame({"score": scores, "equated": _range(base).low + equated})


def _total(test: KnownTest, theta: float) -> float:
    """Expected score of the whole test."""
    return float(np.asarray(test.curves.expected(np.array([theta])))[0].sum())


def _range(test: KnownTest) -> _Range:
    """The scores of a test.

    Raises:
        InputError: grades that are not one apart, or a score that does not rise with ability.
    """
    for item, worth, top in zip(test.item_ids, test.curves.worth, test.curves.top, strict=True):
        if not np.allclose(np.diff(worth[: top + 1]), 1.0):
            raise InputError(f"item '{item}' has grades that are not one apart: sums of them are equated by no table")
    low = float(test.curves.worth[:, 0].sum())
    ends = _total(test, -FARTHEST), _total(test, FARTHEST)
    if ends[1] <= ends[0]:
        raise InputError("the expected score does not rise with ability: turn items of negative discrimination round")
    return _Range(low, low + float(test.curves.top.sum()), *ends)


def _distribution(test: KnownTest, theta: Float[np.ndarray, " Q"]) -> Float[np.ndarray, "_ Q"]:
    """P(sum | θ), one row per sum of the categories."""
    p = np.asarray(test.curves.categories(theta))
    none = np.maximum(1 - p.sum(axis=2, keepdims=True), 0.0)
    return sum_distribution(np.concatenate([none, p], axis=2), np.asarray(test.curves.top))
