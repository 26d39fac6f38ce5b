"""Residuals of responses and their variances, expected over the posteriors of the abilities."""

from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np

from irtjax.scale.answer_means import AnswerMeans
from irtjax.scale.posteriors import Nodes, posteriors
from irtjax.scale.response_curves import (
    category_curves,
    parameter_derivatives,
    worth,
    worth_curves,
    worths,
)
from irtjax.scale.tested import Tested
from irtjax.types import Float, Shaped

LEAST_VARIANCE = 1e-300
LARGEST_RATIO = 300.0  # nats, of probabilities: where it is more no posterior is


class Terms(NamedTuple):
    """Of the responses of some subjects: squared residuals, their variances, standardised squares.

    Attributes:
        rows: the subjects.
        at: their responses.
        square: (n,) E[(y - E)² n²] over the posterior.
        variance: (n,) E[n V].
        standardised: (n,) E[(y - E)² n / V].
        spread_of_square: (n,) what the square of `square` - `variance` is expected to be, given the subject's other
            responses; the square itself where responses are not all categories.
        spread_of_standardised: (n,) the same of `standardised` - 1.
        scores: (P, n) derivatives of the subject's log-likelihood by the parameters of the item.
    """

    rows: slice
    at: slice
    square: Float[np.ndarray, " n"]
    variance: Float[np.ndarray, " n"]
    standardised: Float[np.ndarray, " n"]
    spread_of_square: Float[np.ndarray, " n"]
    spread_of_standardised: Float[np.ndarray, " n"]
    scores: Float[np.ndarray, "P n"]


class Deviations(NamedTuple):
    """At Q abilities.

    Attributes:
        mean: (Q, I) E.
        variance: (Q, I) V, of one trial.
        of_categories: (Q, I, C) what a category is worth less E; None where responses are not all categories.
        log_p: (Q, I, C) logarithms of their probabilities; None where `of_categories` is.
    """

    mean: Float[np.ndarray, "Q I"]
    variance: Float[np.ndarray, "Q I"]
    of_categories: Float[np.ndarray, "Q I C"] | None = None
    log_p: Float[np.ndarray, "Q I C"] | None = None


def terms(test: Tested, nodes: Nodes) -> Iterator[Terms]:
    """Terms of all subjects, some at a time."""
    at, y, effective = deviations_at(test, nodes.theta), worths(test), test.effective
    derivatives = parameter_derivatives(test.model, test.items, nodes.theta)
    with jax.enable_x64(True):
        mean = np.asarray(test.model.moments(test.items, nodes.theta[:, None], asymptotes=True).mean)
    means = [(mean * by).reshape(len(mean), len(test.top), -1).sum(axis=2) for by in derivatives]
    for rows, own, weights in posteriors(test, nodes):
        of = AnswerMeans(weights, test.single.subjects[own] - rows.start, test.single.items[own])
        if at.of_categories is None:
            found = _of_numbers(at, of, y[own], effective[own])
        else:
            found = _of_categories(at, of, test.single.answers[own])
        scores = -test.times[own] * np.stack(of.of(means))
        statistics = np.asarray(test.model.take(of.items).statistics(test.codes[own][None])).reshape(len(of.items), -1)
        for s, statistic in enumerate(statistics.T):
            there = statistic != 0
            tables = [by.reshape(*mean.shape[:1], len(test.top), -1)[:, :, s] for by in derivatives]
            scores[:, there] += statistic[there] * np.stack(of.of(tables, there))
        square, variance, standardised, of_square, of_standardised = found
        yield Terms(rows, own, square, variance, standardised, of_square, of_standardised, scores)


def _of_numbers(
    at: Deviations, of: AnswerMeans, y: Float[np.ndarray, " n"], n: Float[np.ndarray, " n"]
) -> Float[np.ndarray, "5 n"]:
    """The terms of counts and shares."""
    one, first, second = of.of([at.mean**k / at.variance for k in range(3)])
    mean, of_squares, spread = of.of([at.mean, at.mean**2, at.variance])
    square = n * n * (y**2 - 2 * y * mean + of_squares)
    variance, standardised = n * spread, n * (y**2 * one - 2 * y * first + second)
    return np.stack([square, variance, standardised, (square - variance) ** 2, (standardised - 1) ** 2])


def _of_categories(at: Deviations, of: AnswerMeans, place: Shaped[np.ndarray, " n"]) -> Float[np.ndarray, "5 n"]:
    """The terms of categories.

    Given the other responses of a subject category c has the chance E[P_c / P_y] / E[1 / P_y], and with it the residual
    would be E[P_c / P_y r_c] / E[P_c / P_y], both expected over the posterior, that has the response y in it.
    """
    assert at.of_categories is not None
    assert at.log_p is not None
    found = np.zeros((5, len(place)))
    (found[1],) = of.of([at.variance])
    squares = at.of_categories**2
    ratios = squares / at.variance[:, :, None]
    for y in range(squares.shape[2]):
        chosen = place == y
        if not chosen.any():
            continue
        chance, of_square, of_standardised = np.zeros((3, int(chosen.sum())))
        for c in range(squares.shape[2]):
            with np.errstate(invalid="ignore"):  # of categories that an item has not
                ratio = np.exp(np.minimum(at.log_p[:, :, c] - at.log_p[:, :, y], LARGEST_RATIO))
            odds = np.where(np.isfinite(at.log_p[:, :, y]), ratio, 0.0)
            tables = [odds, odds * (squares[:, :, c] - at.variance), odds * (ratios[:, :, c] - 1)]
            likely, square, standardised = of.of(tables, chosen)
            chance += likely
            likely = np.maximum(likely, LEAST_VARIANCE)
            of_square += square**2 / likely
            of_standardised += standardised**2 / likely
        chance = np.maximum(chance, LEAST_VARIANCE)
        found[0, chosen], found[2, chosen] = of.of([squares[:, :, y], ratios[:, :, y]], chosen)
        found[3, chosen], found[4, chosen] = of_square / chance, of_standardised / chance
    return found


def deviations_at(test: Tested, theta: Float[np.ndarray, " Q"]) -> Deviations:
    """Residuals and variances of responses at abilities."""
    if not test.categorical:
        mean, variance = worth_curves(test, theta)
        return Deviations(mean, np.maximum(variance, LEAST_VARIANCE))
    curves, value = category_curves(test.model, test.items, theta), worth(test)
    p = curves.p
    # Σ_l P_l (v_k - v_l): the category that is nearly certain does not enter its own, and nothing cancels
    deviation = np.einsum("qil,ikl->qik", p, value[:, :, None] - value[:, None, :], optimize=True)
    variance = np.maximum((p * deviation**2).sum(axis=2), LEAST_VARIANCE)
    return Deviations((p * value[None]).sum(axis=2), variance, deviation, curves.log_p)
