"""Overall fit of a model by its one- and two-way margins: M2, RMSEA, TLI, CFI, SRMSR."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq
from scipy.sparse.linalg import LinearOperator, cg
from scipy.stats import chi2, ncx2

from irtjax.errors import InputError
from irtjax.estimation.problem import layout
from irtjax.estimation.result import Fit
from irtjax.estimation.specify import item_types, specify
from irtjax.kernels.models import ItemParameters, derivatives, probabilities
from irtjax.kernels.quadrature import Quadrature, of_moments
from irtjax.scale.forms import FEWEST, Form, forms

CONVERGED = 1e-9  # relative residual of conjugate gradients


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


class _Margins(NamedTuple):
    """A number for each item (I,) and for each pair of items (I, I), symmetric with a diagonal of zeros."""

    one: np.ndarray
    two: np.ndarray

    def flat(self) -> np.ndarray:
        """The numbers of all items, then of all pairs: (I (I + 1) / 2,)."""
        first, second = np.triu_indices(self.one.size, 1)
        return np.concatenate([self.one, self.two[first, second]])


def _unflat(flat: np.ndarray, num_items: int) -> _Margins:
    """The inverse of `_Margins.flat`."""
    two = np.zeros((num_items, num_items))
    two[np.triu_indices(num_items, 1)] = flat[num_items:]
    return _Margins(flat[:num_items], two + two.T)


def overall_fit(fit: Fit, model: str | Sequence[str] | None = None, held: bool = False) -> OverallFit:
    """M2 of a fit (Maydeu-Olivares and Joe 2005, 2006) and the indices derived from it.

        M2 = J (p - π)' [Ξ⁻¹ - Ξ⁻¹ Δ (Δ' Ξ⁻¹ Δ)⁻¹ Δ' Ξ⁻¹] (p - π)

    p are the observed shares of right answers to items and pairs of items, π the expected ones, Ξ / J is the covariance
    of p, and Δ the Jacobian of π. The bracket is the inverse of Ξ within the space orthogonal to Δ, so that M2 is the
    largest value of J (2 x'(p - π) - x'Ξx) over x with Δ'x = 0. Conjugate gradients find it, with products by Ξ and Δ
    summed over nodes of ability (`_Moments`). Ξ is never formed: for 300 items it has 45,150² numbers.

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
    values = fit.responses.read().values
    parts = forms(values)
    if not parts:
        raise InputError(f"M2 needs {FEWEST} subjects who answered the same items: leave out subjects or items")
    num_items = values.shape[1]
    items, dims = _of_standard_population(fit), fit.parameters.slope.shape[1]
    if held:
        design = _of_population(np.asarray(fit.parameters.slope))
    else:
        types = ["1pl" if kind == "rasch" else kind for kind in item_types(model or fit.model, num_items)]
        design = _of_items(layout(specify(types, dims=dims)).items)
    observed = [_observed(form.values) for form in parts]
    sizes = np.array([len(form.values) for form in parts])
    margins = sum(form.items.size * (form.items.size + 1) // 2 for form in parts)
    degrees, degrees_0 = margins - design.shape[1], margins - num_items
    if degrees <= 0:
        raise InputError(f"M2 of {num_items} items has no degrees of freedom")
    quadrature, rows = of_moments(dims), design.reshape(num_items, -1, design.shape[1])
    moments = [
        _Moments(items.take(form.items), quadrature, rows[form.items].reshape(-1, design.shape[1])) for form in parts
    ]
    statistic = _statistic(moments, observed, sizes)
    statistic_0 = _statistic(_independent(parts, num_items), observed, sizes)
    num_subjects, scale = int(sizes.sum()), np.sqrt(len(parts))
    return OverallFit(
        m2=statistic,
        degrees_of_freedom=degrees,
        p_value=float(chi2.sf(statistic, degrees)),
        rmsea=scale * _rmsea(statistic - degrees, degrees, num_subjects),
        rmsea_low=scale * _rmsea(_noncentrality(statistic, degrees, 0.95), degrees, num_subjects),
        rmsea_high=scale * _rmsea(_noncentrality(statistic, degrees, 0.05), degrees, num_subjects),
        srmsr=_srmsr(observed, [of_form.expected for of_form in moments], sizes),
        tli=(statistic_0 / degrees_0 - statistic / degrees) / (statistic_0 / degrees_0 - 1),
        cfi=1 - max(statistic - degrees, 0.0) / max(statistic_0 - degrees_0, statistic - degrees, 1e-300),
    )


def _observed(values: np.ndarray) -> _Margins:
    """Shares of right answers, of complete responses."""
    right = values.astype(float)
    pairs = right.T @ right / len(right)
    return _Margins(np.diag(pairs).copy(), pairs - np.diag(np.diag(pairs)))


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


def _of_items(index: np.ndarray) -> np.ndarray:
    """Derivatives of the item parameters (I K,) by the free ones: 1 where they are the same; items may share one."""
    chosen = np.flatnonzero(index.ravel() >= 0)
    design = np.zeros((index.size, int(index.max()) + 1))
    design[chosen, index.ravel()[chosen]] = 1
    return design


def _of_population(slope: np.ndarray) -> np.ndarray:
    """Derivatives of the item parameters (I K,) by the mean and standard deviation of the population, both (D,)."""
    num_items, dims = slope.shape
    design = np.zeros((num_items, dims + 3, 2 * dims))
    for k in range(dims):
        design[:, dims, k] = slope[:, k]
        design[:, k, dims + k] = slope[:, k]
    return design.reshape(num_items * (dims + 3), 2 * dims)


class _Moments:
    """Expected margins, their covariance Ξ and their Jacobian Δ, as sums over nodes of ability.

    Answers are independent given the ability. With y = P + u, a sum x'm over margins m is
    const + (x₁ + S P)'u + u'Su/2, where S is the symmetric matrix of the weights of pairs. Its covariance with m at a
    node, and that of the means over nodes, are products of matrices of I × Q and I × I numbers.
    """

    def __init__(self, items: ItemParameters, quadrature: Quadrature, design: np.ndarray) -> None:
        self.p, q = map(np.asarray, probabilities(items, quadrature.nodes))
        self.weights = np.exp(quadrature.log_weights)
        self.variance = self.p * q
        self.num_items = self.p.shape[1]
        weighted = self.weights[:, None] * self.p
        off = 1 - np.eye(self.num_items)
        self.expected = _Margins(weighted.sum(0), (weighted.T @ self.p) * off)
        self.both = (self.weights[:, None] * self.variance).T @ self.variance * off
        self.design = design
        slopes = self.weights[:, None, None] * np.asarray(derivatives(items, quadrature.nodes))
        self.by_one = slopes.sum(0)  # (I, K)
        self.by_two = np.einsum("qik,qj->ikj", slopes, self.p, optimize=True) * off[:, None, :]
        flat = self.expected.flat()
        self.sd = np.sqrt(flat * (1 - flat))  # margins are shares of right answers

    def covariance(self, x: np.ndarray) -> np.ndarray:
        """Ξ x."""
        one, two = _unflat(x, self.num_items)
        towards = self.p @ two
        means = self.p @ one + 0.5 * (towards * self.p).sum(1)
        between = self.weights * (means - self.weights @ means)
        within = self.weights[:, None] * self.variance * (one + towards)
        cross = self.p.T @ (within + 0.5 * between[:, None] * self.p)
        return _Margins(within.sum(0) + between @ self.p, cross + cross.T + self.both * two).flat()

    def by_parameters(self, x: np.ndarray) -> np.ndarray:
        """Δ' x, one number per free parameter."""
        one, two = _unflat(x, self.num_items)
        each = self.by_one * one[:, None] + np.einsum("ikj,ij->ik", self.by_two, two)
        return each.ravel() @ self.design

    def by_margins(self, parameters: np.ndarray) -> np.ndarray:
        """Δ y, with y one number per free parameter."""
        each = (self.design @ parameters).reshape(self.by_one.shape)
        half = np.einsum("ikj,ik->ij", self.by_two, each)
        return _Margins((self.by_one * each).sum(1), half + half.T).flat()

    def gram(self) -> np.ndarray:
        """Δ' diag(sd)⁻² Δ; parameters of different items meet in a single margin, that of the pair of these items."""
        number = self.num_items
        variance = _unflat(self.sd**2, number)
        scaled = self.by_two / (variance.two + np.eye(number))[:, None, :]
        whole = np.einsum("ikj,jli->ikjl", scaled, self.by_two)
        own = np.einsum("ikj,ilj->ikl", scaled, self.by_two)
        own += self.by_one[:, :, None] * self.by_one[:, None, :] / variance.one[:, None, None]
        whole[np.arange(number), :, np.arange(number)] = own
        return self.design.T @ whole.reshape(self.by_one.size, -1) @ self.design


def _statistic(moments: Sequence[_Moments], observed: Sequence[_Margins], sizes: np.ndarray) -> float:
    """J (p - π)' [...] (p - π) over all forms, with margins in units of their standard deviations."""
    root = np.sqrt(sizes / sizes.sum())
    factor = cho_factor(sum(weight**2 * part.gram() for weight, part in zip(root, moments, strict=True)))
    cuts = np.cumsum([part.sd.size for part in moments])[:-1]

    def in_each(apply: Callable[[float, _Moments, np.ndarray], np.ndarray], x: np.ndarray) -> list[np.ndarray]:
        return [apply(*each) for each in zip(root, moments, np.split(x, cuts), strict=True)]

    def orthogonal(x: np.ndarray) -> np.ndarray:
        along = cho_solve(factor, sum(in_each(lambda weight, part, y: weight * part.by_parameters(y / part.sd), x)))
        return x - np.concatenate(in_each(lambda weight, part, _: weight * part.by_margins(along) / part.sd, x))

    def product(x: np.ndarray) -> np.ndarray:
        return orthogonal(np.concatenate(in_each(lambda _, part, y: part.covariance(y / part.sd) / part.sd, x)))

    residual = [
        weight * (seen.flat() - part.expected.flat()) / part.sd
        for weight, part, seen in zip(root, moments, observed, strict=True)
    ]
    target = orthogonal(np.concatenate(residual))
    operator = LinearOperator((target.size, target.size), matvec=product, dtype=float)
    solution, failed = cg(operator, target, rtol=CONVERGED, maxiter=5000)
    if failed:
        raise InputError("M2 has not converged: are there items with extreme slopes?")
    return float(sizes.sum() * (target @ orthogonal(solution)))


def _independent(parts: Sequence[Form], num_items: int) -> list[_Moments]:
    """The model of independent items: a single node of ability, with the intercepts free."""
    right, seen = np.zeros(num_items), np.zeros(num_items)
    for form in parts:
        right[form.items] += form.values.sum(0)
        seen[form.items] += len(form.values)
    none = np.full(num_items, np.inf)
    items = ItemParameters(np.zeros((num_items, 1)), np.log(right) - np.log(seen - right), -none, none)
    index = np.full((num_items, 4), -1)
    index[:, 1] = np.arange(num_items)
    node, design = Quadrature(np.zeros((1, 1)), np.zeros(1)), _of_items(index).reshape(num_items, 4, num_items)
    return [_Moments(items.take(form.items), node, design[form.items].reshape(-1, num_items)) for form in parts]


def _srmsr(observed: Sequence[_Margins], expected: Sequence[_Margins], sizes: np.ndarray) -> float:
    """Over the pairs of all forms, which count by their subjects; without items that all of a form answered alike."""

    def correlations(margins: _Margins) -> np.ndarray:
        first, second = np.triu_indices(margins.one.size, 1)
        sd = np.sqrt(margins.one * (1 - margins.one))
        with np.errstate(divide="ignore", invalid="ignore"):
            return ((margins.two - np.outer(margins.one, margins.one)) / np.outer(sd, sd))[first, second]

    squares = [(correlations(one) - correlations(other)) ** 2 for one, other in zip(observed, expected, strict=True)]
    every = np.concatenate(squares)
    subjects = np.repeat(sizes, [square.size for square in squares])
    known = np.isfinite(every)
    return float(np.sqrt(np.average(every[known], weights=subjects[known])))
