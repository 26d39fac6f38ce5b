"""What items answer at given abilities: probabilities of categories, and mean and variance of what responses are worth.

A category is worth its number. Categories without order are worth their slopes, by which the nominal model orders them:
they are what it counts for ability, as the number of the category is in the partial credit model.
"""

from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.special import expit

from irtjax.item_models.beta_binomial import BetaBinomial
from irtjax.item_models.binary import Binary
from irtjax.item_models.binomial import Binomial
from irtjax.item_models.categories import Coordinates, Indicators, there
from irtjax.item_models.nominal import Nominal, of_categories
from irtjax.item_models.protocol import PredictorParameters
from irtjax.item_models.unit_interval import CUT, LOG_GAP, PRECISION, OrderedBeta
from irtjax.scale.tested import Tested
from irtjax.types import Float, Int


class CategoryCurves(NamedTuple):
    """Categories at Q abilities, 0 where an item has no such category.

    Attributes:
        log_p: (Q, I, C) logarithms of probabilities, -inf where there is none.
        by_theta: (Q, I, C) their derivatives by ability.
    """

    log_p: Float[np.ndarray, "Q I C"]
    by_theta: Float[np.ndarray, "Q I C"]

    @property
    def p(self) -> Float[np.ndarray, "Q I C"]:
        """Probabilities."""
        return np.exp(self.log_p)


def category_curves(model: Any, items: Any, theta: Float[np.ndarray, " Q"]) -> CategoryCurves:
    """Of items that all have categories: log P_k = η_k - A, of the lowest -A, and their derivatives η_k' - E η'."""
    shape = (len(theta), len(items.intercept), -1)
    with jax.enable_x64(True):
        natural = model.natural(items, theta[:, None], asymptotes=True)
        moments = model.moments(items, theta[:, None], asymptotes=True)
    eta, mean = (np.asarray(leaf).reshape(shape) for leaf in (natural.eta, moments.mean))
    by_x = np.ones_like(eta) if moments.by_predictor is None else np.asarray(moments.by_predictor).reshape(shape)
    by = by_x * np.asarray(items.slope)[None, :, :1]
    own = there(top_of(items), eta.shape[2])[None]
    lowest = -np.asarray(natural.log_normalizer)[:, :, None]
    pull = np.where(own, mean * by, 0.0).sum(axis=2, keepdims=True)
    return CategoryCurves(
        np.concatenate([lowest, np.where(own, eta + lowest, -np.inf)], axis=2),
        np.concatenate([-pull, np.where(own, by - pull, 0.0)], axis=2),
    )


def count_curves(
    family: BetaBinomial, items: PredictorParameters, theta: Float[np.ndarray, " Q"], number: int
) -> CategoryCurves:
    """Of items whose trials agree: log P(k | n) of k = 0 … n successes of `number` trials, and their derivatives."""
    x = theta[:, None] * np.asarray(items.slope)[:, 0] + np.asarray(items.intercept)
    at, alone = Coordinates(x, np.asarray(items.others), np.zeros(x.shape[1], int)), family.of_trials(number)
    eta, log_normalizer = alone.natural(at, number)
    log_p = np.pad(eta, ((0, 0), (0, 0), (1, 0))) - log_normalizer[:, :, None]
    by = np.pad(alone.derivatives(at, number)[0], ((0, 0), (0, 0), (1, 0))) * np.asarray(items.slope)[None, :, :1]
    return CategoryCurves(log_p, by - (np.exp(log_p) * by).sum(axis=2, keepdims=True))


def top_of(items: Any) -> Int[np.ndarray, " I"]:
    """The highest category of each item."""
    return np.asarray(items.top) if isinstance(items, PredictorParameters) else np.ones(len(items.intercept), int)


def parameter_derivatives(model: Any, items: Any, theta: Float[np.ndarray, " Q"]) -> list[Float[np.ndarray, "Q M"]]:
    """∂η by slope, intercept and each of the others; by asymptotes only where an item has one."""
    with jax.enable_x64(True):
        moments = model.moments(items, theta[:, None], asymptotes=items.has_others())
        mean = np.asarray(moments.mean)
        by_x, *others = (None if by is None else np.asarray(by) for by in moments.derivatives())
    by_x = np.ones_like(mean) if by_x is None else by_x
    return [by_x * theta[:, None], by_x, *(by for by in others if by is not None)]


def worth(test: Tested) -> Float[np.ndarray, "I C"]:
    """What each category is worth; 0 where an item has no such category."""
    most = int(test.top.max())
    found = np.where(np.arange(most + 1) <= test.top[:, None], np.arange(most + 1.0), 0.0)
    if isinstance(test.model, Binary):
        return found
    for family, items in test.model.groups(len(test.top)):
        if isinstance(family, Nominal):
            slopes, _ = of_categories(np.asarray(test.items.others)[items], most)
            found[items] = np.where(np.arange(most + 1) <= test.top[items, None], slopes, 0.0)
    return found


def worths(test: Tested) -> Float[np.ndarray, " N"]:
    """What each response is worth: of counts the share of successes."""
    items, answers = test.single.items, test.single.answers
    found = answers / test.trials
    graded = np.flatnonzero(test.graded[items])
    found[graded] = worth(test)[items[graded], answers[graded].astype(int)]
    return found


class Worth(NamedTuple):
    """Mean (Q, I) of what a response is worth at abilities, and variance of one trial."""

    mean: Float[np.ndarray, "Q I"]
    variance: Float[np.ndarray, "Q I"]


def worth_curves(test: Tested, theta: Float[np.ndarray, " Q"]) -> Worth:
    """Mean and variance of responses at abilities, whatever the items are."""
    if test.categorical:
        p, of_categories = category_curves(test.model, test.items, theta).p, worth(test)
        mean = (p * of_categories[None]).sum(axis=2)
        return Worth(mean, (p * (of_categories[None] - mean[:, :, None]) ** 2).sum(axis=2))
    x = theta[:, None] * test.items.slope[:, 0][None] + test.items.intercept[None]
    found = Worth(np.empty(x.shape), np.empty(x.shape))
    of_categories = worth(test)
    for family, items in test.model.groups(len(test.top)):
        at = Coordinates(x[:, items], np.asarray(test.items.others)[items], test.top[items])
        for leaf, part in zip(found, _of_family(family, at, of_categories[items]), strict=True):
            leaf[:, items] = part
    return found


def _of_family(family: Any, at: Coordinates, of_categories: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(family, Binomial | BetaBinomial):
        mean, variance = family.worth(at, of_categories)
        return np.asarray(mean), np.asarray(variance)
    if isinstance(family, Indicators):
        above = np.asarray(family.mean(at, of_categories.shape[1] - 1))
        p = np.concatenate([1 - above.sum(axis=2, keepdims=True), above], axis=2)
        mean = (p * of_categories[None]).sum(axis=2)
        return mean, (p * (of_categories[None] - mean[:, :, None]) ** 2).sum(axis=2)
    mu = expit(at.x)
    square = mu**2 + mu * (1 - mu) / (1 + np.exp(at.others[:, PRECISION]))[None]
    if not isinstance(family, OrderedBeta):
        return mu, square - mu**2
    cut = at.others[:, CUT]
    some, all_of_it = expit(at.x - cut[None]), expit(at.x - (cut + np.exp(at.others[:, LOG_GAP]))[None])
    mean = all_of_it + (some - all_of_it) * mu
    return mean, all_of_it + (some - all_of_it) * square - mean**2
