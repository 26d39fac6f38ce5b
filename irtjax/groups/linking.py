"""Two tests on one scale, by the items that both have (Kolen and Brennan 2014, chapter 6).

Each fit has the scale of its own subjects. θ = A θ' + B takes abilities of the other scale to that of the base, where
its items have discriminations a' / A and difficulties A b' + B.
"""

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.estimation.diagnostics import FitWarning
from irtjax.fits.fit_files import holds_fit
from irtjax.fits.result import Fit, load_fit
from irtjax.groups.choices import LINK_METHODS
from irtjax.groups.known_curves import KnownCurves, KnownTest, known_test
from irtjax.groups.link_constants import Weights, constants, covariance_of_constants
from irtjax.types import Float, Int, Shaped

NODES = 41
REACH = 4.0  # standard deviations, to which they go
DRIFTING = 2.7  # robust z of a common item, beyond which it is told
NORMAL_IQR = 1.349  # interquartile range of a normal distribution, in standard deviations
FEWEST = 2  # common items
LEAST_SPREAD = 1e-6  # logits, below which differences between common items are those of rounding


@dataclasses.dataclass(frozen=True, eq=False)
class Link:
    """θ = A θ' + B, from the scale of the other test to that of the base.

    Attributes:
        slope: A.
        intercept: B, in units of the base scale.
        slope_se: standard error of A; NaN unless both tests are fits that have a `covariance`.
        intercept_se: of B.
        covariance: (2, 2) of A and B.
        method: as of `link`.
        common: one row per common item: its discrimination and difficulty on the base scale by either test, the
            `difference` of expected responses (root mean square over abilities, on the item's scale from 0 to 1),
            `robust_z`, whether it is `drifting`, and whether the link `used` it.
    """

    slope: float
    intercept: float
    slope_se: float
    intercept_se: float
    covariance: Float[np.ndarray, "2 2"]
    method: str
    common: pd.DataFrame

    def abilities(self, theta: Any) -> Any:
        """Abilities of the other test on the scale of the base."""
        return self.slope * theta + self.intercept

    def inverse(self) -> "Link":
        """From the scale of the base to that of the other test; errors by the delta method."""
        by = np.array([[-1 / self.slope**2, 0.0], [self.intercept / self.slope**2, -1 / self.slope]])
        covariance = by @ self.covariance @ by.T
        slope_se, intercept_se = map(float, np.sqrt(np.diag(covariance)))
        slope, intercept = 1 / self.slope, -self.intercept / self.slope
        return Link(slope, intercept, slope_se, intercept_se, covariance, self.method, self.common)

    @checks_types
    def items(self, table: pd.DataFrame) -> pd.DataFrame:
        """A table like `items.csv` of the other test, on the scale of the base; errors are given the link."""
        found = table.copy()
        for name in map(str, table.columns):
            base = name.removesuffix("_se")
            if base == "discrimination":
                found[name] = table[name] / self.slope
            elif base == "difficulty" or base.startswith("threshold_"):
                found[name] = self.slope * table[name] + (0.0 if name.endswith("_se") else self.intercept)
        return found

    def __repr__(self) -> str:
        used, drifting = int(self.common["used"].sum()), self.common["drifting"]
        errors = (
            "" if np.isnan(self.slope_se) else f" (standard errors {self.slope_se:.3f} and {self.intercept_se:.3f})"
        )
        lines = [
            f"Link by {self.method} on {used} of {len(self.common)} common items",
            f"θ = {self.slope:.4f} θ' {'+' if self.intercept >= 0 else '-'} {abs(self.intercept):.4f}{errors}",
        ]
        if drifting.any():
            names = ", ".join(f"'{name}'" for name in self.common.index[drifting][:5])
            lines.append(f"{int(drifting.sum())} common items drift, robust |z| > {DRIFTING}: {names}")
        return "\n".join(lines)


@checks_types
def link(
    base: Any,
    other: Any,
    method: str = "stocking_lord",
    *,
    items: Sequence[str | int] | None = None,
    symmetric: bool = True,
    weights: str | tuple[Any, Any] = "normal",
    robust: bool = False,
) -> Link:
    """Finds A and B, which take the scale of one test to that of another.

    With P_i of the base and P'_i of the other test for each common item i, and nodes θ_q of weight w_q:

    * "haebara" (Haebara 1980) minimises Σ_q w_q Σ_i Σ_k (P_ik(θ_q) - P'_ik((θ_q - B) / A))², over the categories k of
      graded items, and the right answer alone of items that are right or wrong;
    * "stocking_lord" (Stocking and Lord 1983) the squares of the differences of the expected scores of the whole
      common test;
    * "mean_mean" takes A = mean a' / mean a, "mean_geometric" the geometric means, "mean_sigma" (Marco 1977) the
      standard deviations of difficulties and thresholds; each of them B = mean b - A mean b'.

    Args:
        base: a fit, the folder of a saved one, a table like `items.csv`, or the path of one, whose scale is kept.
        other: of the other test; items that both have are known by their ids.
        method: one of these.
        items: ids of the common items to use; by default all.
        symmetric: whether curves are compared on the other scale too, so that the link back is the inverse.
        weights: "normal", 41 nodes from -4 to 4 weighed by N(0, 1); "uniform", the same of equal weight; or nodes and
            weights, as they are on either scale.
        robust: whether common items whose robust z is beyond 2.7 are left out, one after the other, the worst first
            (Huynh and Meyer 2010).

    Returns:
        The link. Standard errors are by the delta method, where both tests are fits with covariances (Ogasawara 2000).

    Raises:
        InputError: an unknown method, fewer than two common items, items of other models or scales, or a discrimination
            of the wrong sign for moments.

    Warns:
        FitWarning: discriminations of either sign, by "stocking_lord".
    """
    if method not in LINK_METHODS:
        raise InputError(f"unknown method {method!r}, expected one of {', '.join(LINK_METHODS)}")
    both = common_items(known_test(base), known_test(other), items)
    used, at = np.ones(len(both.item_ids), bool), nodes_and_weights(weights)
    while True:
        chosen = both.take(np.flatnonzero(used))
        found = constants(chosen.base, chosen.other, method, at, symmetric)
        z = _robust_z(both, *found)
        worst = int(np.argmax(np.where(used, np.abs(z), 0.0)))
        if not robust or abs(z[worst]) <= DRIFTING or used.sum() <= FEWEST:
            break
        used[worst] = False
    slopes = np.asarray(chosen.base.places()[0])
    if method == "stocking_lord" and (slopes > 0).any() and (slopes < 0).any():
        warnings.warn(
            f"{int((slopes < 0).sum())} of {len(slopes)} common items have negative discriminations: their curves and "
            "the others' cancel in the expected score, which stocking_lord compares; take haebara",
            FitWarning,
            stacklevel=3,
        )
    of_items = [_errors_of(test, chosen.item_ids) for test in (base, other)]
    covariance = covariance_of_constants(chosen.base, chosen.other, method, at, symmetric, found, of_items)
    slope_se, intercept_se = map(float, np.sqrt(np.diag(covariance)))
    table = _table(both, *found, at).assign(robust_z=z, drifting=np.abs(z) > DRIFTING, used=used)
    return Link(*found, slope_se, intercept_se, covariance, method, table)


class Both(NamedTuple):
    """The common items of two tests, in one order: ids (I,), and the curves by either."""

    item_ids: Shaped[np.ndarray, " I"]
    base: KnownCurves
    other: KnownCurves

    def take(self, places: Int[np.ndarray, " N"]) -> "Both":
        """Some of them."""
        return Both(
            self.item_ids[places],
            *(KnownTest(self.item_ids, test).take(places).curves for test in (self.base, self.other)),
        )


def common_items(base: KnownTest, other: KnownTest, items: Sequence[str | int] | None) -> Both:
    """The common items.

    Raises:
        InputError: there are fewer than two, one that was asked for is not common, or one has another scale.
    """
    common = pd.Index(base.item_ids).intersection(pd.Index(other.item_ids), sort=False)
    if items is not None:
        wanted = pd.Index([str(item) for item in items])
        absent = wanted[~wanted.isin(common)]
        if len(absent):
            raise InputError(f"`items`: '{absent[0]}' is not an item of both tests")
        common = wanted.drop_duplicates()
    if len(common) < FEWEST:
        raise InputError(f"the tests have {len(common)} items in common, expected {FEWEST} or more with the same ids")
    one, another = (test.take(pd.Index(test.item_ids).get_indexer(common)).curves for test in (base, other))
    unlike = np.array(
        [
            first is not second or m != n or not np.array_equal(worth[: m + 1], others[: n + 1])
            for first, second, m, n, worth, others in zip(
                one.families(), another.families(), one.top, another.top, one.worth, another.worth, strict=True
            )
        ]
    )
    if unlike.any():
        raise InputError(f"item '{common[unlike][0]}' has another model, or other grades, in the two tests")
    return Both(common.to_numpy(), one, another)


def nodes_and_weights(weights: str | tuple[Any, Any]) -> Weights:
    """Nodes and weights.

    Raises:
        InputError: they are none.
    """
    theta = np.linspace(-REACH, REACH, NODES)
    if isinstance(weights, str):
        if weights not in ("normal", "uniform"):
            raise InputError(f"unknown `weights` {weights!r}, expected normal, uniform, or nodes and weights")
        weight = np.exp(-0.5 * theta**2) if weights == "normal" else np.ones(NODES)
    else:
        theta, weight = (np.asarray(part, float).ravel() for part in weights)
        if theta.shape != weight.shape or not (weight >= 0).all() or not weight.sum() > 0:
            raise InputError("`weights`: expected nodes, and as many weights of 0 or more")
    return Weights(theta, weight / weight.sum())


def _errors_of(given: Any, item_ids: Shaped[np.ndarray, " I"]) -> Float[np.ndarray, "n n"] | None:
    """Covariances of all parameters of these items in a fit; None where they are not known."""
    fit = load_fit(given) if holds_fit(given) else given
    if not isinstance(fit, Fit) or fit.covariance is None:
        return None
    at = pd.Index(fit.responses.item_ids.astype(str)).get_indexer(item_ids)
    placed = fit.extreme[at] & (fit.covariance.places[at] < 0).all(axis=1)
    return None if placed.any() else fit.covariance.of(at)  # what was placed, and not estimated, is not known exactly


def _robust_z(both: Both, slope: float, intercept: float) -> Float[np.ndarray, " I"]:
    """The larger in size of the robust z of log discriminations and of difficulties: from the median, in 0.74 IQR."""
    with jax.enable_x64(True):
        (a, b), (a_other, b_other) = (tuple(map(np.asarray, test.places())) for test in (both.base, both.other))
    with np.errstate(all="ignore"):
        of_slopes = np.log(a) - np.log(a_other / slope)
        of_places = np.nanmean(b, axis=1) - (slope * np.nanmean(b_other, axis=1) + intercept)
    of_both = np.stack([_in_robust_units(of_slopes), _in_robust_units(of_places)])
    return np.take_along_axis(of_both, np.abs(of_both).argmax(axis=0)[None], axis=0)[0]


def _in_robust_units(values: Float[np.ndarray, " I"]) -> Float[np.ndarray, " I"]:
    low, middle, high = np.nanquantile(values, [0.25, 0.5, 0.75])
    spread = (high - low) / NORMAL_IQR
    return np.nan_to_num((values - middle) / spread) if spread > LEAST_SPREAD else np.zeros(len(values))


def _table(both: Both, slope: float, intercept: float, at: Weights) -> pd.DataFrame:
    """The common items on the base scale, by either test."""
    with jax.enable_x64(True):
        (a, b), (a_other, b_other) = (tuple(map(np.asarray, test.places())) for test in (both.base, both.other))
        expected = [
            np.asarray(test.expected(theta))
            for test, theta in ((both.base, at.theta), (both.other, (at.theta - intercept) / slope))
        ]
    span = both.base.worth[range(len(both.item_ids)), both.base.top] - both.base.worth[:, 0]
    difference = np.sqrt(at.weights @ ((expected[0] - expected[1]) / span) ** 2)
    return pd.DataFrame(
        {
            "discrimination": a,
            "discrimination_other": a_other / slope,
            "difficulty": np.nanmean(b, axis=1),
            "difficulty_other": slope * np.nanmean(b_other, axis=1) + intercept,
            "difference": difference,
        },
        index=pd.Index(both.item_ids, name="item_id"),
    )
