"""Residuals of responses and their variances, expected over the posteriors of the abilities."""

from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np

from irtjax.scale.response_curves import (
    category_curves,
    parameter_derivatives,
    worth,
    worth_curves,
    worths,
)
from irtjax.scale.tested import Nodes, Tested, posteriors
from irtjax.types import Float, Shaped

LEAST_VARIANCE = 1e-300
LARGEST_RATIO = 300.0  # nats, of probabilities: where it is more no posterior is


class Terms(NamedTuple):
    """Of some subjects: squared residuals, their variances, standardised squares, 0 where a response is missing.

    Attributes:
        rows: the subjects.
        square: (J, I) E[(y - E)² n²] over the posterior.
        variance: (J, I) E[n V].
        standardised: (J, I) E[(y - E)² n / V].
        spread_of_square: (J, I) what the square of `square` - `variance` is expected to be, given the subject's other
            responses; the square itself where responses are not all categories.
        spread_of_standardised: (J, I) the same of `standardised` - 1.
        scores: (J, I, P) derivatives of the subject's log-likelihood by the parameters of the item.
    """

    rows: slice
    square: Float[np.ndarray, "J I"]
    variance: Float[np.ndarray, "J I"]
    standardised: Float[np.ndarray, "J I"]
    spread_of_square: Float[np.ndarray, "J I"]
    spread_of_standardised: Float[np.ndarray, "J I"]
    scores: Float[np.ndarray, "J I P"]


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
    at, y = deviations_at(test, nodes.theta), worths(test)
    derivatives = parameter_derivatives(test.model, test.items, nodes.theta)
    with jax.enable_x64(True):
        mean = np.asarray(test.model.moments(test.items, nodes.theta[:, None], asymptotes=True).mean)
    means = [(mean * by).reshape(len(mean), len(test.top), -1).sum(axis=2) for by in derivatives]
    shape, place, effective = (len(test.top), -1), places(test), test.effective
    for rows, weights in posteriors(test, nodes):
        n, times = effective[rows], test.times[rows]
        if at.of_categories is None:
            own = _of_numbers(at, weights, y[rows], n)
        else:
            own = _of_categories(at, weights, place[rows])
        statistics = np.asarray(test.model.statistics(test.codes[rows]))
        scores = [
            (statistics * (weights @ by)).reshape(len(n), *shape).sum(axis=2) - times * (weights @ mean)
            for by, mean in zip(derivatives, means, strict=True)
        ]
        square, variance, standardised, of_square, of_standardised = np.where(times > 0, own, 0.0)
        of_parameters = np.where(times[:, :, None] > 0, np.stack(scores, axis=2), 0.0)
        yield Terms(rows, square, variance, standardised, of_square, of_standardised, of_parameters)


def _of_numbers(
    at: Deviations, weights: Float[np.ndarray, "J Q"], y: Float[np.ndarray, "J I"], n: Float[np.ndarray, "J I"]
) -> Float[np.ndarray, "5 J I"]:
    """The terms of counts and shares."""
    one, first, second = (weights @ (at.mean**k / at.variance) for k in range(3))
    square = n * n * (y**2 - 2 * y * (weights @ at.mean) + weights @ at.mean**2)
    variance, standardised = n * (weights @ at.variance), n * (y**2 * one - 2 * y * first + second)
    return np.stack([square, variance, standardised, (square - variance) ** 2, (standardised - 1) ** 2])


def _of_categories(
    at: Deviations, weights: Float[np.ndarray, "J Q"], place: Shaped[np.ndarray, "J I"]
) -> Float[np.ndarray, "5 J I"]:
    """The terms of categories.

    Given the other responses of a subject category c has the chance E[P_c / P_y] / E[1 / P_y], and with it the residual
    would be E[P_c / P_y r_c] / E[P_c / P_y], both expected over the posterior, that has the response y in it.
    """
    assert at.of_categories is not None
    assert at.log_p is not None
    found = np.zeros((5, *place.shape))
    found[1] = weights @ at.variance
    squares = at.of_categories**2
    ratios = squares / at.variance[:, :, None]
    for y in range(squares.shape[2]):
        chosen = place == y
        if not chosen.any():
            continue
        chance, of_square, of_standardised = np.zeros((3, *place.shape))
        for c in range(squares.shape[2]):
            with np.errstate(invalid="ignore"):  # of categories that an item has not
                ratio = np.exp(np.minimum(at.log_p[:, :, c] - at.log_p[:, :, y], LARGEST_RATIO))
            odds = np.where(np.isfinite(at.log_p[:, :, y]), ratio, 0.0)
            likely = weights @ odds
            chance += likely
            likely = np.maximum(likely, LEAST_VARIANCE)
            of_square += (weights @ (odds * (squares[:, :, c] - at.variance))) ** 2 / likely
            of_standardised += (weights @ (odds * (ratios[:, :, c] - 1))) ** 2 / likely
        chance = np.maximum(chance, LEAST_VARIANCE)
        of_response = (
            weights @ squares[:, :, y],
            weights @ ratios[:, :, y],
            of_square / chance,
            of_standardised / chance,
        )
        for k, term in zip((0, 2, 3, 4), of_response, strict=True):
            found[k] = np.where(chosen, term, found[k])
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


def places(test: Tested) -> Shaped[np.ndarray, "J I"]:
    """Categories as integers, -1 where there is none."""
    return np.where(test.observed > 0, test.values, -1).astype(int) if test.categorical else test.values
