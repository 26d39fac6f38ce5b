"""One- and two-way margins of responses in categories: observed, expected, their covariance Ξ and Jacobian Δ.

A category is worth a number v. The margin of a pair of items is the mean product of what their responses are worth. An
item has one margin for each feature f(y): the indicators of its categories but the lowest, or v alone. Of right/wrong
items both are the share of right answers, and margins of pairs the shares of both right.
"""

from typing import NamedTuple

import numpy as np

from irtjax.types import Float, Int


class Margins(NamedTuple):
    """Numbers for the features of each item, and for each pair of items, symmetric with a diagonal of zeros.

    Attributes:
        one: (I, M), 0 where an item has fewer features.
        two: (I, I).
    """

    one: Float[np.ndarray, "I M"]
    two: Float[np.ndarray, "I I"]


class Features(NamedTuple):
    """What margins are of.

    Attributes:
        worth: (I, C) v.
        of_category: (I, C, M) f.
        there: (I, M) which features an item has.
    """

    worth: Float[np.ndarray, "I C"]
    of_category: Float[np.ndarray, "I C M"]
    there: np.ndarray

    def take(self, items: Int[np.ndarray, " N"]) -> "Features":
        """Those of some of the items."""
        return Features(*(leaf[items] for leaf in self))

    def flat(self, margins: Margins) -> Float[np.ndarray, " M"]:
        """The numbers of all items, then of all pairs."""
        return np.concatenate([margins.one[self.there], margins.two[np.triu_indices(len(self.there), 1)]])

    def unflat(self, flat: Float[np.ndarray, " M"]) -> Margins:
        """The inverse of `flat`."""
        num_items, number = len(self.there), int(self.there.sum())
        one, two = np.zeros(self.there.shape), np.zeros((num_items, num_items))
        one[self.there] = flat[:number]
        two[np.triu_indices(num_items, 1)] = flat[number:]
        return Margins(one, two + two.T)

    def observed(self, values: Int[np.ndarray, "J I"]) -> Margins:
        """Margins of complete responses."""
        each = np.arange(values.shape[1])[None, :]
        y = self.worth[each, values]
        products = y.T @ y / len(y)
        return Margins(self.of_category[each, values].mean(axis=0), products - np.diag(np.diag(products)))


def features(top: Int[np.ndarray, " I"], *, indicators: bool) -> Features:
    """Indicators of categories or their numbers, of items with the highest category `top`; these are what v is."""
    most = int(top.max())
    own = np.arange(most + 1) <= top[:, None]
    worth = np.where(own, np.arange(most + 1.0), 0.0)
    if not indicators:
        return Features(worth, worth[:, :, None], np.ones((len(top), 1), bool))
    return Features(worth, np.broadcast_to(np.eye(most + 1)[None, :, 1:], (len(top), most + 1, most)), own[:, 1:])


class Moments:
    """Expected margins, Ξ and Δ as sums over nodes of ability.

    Responses are independent given the ability. With v = E + u, a sum x'm over margins m is const + Σ_i g_i(y_i) +
    u'Su/2, where S is the symmetric matrix of the weights of pairs, and g_i the weighted features of an item and
    (S E)_i v. Its covariance with m at a node, and that of the means over nodes, are products of matrices of I × Q and
    I × I numbers: Ξ is never formed.
    """

    def __init__(
        self,
        of: Features,
        p: Float[np.ndarray, "Q I C"],
        weights: Float[np.ndarray, " Q"],
        by: Float[np.ndarray, "Q I C K"],
        design: Float[np.ndarray, "IK P"],
    ) -> None:
        """`by` has derivatives by the K parameters of each item, `design` those of I K parameters by P free ones."""
        self.of, self.weights, self.design = of, weights, design
        off = 1 - np.eye(p.shape[1])
        self.mean, self.features = (p * of.worth[None]).sum(axis=2), np.einsum("qic,icm->qim", p, of.of_category)
        square = (p * of.worth[None] ** 2).sum(axis=2)
        self.variance = np.maximum(square - self.mean**2, 0.0)
        crossed = np.einsum("qic,ic,icm->qim", p, of.worth, of.of_category, optimize=True)
        self.with_worth = crossed - self.features * self.mean[:, :, None]
        both = np.einsum("qic,icm,icl->qiml", p, of.of_category, of.of_category, optimize=True)
        self.with_features = both - self.features[..., None] * self.features[..., None, :]
        weighted = weights[:, None] * self.mean
        self.expected = Margins(np.einsum("q,qim->im", weights, self.features), (weighted.T @ self.mean) * off)
        self.spread = (weights @ self.mean, weights @ square - (weights @ self.mean) ** 2)
        self.both = (weights[:, None] * self.variance).T @ self.variance * off
        slopes = weights[:, None, None, None] * by
        self.by_one = np.einsum("qick,icm->imk", slopes, of.of_category, optimize=True)
        of_worth = np.einsum("qick,ic->qik", slopes, of.worth, optimize=True)
        self.by_two = np.einsum("qik,qj->ikj", of_worth, self.mean, optimize=True) * off[:, None, :]
        squares = np.einsum("q,qimm->im", weights, both), (weights[:, None] * square).T @ square * off
        self.sd = np.sqrt(of.flat(Margins(*squares)) - of.flat(self.expected) ** 2)

    def covariance(self, x: Float[np.ndarray, " M"]) -> Float[np.ndarray, " M"]:
        """Ξ x."""
        one, two = self.of.unflat(x)
        towards = self.mean @ two
        means = np.einsum("qim,im->q", self.features, one) + 0.5 * (towards * self.mean).sum(1)
        between = self.weights * (means - self.weights @ means)
        of_features = np.einsum("qiml,il->qim", self.with_features, one) + self.with_worth * towards[:, :, None]
        of_worth = np.einsum("qim,im->qi", self.with_worth, one) + self.variance * towards
        within = self.weights[:, None] * of_worth
        cross = self.mean.T @ (within + 0.5 * between[:, None] * self.mean)
        first = np.einsum("q,qim->im", self.weights, of_features) + np.einsum("q,qim->im", between, self.features)
        return self.of.flat(Margins(first, cross + cross.T + self.both * two))

    def by_parameters(self, x: Float[np.ndarray, " M"]) -> Float[np.ndarray, " P"]:
        """Δ' x, one number per free parameter."""
        one, two = self.of.unflat(x)
        each = np.einsum("imk,im->ik", self.by_one, one) + np.einsum("ikj,ij->ik", self.by_two, two)
        return each.ravel() @ self.design

    def by_margins(self, parameters: Float[np.ndarray, " P"]) -> Float[np.ndarray, " M"]:
        """Δ y, with y one number per free parameter."""
        each = (self.design @ parameters).reshape(len(self.by_one), -1)
        half = np.einsum("ikj,ik->ij", self.by_two, each)
        return self.of.flat(Margins(np.einsum("imk,ik->im", self.by_one, each), half + half.T))

    def gram(self) -> Float[np.ndarray, "P P"]:
        """Δ' diag(sd)⁻² Δ; parameters of different items meet in a single margin, that of the pair of these items."""
        number = len(self.by_one)
        variance = self.of.unflat(self.sd**2)
        scaled = self.by_two / (variance.two + np.eye(number))[:, None, :]
        whole = np.einsum("ikj,jli->ikjl", scaled, self.by_two)
        own = np.einsum("ikj,ilj->ikl", scaled, self.by_two)
        alone = self.by_one / np.where(self.of.there, variance.one, np.inf)[:, :, None]
        own += np.einsum("imk,iml->ikl", alone, self.by_one)
        whole[np.arange(number), :, np.arange(number)] = own
        return self.design.T @ whole.reshape(len(self.design), -1) @ self.design
