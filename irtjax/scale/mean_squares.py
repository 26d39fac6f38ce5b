"""Infit and outfit mean squares of items and subjects, for responses of every kind.

With y what a response is worth (`response_curves`), E and V its mean and variance at an ability and n its trials, or
as many independent ones as vary as much where trials agree (`irtjax.item_models.coded_counts.effective_trials`),

    outfit = mean of (y - E)² n / V,     infit = Σ (y - E)² n² / Σ n V

over the responses of an item or of a subject (Wright and Masters 1982).
"""

from typing import NamedTuple

import numpy as np

from irtjax.fits.own_parameters import OwnParameters
from irtjax.scale.posterior_terms import LEAST_VARIANCE, deviations_at, terms
from irtjax.scale.posteriors import nodes_of
from irtjax.scale.response_curves import worths
from irtjax.scale.tested import Tested, informative, own_parts
from irtjax.types import Float, Int

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


def integrated(test: Tested, own: OwnParameters | None) -> tuple[MeanSquares, MeanSquares]:
    """Mean squares of items and of subjects with abilities integrated out over their posteriors.

    Under the model the terms of the outfit have the expectation 1, and those of the infit the same above and below the
    line, on tests of any length; at estimated abilities they are less. The t of an item is that of Wilson and Hilferty,

        t = (MS^(1/3) - 1) 3/q + q/3.

    q² is the variance of the mean square: of the terms of a subject given its other responses, which are summed over
    the categories that the response could have been (of counts and shares the squares that there are). As the
    expectations are the same whatever the parameters, what their estimation does to the sum is its regression on the
    scores s of the item's own parameters, c' (S + Λ)⁻¹ s, where S are the sums of products of scores, c those with the
    terms, and Λ is the information of the priors: errors of estimates have the covariance (S + Λ)⁻¹ if the parameters
    are distributed as their priors say. The share of the squares that it leaves multiplies q². Items that are not
    `informative` have no t. Nor have subjects: their terms are not independent once the ability is integrated out.

    Args:
        test: items and responses.
        own: parameters that were estimated from the responses to each item; None if they are not known: no item has t.
    """
    num_subjects, num_items = test.num_subjects, len(test.top)
    of_subjects, spread, gram = np.zeros((4, num_subjects)), np.zeros((2, num_items)), np.zeros((num_items, 0, 0))
    for part in terms(test, nodes_of(test)):
        items, subjects = test.single.items[part.at], test.single.subjects[part.at] - part.rows.start
        leading = (part.square, part.variance, part.standardised, np.ones(len(items)))
        for total, term in zip(spread, (part.spread_of_square, part.spread_of_standardised), strict=True):
            total += np.bincount(items, term, num_items)
        for total, term in zip(of_subjects[:, part.rows], leading, strict=True):
            total += np.bincount(subjects, term, len(total))
        added = _products(items, np.stack([*leading, *part.scores]), num_items)
        gram = added if not gram.size else gram + added
    square, variance, standardised, number = gram[:, :4, 3].T
    with np.errstate(invalid="ignore", divide="ignore"):
        infit, outfit = square / variance, standardised / number
        none = np.zeros(num_items)
        lines = np.stack([np.stack([none + 1, -infit, none, none]), np.stack([none, none, none + 1, -outfit])])
        q = np.sqrt(spread * _left_of_residuals(gram, lines, own)) / np.stack([variance, number])
        infit_t, outfit_t = (
            np.where(informative(test), _standard(found, each), np.nan)
            for found, each in zip((infit, outfit), q, strict=True)
        )
        nothing = np.full(num_subjects, np.nan)
        for_subjects = (of_subjects[0] / of_subjects[1], nothing, of_subjects[2] / of_subjects[3], nothing)
    return MeanSquares(infit, infit_t, outfit, outfit_t), MeanSquares(*for_subjects)


def _products(
    items: Int[np.ndarray, " n"], columns: Float[np.ndarray, "P n"], num_items: int
) -> Float[np.ndarray, "I P P"]:
    """Sums over the responses to each item of the products of columns."""
    size = len(columns)
    found = np.empty((num_items, size, size))
    for a in range(size):
        for b in range(a + 1):
            found[:, a, b] = found[:, b, a] = np.bincount(items, columns[a] * columns[b], num_items)
    return found


def _left_of_residuals(
    gram: Float[np.ndarray, "I P P"], lines: Float[np.ndarray, "2 4 I"], own: OwnParameters | None
) -> Float[np.ndarray, "2 I"]:
    """What a regression on the scores leaves of the squares of linear functions of the four leading columns, 0 to 1."""
    if own is None:
        return np.full((2, len(gram)), np.nan)
    size = gram.shape[2] - 4
    free, prior = own.free[:, :size].astype(float), own.prior[:, :size]
    scores = gram[:, 4:, 4:] * free[:, :, None] * free[:, None, :] + prior[:, :, None] * np.eye(size)
    scale = np.sqrt(np.maximum(np.diagonal(scores, axis1=1, axis2=2), LEAST_VARIANCE))
    inverse = np.linalg.pinv(scores / (scale[:, :, None] * scale[:, None, :]), rcond=RELATIVE, hermitian=True)
    cross = np.einsum("kai,iap->kip", lines, gram[:, :4, 4:]) * (free / scale)[None]
    total = np.einsum("kai,iab,kbi->ki", lines, gram[:, :4, :4], lines)
    explained = np.einsum("kip,ipq,kiq->ki", cross, inverse, cross)
    number, estimated = gram[:, 3, 3], free.sum(axis=1)
    return np.maximum(1 - explained / total, 0.0) * number / np.maximum(number - estimated, 1)


def _standard(mean_square: Float[np.ndarray, " N"], q: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """A mean square with the standard deviation q as a standard normal number, by Wilson and Hilferty (1931)."""
    return (np.cbrt(mean_square) - 1) * 3 / q + q / 3


def at_abilities(test: Tested, theta: Float[np.ndarray, " J"]) -> tuple[MeanSquares, MeanSquares]:
    """Mean squares of items and of subjects at abilities that are taken as known, with t by Wilson and Hilferty.

    t = (MS^(1/3) - 1) 3/q + q/3, with q² the variance of the mean square (Wright and Masters 1982, table 5.4a). As the
    abilities were estimated from the responses, mean squares are below 1 under the model, most so on short tests, and t
    below 0.

    Args:
        test: items and responses.
        theta: abilities; subjects without a finite one do not count.
    """
    of_items, of_subjects = np.zeros((6, len(test.top))), np.zeros((6, len(theta)))
    single, y, trials = test.single, worths(test), test.effective
    of_answers = theta[single.subjects]
    for at in own_parts(test, np.isfinite(of_answers), (int(test.top.max()) + 1) ** 2):
        mean, variance, fourth = _central_moments(test.alone(at, of_answers[at]))
        n = trials[at]
        variance, square = n * variance, (n * (y[at] - mean)) ** 2
        fourth = fourth * n  # of categories, n is 1
        terms = (square, variance, square / variance, fourth - variance**2, fourth / variance**2 - 1, np.ones(len(n)))
        for of_item, of_subject, term in zip(of_items, of_subjects, terms, strict=True):
            of_item += np.bincount(single.items[at], term, len(of_item))
            of_subject += np.bincount(single.subjects[at], term, len(of_subject))
    return _standardised(of_items), _standardised(of_subjects)


def _central_moments(
    alone: Tested,
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Mean, variance and fourth central moment of responses; of counts and shares the last is NaN."""
    found = deviations_at(alone, np.zeros(1))
    if found.of_categories is None:
        return found.mean[0], found.variance[0], np.full(len(found.mean[0]), np.nan)
    assert found.log_p is not None
    return found.mean[0], found.variance[0], (np.exp(found.log_p) * found.of_categories**4).sum(axis=2)[0]


def _standardised(sums: Float[np.ndarray, "6 N"]) -> MeanSquares:
    square, variance, standardised, of_infit, of_outfit, number = sums
    with np.errstate(invalid="ignore", divide="ignore"):
        infit, outfit = square / variance, standardised / number
        q = np.sqrt(of_infit) / variance, np.sqrt(of_outfit) / number
        return MeanSquares(infit, _standard(infit, q[0]), outfit, _standard(outfit, q[1]))
