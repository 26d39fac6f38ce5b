"""Infit and outfit mean squares of items and subjects, for responses of every kind.

With y what a response is worth (`response_curves`), E and V its mean and variance at an ability and n its trials,

    outfit = mean of (y - E)² n / V,     infit = Σ (y - E)² n² / Σ n V

over the responses of an item or of a subject (Wright and Masters 1982).
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from irtjax.scale.response_curves import category_curves, parameter_derivatives, worth, worth_curves, worths
from irtjax.scale.tested import Nodes, Tested, nodes_of, posteriors, some_subjects
from irtjax.types import Float, Shaped

LEAST_VARIANCE = 1e-300
RELATIVE = 1e-10  # of what parameters explain of a residual: below it they are the same parameter


class MeanSquares(NamedTuple):
    """Of N items or subjects, NaN where there are no responses.

    Attributes:
        infit: (N,).
        infit_t: (N,) about standard normal under the model; NaN where it has no standardised form.
        outfit: (N,).
        outfit_t: (N,) the same.
    """

    infit: Float[np.ndarray, " N"]
    infit_t: Float[np.ndarray, " N"]
    outfit: Float[np.ndarray, " N"]
    outfit_t: Float[np.ndarray, " N"]


class _Terms(NamedTuple):
    """Of some subjects: squared residuals, their variances, standardised squares, 0 where a response is missing.

    Attributes:
        rows: the subjects.
        square: (J, I) E[(y - E)² n²] over the posterior.
        variance: (J, I) E[n V].
        standardised: (J, I) E[(y - E)² n / V].
        scores: (J, I, P) derivatives of the subject's log-likelihood by the parameters of the item.
    """

    rows: slice
    square: Float[np.ndarray, "J I"]
    variance: Float[np.ndarray, "J I"]
    standardised: Float[np.ndarray, "J I"]
    scores: Float[np.ndarray, "J I P"]


def integrated(test: Tested, free: Shaped[np.ndarray, " I"]) -> tuple[MeanSquares, MeanSquares]:
    """Mean squares of items and of subjects with abilities integrated out over their posteriors.

    Under the model each term has the expectation 1, or the same above and below the line, on tests of any length, as it
    has not at estimated abilities. The t of an item is (mean square - 1) / se. As the expectation is 1 whatever the
    parameters are, what their estimation does to the sum is its regression on the scores of the parameters: se is the
    standard error of the mean of the residuals of that regression over the subjects, with the item's own parameters.
    It uses no more than the responses of independent subjects. Those of one subject are not independent once its
    ability is integrated out: a subject has no t here.

    Args:
        test: items and responses.
        free: (I,) parameters of each item that were estimated from the responses.
    """
    nodes = nodes_of(test)
    num_subjects, num_items = test.values.shape
    of_subjects, gram = np.zeros((4, num_subjects)), None
    for part in _terms(test, nodes):
        seen = (test.observed[part.rows] > 0).astype(float)
        leading = (part.square, part.variance, part.standardised, seen)
        for k, term in enumerate(leading):
            of_subjects[k, part.rows] = term.sum(axis=1)
        columns = np.concatenate([np.stack(leading, axis=2), part.scores], axis=2).transpose(1, 2, 0)
        added = columns @ columns.transpose(0, 2, 1)
        gram = added if gram is None else gram + added
    assert gram is not None
    square, variance, standardised, number = gram[:, :4, 3].T
    with np.errstate(invalid="ignore", divide="ignore"):
        infit, outfit = square / variance, standardised / number
        none = np.zeros(num_items)
        lines = np.stack([np.stack([none + 1, -infit, none, none]), np.stack([none, none, none + 1, -outfit])])
        infit_t, outfit_t = (infit - 1, outfit - 1) / _errors(gram, lines, np.stack([variance, number]), free)
        nothing = np.full(num_subjects, np.nan)
        for_subjects = (of_subjects[0] / of_subjects[1], nothing, of_subjects[2] / of_subjects[3], nothing)
    return MeanSquares(infit, infit_t, outfit, outfit_t), MeanSquares(*for_subjects)


def _errors(
    gram: Float[np.ndarray, "I P P"], lines: Float[np.ndarray, "2 4 I"], scale: Float[np.ndarray, "2 I"], free: Any
) -> Float[np.ndarray, "2 I"]:
    """Standard errors of infit and outfit: roots of sums over subjects of squared residuals, in units of what divides.

    The residuals are of linear functions of the four leading columns, by regression on the scores after them.
    """
    scores = gram[:, 4:, 4:]
    size = np.sqrt(np.maximum(np.diagonal(scores, axis1=1, axis2=2), LEAST_VARIANCE))
    inverse = np.linalg.pinv(scores / (size[:, :, None] * size[:, None, :]), rcond=RELATIVE, hermitian=True)
    cross = np.einsum("kai,iap->kip", lines, gram[:, :4, 4:]) / size[None]
    total = np.einsum("kai,iab,kbi->ki", lines, gram[:, :4, :4], lines)
    explained = np.einsum("kip,ipq,kiq->ki", cross, inverse, cross) * (np.asarray(free) > 0)
    number = gram[:, 3, 3]
    remaining = np.maximum(total - explained, 0.0) * number / np.maximum(number - free, 1)
    return np.sqrt(remaining) / scale


def _terms(test: Tested, nodes: Nodes) -> Iterator[_Terms]:
    deviations, y = _deviations(test, nodes.theta), worths(test)
    derivatives = parameter_derivatives(test.model, test.items, nodes.theta)
    with jax.enable_x64(True):
        mean = np.asarray(test.model.moments(test.items, nodes.theta[:, None], asymptotes=True).mean)
    means = [(mean * by).reshape(len(mean), len(test.top), -1).sum(axis=2) for by in derivatives]
    shape, place = (len(test.top), -1), _places(test)
    for rows, weights in posteriors(test, nodes):
        n, seen = test.observed[rows], test.observed[rows] > 0
        own = np.zeros((3, *n.shape))
        own[1] = weights @ deviations.variance
        if deviations.of_categories is None:
            parts = (weights @ (deviations.mean**k / deviations.variance) for k in range(3))
            one, first, second = parts
            own[0] = y[rows] ** 2 - 2 * y[rows] * (weights @ deviations.mean) + weights @ deviations.mean**2
            own[2] = y[rows] ** 2 * one - 2 * y[rows] * first + second
        else:
            for category in range(deviations.of_categories.shape[2]):
                square = deviations.of_categories[:, :, category] ** 2
                chosen = place[rows] == category
                own[0] += np.where(chosen, weights @ square, 0.0)
                own[2] += np.where(chosen, weights @ (square / deviations.variance), 0.0)
        statistics = np.asarray(test.model.statistics(test.values[rows]))
        scores = [
            (statistics * (weights @ by)).reshape(len(n), *shape).sum(axis=2) - n * (weights @ mean)
            for by, mean in zip(derivatives, means, strict=True)
        ]
        square, variance, standardised = (np.where(seen, term, 0.0) for term in own * np.stack([n * n, n, n]))
        yield _Terms(rows, square, variance, standardised, np.where(seen[:, :, None], np.stack(scores, axis=2), 0.0))


class _Deviations(NamedTuple):
    """At Q abilities.

    Attributes:
        mean: (Q, I) E.
        variance: (Q, I) V, of one trial.
        of_categories: (Q, I, C) what a category is worth less E; None where responses are not all categories.
    """

    mean: Float[np.ndarray, "Q I"]
    variance: Float[np.ndarray, "Q I"]
    of_categories: Float[np.ndarray, "Q I C"] | None


def _deviations(test: Tested, theta: Float[np.ndarray, " Q"]) -> _Deviations:
    if not test.categorical:
        mean, variance = worth_curves(test, theta)
        return _Deviations(mean, np.maximum(variance, LEAST_VARIANCE), None)
    p, value = category_curves(test.model, test.items, theta).p, worth(test)
    # Σ_l P_l (v_k - v_l): the category that is nearly certain does not enter its own, and nothing cancels
    deviation = np.einsum("qil,ikl->qik", p, value[:, :, None] - value[:, None, :], optimize=True)
    variance = np.maximum((p * deviation**2).sum(axis=2), LEAST_VARIANCE)
    return _Deviations((p * value[None]).sum(axis=2), variance, deviation)


def _places(test: Tested) -> Shaped[np.ndarray, "J I"]:
    """Categories as integers, -1 where there is none."""
    return np.where(test.observed > 0, test.values, -1).astype(int) if test.categorical else test.values


def at_abilities(test: Tested, theta: Float[np.ndarray, " J"]) -> tuple[MeanSquares, MeanSquares]:
    """Mean squares of items and of subjects at abilities that are taken as known, with t by Wilson and Hilferty.

    t = (MS^(1/3) - 1) 3/q + q/3, with q² the variance of the mean square (Wright and Masters 1982, table 5.4a). As the
    abilities were estimated from the responses, mean squares are below 1 under the model, most so on short tests, and t
    below 0.

    Args:
        test: items and responses.
        theta: abilities; subjects without a finite one do not count.
    """
    of_items, of_subjects = np.zeros((6, len(test.top))), np.full((6, len(theta)), np.nan)
    y = worths(test)
    for rows in some_subjects(test, test.values.shape[1] * (int(test.top.max()) + 1) ** 2):
        known = np.isfinite(theta[rows])
        mean, variance, fourth = _central_moments(test, np.where(known, theta[rows], 0.0))
        n = test.observed[rows] * known[:, None]
        variance, square = n * variance, (n * (y[rows] - mean)) ** 2
        fourth = fourth * n  # of categories, n is 1
        seen = n > 0
        with np.errstate(invalid="ignore", divide="ignore"):
            terms = (square, variance, square / variance, fourth - variance**2, fourth / variance**2 - 1, 1.0 + 0 * n)
        for k, term in enumerate(terms):
            term = np.where(seen, term, 0.0)
            of_items[k] += term.sum(axis=0)
            of_subjects[k, rows] = term.sum(axis=1)
    return _standardised(of_items), _standardised(of_subjects)


def _central_moments(test: Tested, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, variance and fourth central moment (J, I) of responses; of counts and shares the last is NaN."""
    found = _deviations(test, theta)
    if found.of_categories is None:
        return found.mean, found.variance, np.full(found.mean.shape, np.nan)
    p = category_curves(test.model, test.items, theta).p
    return found.mean, found.variance, (p * found.of_categories**4).sum(axis=2)


def _standardised(sums: Float[np.ndarray, "6 N"]) -> MeanSquares:
    square, variance, standardised, of_infit, of_outfit, number = sums
    with np.errstate(invalid="ignore", divide="ignore"):
        infit, outfit = square / variance, standardised / number
        q = np.sqrt(of_infit) / variance, np.sqrt(of_outfit) / number
        t = [(np.cbrt(found) - 1) * 3 / spread + spread / 3 for found, spread in zip((infit, outfit), q, strict=True)]
    return MeanSquares(infit, t[0], outfit, t[1])
