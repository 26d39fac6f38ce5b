"""Overall fit of a model by its one- and two-way margins: M2 or C2, RMSEA, TLI, CFI, SRMSR."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2, ncx2

from irtjax.errors import InputError
from irtjax.estimation.problem import layout
from irtjax.estimation.specify import item_types, specify
from irtjax.fits.result import Fit
from irtjax.kernels.models import ItemParameters, derivatives, probabilities
from irtjax.kernels.quadrature import of_moments
from irtjax.responses.values import whole
from irtjax.scale.forms import FEWEST, Form, forms
from irtjax.scale.margin_statistic import margin_statistic
from irtjax.scale.margins import Features, Moments, features
from irtjax.types import Float, Int


class OverallFit(NamedTuple):
    """How well a model reproduces the one- and two-way margins of the responses.

    Attributes:
        m2: distributed as χ² if the model holds.
        degrees_of_freedom: of M2.
        p_value: of M2.
        rmsea: sqrt(max(0, (M2 - df)/(df (J - 1)))), times the root of the number of forms (Steiger 1998).
        rmsea_low: lower end of its 90% interval.
        rmsea_high: upper end of it.
        srmsr: root mean square difference of observed and expected correlations.
        tli: Tucker-Lewis index against independent items.
        cfi: comparative fit index against independent items.
        name: of the statistic: M2, C2 or M2*.
    """

    m2: float
    degrees_of_freedom: int
    p_value: float
    rmsea: float
    rmsea_low: float
    rmsea_high: float
    srmsr: float
    tli: float
    cfi: float
    name: str = "M2"


class Curves(NamedTuple):
    """Items at Q abilities of a standard normal population.

    Attributes:
        p: (Q, I, C) probabilities of categories.
        by: (Q, I, C, K) their derivatives by the parameters of the item.
        weights: (Q,) of the abilities.
        design: (I K, P) derivatives of these parameters by the free ones.
    """

    p: Float[np.ndarray, "Q I C"]
    by: Float[np.ndarray, "Q I C K"]
    weights: Float[np.ndarray, " Q"]
    design: Float[np.ndarray, "IK P"]


def overall_fit(fit: Fit, model: str | Sequence[str] | None = None, held: bool = False) -> OverallFit:
    """M2 of a fit (Maydeu-Olivares and Joe 2005, 2006) and the indices derived from it.

        M2 = J (p - π)' [Ξ⁻¹ - Ξ⁻¹ Δ (Δ' Ξ⁻¹ Δ)⁻¹ Δ' Ξ⁻¹] (p - π)

    p are the observed shares of right answers to items and pairs of items, π the expected ones, Ξ / J is the covariance
    of p, and Δ the Jacobian of π. The bracket is the inverse of Ξ within the space orthogonal to Δ, so that M2 is the
    largest value of J (2 x'(p - π) - x'Ξx) over x with Δ'x = 0. Conjugate gradients find it, with products by Ξ and Δ
    summed over nodes of ability (`margins.Moments`). Ξ is never formed: for 300 items it has 45,150² numbers.

    Where responses are missing by design, each form of the test (`irtjax.scale.forms`) has margins of its own, of its
    own subjects, by the same parameters: p, π, and the blocks of Ξ and Δ, are those of all forms, one after the other.

    Args:
        fit: by MML, in one or more dimensions.
        model: as it was given to the fit, if each item had a type of its own.
        held: whether all items were anchors, so that only the mean and standard deviation of the population were
            estimated.

    Raises:
        InputError: missing answers that follow no design, fewer margins than parameters, or no convergence.
    """
    values = whole(fit.responses).values
    num_items = values.shape[1]
    items, dims = _of_standard_population(fit), fit.parameters.slope.shape[1]
    if held:
        design = _of_population(np.asarray(fit.parameters.slope), dims + 3)
    else:
        types = ["1pl" if kind == "rasch" else kind for kind in item_types(model or fit.model, num_items)]
        design = of_free(layout(specify(types, dims=dims)).items)
    quadrature = of_moments(dims)
    of_right = np.asarray(derivatives(items, quadrature.nodes))
    right, wrong = probabilities(items, quadrature.nodes)
    curves = Curves(
        p=np.stack([np.asarray(wrong), np.asarray(right)], axis=2),
        by=np.stack([-of_right, of_right], axis=2),
        weights=np.exp(quadrature.log_weights),
        design=design,
    )
    return fit_of_margins(values, curves, features(np.ones(num_items, int), indicators=True))


def fit_of_margins(values: Int[np.ndarray, "J I"], curves: Curves, of: Features, name: str = "M2") -> OverallFit:
    """The same of any items with categories.

    Raises:
        InputError: as of `overall_fit`; or margins that do not tell the parameters apart.
    """
    parts = forms(values)
    if not parts:
        raise InputError(f"{name} needs {FEWEST} subjects who answered the same items: leave out subjects or items")
    num_items, free = values.shape[1], curves.design.shape[1]
    observed = [of.take(form.items).observed(form.values) for form in parts]
    sizes = np.array([len(form.values) for form in parts])
    of_each = [of.take(form.items) for form in parts]
    margins = sum(int(each.there.sum()) + len(each.there) * (len(each.there) - 1) // 2 for each in of_each)
    degrees, degrees_0 = margins - free, margins - int(of.there.sum())
    if degrees <= 0:
        raise InputError(f"{name} of {num_items} items has no degrees of freedom")
    moments = [_of_form(curves, form, each) for form, each in zip(parts, of_each, strict=True)]
    statistic = margin_statistic(moments, observed, sizes, name)
    null = _independent(parts, of)
    of_null = [_of_form(null, form, each) for form, each in zip(parts, of_each, strict=True)]
    statistic_0 = margin_statistic(of_null, observed, sizes, name)
    num_subjects, scale = int(sizes.sum()), float(np.sqrt(len(parts)))
    return OverallFit(
        m2=statistic,
        degrees_of_freedom=degrees,
        p_value=float(chi2.sf(statistic, degrees)),
        rmsea=scale * _rmsea(statistic - degrees, degrees, num_subjects),
        rmsea_low=scale * _rmsea(_noncentrality(statistic, degrees, 0.95), degrees, num_subjects),
        rmsea_high=scale * _rmsea(_noncentrality(statistic, degrees, 0.05), degrees, num_subjects),
        srmsr=_srmsr(parts, of, moments, sizes),
        tli=(statistic_0 / degrees_0 - statistic / degrees) / (statistic_0 / degrees_0 - 1),
        cfi=1 - max(statistic - degrees, 0.0) / max(statistic_0 - degrees_0, statistic - degrees, 1e-300),
        name=name,
    )


def _of_form(curves: Curves, form: Form, of: Features) -> Moments:
    """Moments of the items of a form."""
    design = curves.design.reshape(curves.p.shape[1], curves.by.shape[3], curves.design.shape[1])[form.items]
    p, by = curves.p[:, form.items], curves.by[:, form.items]
    return Moments(of, p, curves.weights, by, design.reshape(design.shape[0] * design.shape[1], design.shape[2]))


def _rmsea(excess: float, degrees: int, num_subjects: int) -> float:
    """RMSEA of a statistic that exceeds its degrees of freedom, or of a noncentrality."""
    return float(np.sqrt(max(excess, 0.0) / (degrees * (num_subjects - 1))))


def _noncentrality(statistic: float, degrees: int, probability: float) -> float:
    """Noncentrality of the χ² distribution that has the statistic as this quantile; 0 if there is none."""
    if chi2.cdf(statistic, degrees) < probability:
        return 0.0
    return brentq(lambda x: ncx2.cdf(statistic, degrees, x) - probability, 1e-9, 4 * statistic + 10)


def _of_standard_population(fit: Fit) -> ItemParameters:
    """The item parameters on the scale on which the population is standard normal."""
    mean, sd = (np.asarray(leaf) for leaf in fit.population)
    items = ItemParameters(*map(np.asarray, fit.parameters))
    return items._replace(slope=items.slope * sd, intercept=items.intercept + items.slope @ mean)


def of_free(index: np.ndarray) -> np.ndarray:
    """Derivatives of the item parameters (I K,) by the free ones: 1 where they are the same; items may share one."""
    chosen = np.flatnonzero(index.ravel() >= 0)
    design = np.zeros((index.size, int(index.max()) + 1))
    design[chosen, index.ravel()[chosen]] = 1
    return design


def _of_population(slope: np.ndarray, size: int) -> np.ndarray:
    """Derivatives of the item parameters (I K,) by the mean and standard deviation of the population, both (D,)."""
    num_items, dims = slope.shape
    design = np.zeros((num_items, size, 2 * dims))
    for k in range(dims):
        design[:, dims, k] = slope[:, k]
        design[:, k, dims + k] = slope[:, k]
    return design.reshape(num_items * size, 2 * dims)


def _independent(parts: Sequence[Form], of: Features) -> Curves:
    """The model of independent items: a single node of ability, with as many free parameters as an item has margins."""
    counts: np.ndarray = np.zeros(of.worth.shape)
    for form in parts:
        for category in range(counts.shape[1]):
            counts[form.items, category] += (form.values == category).sum(axis=0)
    p = counts / counts.sum(axis=1, keepdims=True)
    centred = of.of_category - np.einsum("ic,icm->im", p, of.of_category)[:, None, :]
    design = of_free(np.where(of.there, np.cumsum(of.there).reshape(of.there.shape) - 1, -1))
    return Curves(p[None], (p[:, :, None] * centred)[None], np.ones(1), design)


def _srmsr(parts: Sequence[Form], of: Features, moments: Sequence[Moments], sizes: np.ndarray) -> float:
    """Over the pairs of all forms, which count by their subjects; without items that all of a form answered alike."""
    squares = []
    for form, expected in zip(parts, moments, strict=True):
        first, second = np.triu_indices(form.items.size, 1)
        worth = of.worth[form.items[None, :], form.values]
        mean, variance = expected.spread
        with np.errstate(divide="ignore", invalid="ignore"):
            seen = np.corrcoef(worth, rowvar=False)
            should = (expected.expected.two - np.outer(mean, mean)) / np.sqrt(np.outer(variance, variance))
        squares.append(((seen - should) ** 2)[first, second])
    every = np.concatenate(squares)
    subjects = np.repeat(sizes, [square.size for square in squares])
    known = np.isfinite(every)
    return float(np.sqrt(np.average(every[known], weights=subjects[known])))
