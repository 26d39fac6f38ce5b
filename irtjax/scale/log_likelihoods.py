"""Log-likelihoods of responses of any kind, with their means and variances given the ability: what lz is made of.

Of categories and counts they are sums over all responses that there could be. A share has a density, of which with the
natural parameters η (`irtjax.item_models.unit_interval`)

    l = Σ_s w_s T_s(y) - A,     w = η, less 1 for log y and log(1 - y),

so that E l = Σ w_s E T_s - A, Var l = w' Cov T w and Cov(l, s) = w' Cov T g with g = ∂η / ∂θ.
"""

from typing import Any

import jax
import numpy as np
from scipy.special import expit, gammaln

from irtjax.item_models.binary import Binary
from irtjax.item_models.binomial import Binomial
from irtjax.item_models.categories import Indicators
from irtjax.scale.person_fit import Terms, of_categories
from irtjax.scale.response_curves import CategoryCurves, category_curves
from irtjax.scale.tested import Tested
from irtjax.types import Float, Int


def terms_at(test: Tested, rows: slice, theta: Float[np.ndarray, " J"]) -> Terms:
    """Of the responses of some subjects at their abilities; whatever is finite where they are missing."""
    values, number = test.values[rows], test.values.shape[1]
    if isinstance(test.model, Binary):
        return of_categories(values.astype(int), category_curves(test.model, test.items, theta))
    found = Terms(*np.zeros((5, len(theta), number)))
    for family, items in test.model.groups(number):
        if not len(items):
            continue
        if isinstance(family, Indicators):
            curves = category_curves(test.model, test.items, theta)
            part = of_categories(values[:, items].astype(int), CategoryCurves(*(leaf[:, items] for leaf in curves)))
        elif isinstance(family, Binomial):
            part = _of_counts(test, rows, theta, items)
        else:
            part = _of_shares(test, values, theta, items, family)
        for leaf, own in zip(found, part, strict=True):
            leaf[:, items] = own
    return found


def most_values(test: Tested) -> int:
    """The most responses that there could be to an item, or entries of a covariance of its statistics."""
    trials = int(test.observed.max(initial=1.0)) + 1
    return max(trials, int(test.top.max()) + 1, 1 if test.known is None else test.known.model.per_item**2)


def _of_counts(test: Tested, rows: slice, theta: Float[np.ndarray, " J"], items: Int[np.ndarray, " N"]) -> Terms:
    slope = np.asarray(test.items.slope)[items, 0]
    x = theta[:, None] * slope + np.asarray(test.items.intercept)[items]
    n = np.maximum(test.observed[rows][:, items], 1.0)[:, :, None]
    k = np.arange(n.max() + 1)
    with np.errstate(invalid="ignore"):
        log_p = gammaln(n + 1) - gammaln(k + 1) - gammaln(np.maximum(n - k, 0) + 1) + k * x[:, :, None]
    log_p = np.where(k <= n, log_p - n * np.logaddexp(0, x)[:, :, None], -np.inf)
    by_theta = np.where(k <= n, (k - n * expit(x)[:, :, None]) * slope[None, :, None], 0.0)
    curves = CategoryCurves(log_p, by_theta)
    return of_categories(test.values[rows][:, items].astype(int), curves)


def _of_shares(
    test: Tested, values: np.ndarray, theta: Float[np.ndarray, " J"], items: Int[np.ndarray, " N"], family: Any
) -> Terms:
    shape = len(theta), test.values.shape[1], -1
    with jax.enable_x64(True):
        natural = test.model.natural(test.items, theta[:, None], asymptotes=False)
        moments = test.model.moments(test.items, theta[:, None], asymptotes=False)
    eta, mean, by_x = (
        np.asarray(leaf).reshape(shape)[:, items] for leaf in (natural.eta, moments.mean, moments.by_predictor)
    )
    covariance = np.asarray(moments.covariance)[:, items]
    statistics = np.asarray(test.model.statistics(values)).reshape(len(values), values.shape[1], -1)[:, items]
    own = family.num_statistics(1)
    weight, by = eta.copy(), by_x * np.asarray(test.items.slope)[items, :1]
    weight[:, :, own - 2 : own] -= 1.0  # of the base, log h = -log y - log(1 - y)
    residual = statistics - mean

    def product(one: np.ndarray, other: np.ndarray) -> Float[np.ndarray, "J N"]:
        return np.einsum("jis,jist,jit->ji", one, covariance, other)

    return Terms(
        (weight * residual).sum(axis=2),
        (by * residual).sum(axis=2),
        product(weight, weight),
        product(weight, by),
        product(by, by),
    )
