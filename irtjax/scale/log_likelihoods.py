"""Log-likelihoods of responses of any kind, with their means and variances given the ability: what lz is made of.

Of categories and counts they are sums over all responses that there could be. A share has a density, of which with the
natural parameters η (`irtjax.item_models.unit_interval`)

    l = Σ_s w_s T_s(y) - A,     w = η, less 1 for log y and log(1 - y),

so that E l = Σ w_s E T_s - A, Var l = w' Cov T w and Cov(l, s) = w' Cov T g with g = ∂η / ∂θ.
"""

import dataclasses
from typing import Any

import numpy as np
from scipy.special import gammaln

from irtjax.item_models.beta_binomial import BetaBinomial
from irtjax.item_models.binary import Binary
from irtjax.item_models.binomial import Binomial
from irtjax.item_models.categories import Coordinates, Indicators
from irtjax.item_models.protocol import PredictorParameters
from irtjax.scale.person_fit import Terms, of_categories
from irtjax.scale.response_curves import CategoryCurves, category_curves, count_curves
from irtjax.scale.tested import Tested
from irtjax.types import Float, Int, Shaped

STEP = 1e-5  # logits, of a difference quotient
OF_A_SHARE = 16  # covariances of its statistics
ORIGIN = np.zeros(1)  # where each response is evaluated (`Tested.alone`)


def terms_at(test: Tested, at: Int[np.ndarray, " n"], theta: Float[np.ndarray, " n"]) -> Terms:
    """Of some responses at the abilities of their subjects."""
    alone, values, trials = test.alone(at, theta), test.single.answers[at][None], test.trials[at][None]
    if isinstance(test.model, Binary):
        return _flat(of_categories(values.astype(int), category_curves(alone.model, alone.items, ORIGIN)))
    found = Terms(*np.zeros((5, len(at))))
    for family, some in alone.model.groups(len(at)):
        if not len(some):
            continue
        own = alone.items.take(some)
        if isinstance(family, BetaBinomial):
            part = _of_agreeing_trials(values[:, some], trials[:, some], ORIGIN, own, family)
        elif isinstance(family, Indicators):
            only = dataclasses.replace(test.model, families=(family,), of_items=(0,))
            part = of_categories(values[:, some].astype(int), category_curves(only, own, ORIGIN))
        elif isinstance(family, Binomial):
            part = _of_counts(values[:, some], trials[:, some], ORIGIN, own, family)
        else:
            part = _of_shares(values[:, some], ORIGIN, own, family)
        for leaf, of_family in zip(found, _flat(part), strict=True):
            leaf[some] = of_family
    return found


def _flat(terms: Terms) -> Terms:
    """Of one row."""
    return Terms(*(leaf[0] for leaf in terms))


def most_values(test: Tested) -> int:
    """The most responses that there could be to an item, or entries of a covariance of its statistics."""
    trials = int(test.trials.max(initial=1.0)) + 1
    return max(trials, int(test.top.max()) + 1, OF_A_SHARE)


def _of_counts(
    values: Shaped[np.ndarray, "J N"],
    trials: Float[np.ndarray, "J N"],
    theta: Float[np.ndarray, " J"],
    items: PredictorParameters,
    family: Any,
) -> Terms:
    eta, log_normalizer = (np.asarray(leaf) for leaf in family.natural(_at(items, theta), 1))
    right = np.asarray(family.mean(_at(items, theta), 1))
    n = np.maximum(trials, 1.0)[:, :, None]
    k = np.arange(n.max() + 1)
    log_p = gammaln(n + 1) - gammaln(k + 1) - gammaln(np.maximum(n - k, 0) + 1)
    log_p = log_p + k * eta - n * log_normalizer[:, :, None]
    by_theta = (k - n * right) * _slope_of_natural(items, theta, family, 1)
    curves = CategoryCurves(np.where(k <= n, log_p, -np.inf), np.where(k <= n, by_theta, 0.0))
    return of_categories(values.astype(int), curves)


def _of_agreeing_trials(
    values: Shaped[np.ndarray, "J N"],
    trials: Float[np.ndarray, "J N"],
    theta: Float[np.ndarray, " J"],
    items: PredictorParameters,
    family: BetaBinomial,
) -> Terms:
    """By number of trials, as each has its own counts."""
    found = Terms(*np.zeros((5, *values.shape)))
    for n in np.unique(trials[trials > 0]):
        part = of_categories(np.minimum(values, n).astype(int), count_curves(family, items, theta, int(n)))
        for leaf, of_number in zip(found, part, strict=True):
            np.copyto(leaf, of_number, where=trials == n)
    return found


def _at(items: PredictorParameters, theta: Float[np.ndarray, " J"]) -> Coordinates:
    x = theta[:, None] * np.asarray(items.slope)[:, 0] + np.asarray(items.intercept)
    return Coordinates(x, np.asarray(items.others), np.asarray(items.top))


def _slope_of_natural(
    items: PredictorParameters, theta: Float[np.ndarray, " J"], family: Any, number: int
) -> Float[np.ndarray, "J N S"]:
    """∂η / ∂θ."""
    above, below = (np.asarray(family.natural(_at(items, theta + step), number)[0]) for step in (STEP, -STEP))
    return (above - below) / (2 * STEP)


def _of_shares(
    values: Shaped[np.ndarray, "J N"], theta: Float[np.ndarray, " J"], items: PredictorParameters, family: Any
) -> Terms:
    number, at = family.num_statistics(1), _at(items, theta)
    residual = np.asarray(family.statistics(values, number)) - np.asarray(family.mean(at, number))
    covariance, by = np.asarray(family.covariance(at, number)), _slope_of_natural(items, theta, family, number)
    weight = np.array(family.natural(at, number)[0])
    weight[:, :, -2:] -= 1.0  # of the base, log h = -log y - log(1 - y)

    def product(one: np.ndarray, other: np.ndarray) -> Float[np.ndarray, "J N"]:
        return np.einsum("jis,jist,jit->ji", one, covariance, other)

    return Terms(
        (weight * residual).sum(axis=2),
        (by * residual).sum(axis=2),
        product(weight, weight),
        product(weight, by),
        product(by, by),
    )
