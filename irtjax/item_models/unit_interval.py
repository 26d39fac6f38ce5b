"""Shares y in [0, 1]: the Beta model, and the ordered Beta model for shares of which some are exactly 0 or 1.

    y ~ Beta(μ φ, (1 - μ) φ),     μ = σ(x),     x = a θ + intercept = a (θ - b)

The ordered Beta model (Kubinec 2023) has two cuts c_0 < c_1 on the scale of x besides:

    P(y = 0) = 1 - σ(x - c_0),     P(y = 1) = σ(x - c_1),     P(0 < y < 1) = σ(x - c_0) - σ(x - c_1)

and between 0 and 1 it is Beta.

The others of an item are log φ, c_0 and log(c_1 - c_0). T = [y = 0], [y = 1], and log y and log(1 - y) where 0 < y < 1,
0 at the ends.
"""

import dataclasses
from types import ModuleType
from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy.special
from jax.scipy import special as jax_special

from irtjax.item_models.categories import FLATTER, Coordinates, one_place, restored_place
from irtjax.item_models.protocol import PredictorParameters
from irtjax.kernels.models import log_sigmoids
from irtjax.types import AnyArray, Bool, Float, Int, Shaped

NEVER = 30.0  # logits beyond which a cut is reported as infinite: the chance of exactly 0, or 1, is some 1e-13
FAR = 40.0  # where a cut is held that no share asks for
STEEPEST = 300.0  # |x| beyond which μ or 1 - μ is as good as 0
LEAST_GAP = 0.1  # of cuts where a fit starts
PRECISION, CUT, LOG_GAP = 0, 1, 2  # columns of the others


@dataclasses.dataclass(frozen=True)
class Beta:
    """The family of shares that are never 0 or 1."""

    name: str = "beta"

    def num_statistics(self, top: int) -> int:
        """Two logarithms."""
        return 2

    def num_others(self, top: int) -> int:
        """The logarithm of φ."""
        return 1

    def statistics(self, values: AnyArray, num_statistics: int) -> Float[AnyArray, "J I 2"]:
        """Logarithms of y and 1 - y."""
        return _logarithms(values)

    def log_base(self, values: Shaped[np.ndarray, "J I"], trials: Any) -> Float[np.ndarray, "J I"]:
        """-log y - log(1 - y)."""
        del trials
        return -np.asarray(_logarithms(values)).sum(axis=2)

    def natural(self, at: Coordinates, num_statistics: int) -> tuple[AnyArray, AnyArray]:
        """η = μ φ, (1 - μ) φ and A = log B(μ φ, (1 - μ) φ)."""
        return _shapes(at)[0], _log_beta(at)

    def mean(self, at: Coordinates, num_statistics: int) -> Float[AnyArray, "Q I 2"]:
        """ψ(μ φ) - ψ(φ), ψ((1 - μ) φ) - ψ(φ)."""
        return _mean_logarithms(at)

    def covariance(self, at: Coordinates, num_statistics: int) -> Float[AnyArray, "Q I 2 2"]:
        """ψ'(μ φ) and ψ'((1 - μ) φ) on the diagonal, less ψ'(φ)."""
        return _covariance_of_logarithms(at)

    def worth(
        self, at: Coordinates, of_categories: Float[AnyArray, "I C"]
    ) -> tuple[Float[AnyArray, "Q I"], Float[AnyArray, "Q I"]]:
        """μ and μ (1 - μ) / (1 + φ)."""
        return _share(at)

    def start(
        self, values: Shaped[np.ndarray, "J I"], trials: Any, top: Int[np.ndarray, " I"], num_others: int
    ) -> tuple[Float[np.ndarray, " I"], Float[np.ndarray, "I L"]]:
        """The logit of the mean, and φ by the variance."""
        del trials
        others = np.zeros((len(top), num_others))
        intercept, others[:, PRECISION] = _start_between(values)
        return intercept, others

    def reported(self, slope: AnyArray, intercept: AnyArray, others: AnyArray, top: int) -> dict[str, AnyArray]:
        """Difficulty, discrimination and precision φ."""
        return one_place(slope, intercept) | {"precision": jnp.exp(others[PRECISION])}

    def restored(self, columns: dict[str, Float[np.ndarray, " I"]], top: Int[np.ndarray, " I"]) -> PredictorParameters:
        """Parameters from these."""
        return restored_place(columns, np.log(columns["precision"])[:, None], top)


@dataclasses.dataclass(frozen=True)
class OrderedBeta:
    """The family of shares that may be 0 and 1."""

    name: str = "ordered_beta"

    def num_statistics(self, top: int) -> int:
        """Two indicators, two logarithms."""
        return 4

    def num_others(self, top: int) -> int:
        """Logarithm of φ, the lower cut, logarithm of the gap."""
        return 3

    def statistics(self, values: AnyArray, num_statistics: int) -> Float[AnyArray, "J I 4"]:
        """[y = 0], [y = 1], and the logarithms of y and 1 - y where it is between."""
        xp = values.__array_namespace__()
        ends = xp.stack([values == 0, values == 1], axis=2).astype(float)
        return xp.concatenate([ends, _logarithms(values)], axis=2)

    def log_base(self, values: Shaped[np.ndarray, "J I"], trials: Any) -> Float[np.ndarray, "J I"]:
        """-log y - log(1 - y) between the ends, and 0 there."""
        return BETA.log_base(values, trials)

    def natural(self, at: Coordinates, num_statistics: int) -> tuple[AnyArray, AnyArray]:
        """η = log P_0 + A, log P_1 + A, μ φ, (1 - μ) φ and A = log B - log P(0 < y < 1)."""
        xp, log_p = at.x.__array_namespace__(), _log_chances(at)
        log_normalizer = _log_beta(at) - log_p[1]
        ends = xp.stack([log_p[0] + log_normalizer, log_p[2] + log_normalizer], axis=2)
        return xp.concatenate([ends, _shapes(at)[0]], axis=2), log_normalizer

    def mean(self, at: Coordinates, num_statistics: int) -> Float[AnyArray, "Q I 4"]:
        """P_0, P_1, and the means of the logarithms times P(0 < y < 1)."""
        xp = at.x.__array_namespace__()
        none, between, whole = (xp.exp(one)[:, :, None] for one in _log_chances(at))
        return xp.concatenate([none, whole, between * _mean_logarithms(at)], axis=2)

    def covariance(self, at: Coordinates, num_statistics: int) -> Float[AnyArray, "Q I 4 4"]:
        """E T T' - E T E T'."""
        xp, logs = at.x.__array_namespace__(), _mean_logarithms(at)
        none, between, whole = (xp.exp(one)[:, :, None, None] for one in _log_chances(at))
        inner = between * (_covariance_of_logarithms(at) + logs[..., :, None] * logs[..., None, :])
        ends = none * xp.diag(xp.array([1.0, 0.0]))[None, None] + whole * xp.diag(xp.array([0.0, 1.0]))[None, None]
        nothing = xp.zeros_like(inner)
        square = xp.concatenate(
            [xp.concatenate([ends, nothing], axis=3), xp.concatenate([nothing, inner], axis=3)], axis=2
        )
        mean = self.mean(at, num_statistics)
        return square - mean[..., :, None] * mean[..., None, :]

    def worth(
        self, at: Coordinates, of_categories: Float[AnyArray, "I C"]
    ) -> tuple[Float[AnyArray, "Q I"], Float[AnyArray, "Q I"]]:
        """M = P(0 < y < 1) μ + P_1, and P_0 m² + P_1 (1 - m)² + P(0 < y < 1) ((μ - m)² + μ (1 - μ) / (1 + φ))."""
        none, between, whole = map(at.x.__array_namespace__().exp, _log_chances(at))
        inner, variance = _share(at)
        mean = between * inner + whole
        return mean, none * mean**2 + whole * (1 - mean) ** 2 + between * ((inner - mean) ** 2 + variance)

    def start(
        self, values: Shaped[np.ndarray, "J I"], trials: Any, top: Int[np.ndarray, " I"], num_others: int
    ) -> tuple[Float[np.ndarray, " I"], Float[np.ndarray, "I L"]]:
        """As without ends, of the shares between, and cuts by how many are 0 and 1."""
        del trials
        others = np.zeros((len(top), num_others))
        intercept, others[:, PRECISION] = _start_between(values)
        observed = (values >= 0).sum(axis=0)
        none, whole = ((values == end).sum(axis=0) for end in (0, 1))
        low, high = (
            intercept - FLATTER * np.log((number + 0.5) / (observed - number + 0.5))
            for number in (observed - none, whole)
        )
        others[:, CUT], others[:, LOG_GAP] = low, np.log(np.maximum(high - low, LEAST_GAP))
        return intercept, others

    def reported(self, slope: AnyArray, intercept: AnyArray, others: AnyArray, top: int) -> dict[str, AnyArray]:
        """Difficulty, discrimination, precision φ, and cuts; an infinite one where no share is exactly 0, or 1."""
        low, high = others[CUT], others[CUT] + jnp.exp(others[LOG_GAP])
        cuts = {
            "cut_0": jnp.where(low <= -NEVER, -jnp.inf, low),
            "cut_1": jnp.where(high >= NEVER, jnp.inf, high),
        }
        return BETA.reported(slope, intercept, others, top) | cuts

    def restored(self, columns: dict[str, Float[np.ndarray, " I"]], top: Int[np.ndarray, " I"]) -> PredictorParameters:
        """Parameters from these."""
        low, high = np.maximum(columns["cut_0"], -FAR), columns["cut_1"]
        gap = np.where(high < np.inf, high - low, 2 * FAR)
        others = np.stack([np.log(columns["precision"]), low, np.log(gap)], axis=1)
        return restored_place(columns, others, top)


def without_ends(others: Float[np.ndarray, "I L"], ends: Bool[np.ndarray, "I 2"]) -> Float[np.ndarray, "I L"]:
    """Others with the cuts of shares of exactly 0, and 1, out of the way of items that do not have such `ends`."""
    low, gap = others[:, CUT], np.exp(others[:, LOG_GAP])
    moved = others.copy()
    moved[:, CUT] = np.where(ends[:, 0], low, -FAR)
    moved[:, LOG_GAP] = np.log(np.where(ends[:, 1], low + gap - moved[:, CUT], 2 * FAR))
    return moved


def _special(xp: ModuleType) -> Any:
    return scipy.special if xp is np else jax_special


def _logarithms(values: AnyArray) -> Float[AnyArray, "J I 2"]:
    """Of y and 1 - y where it is between 0 and 1, and 0 elsewhere."""
    xp = values.__array_namespace__()
    between = (values > 0) & (values < 1)
    y = xp.where(between, values, 0.5)
    return xp.where(between[:, :, None], xp.stack([xp.log(y), xp.log1p(-y)], axis=2), 0.0)


def _shapes(at: Coordinates) -> tuple[Float[AnyArray, "Q I 2"], Float[AnyArray, "Q I 2"], Float[AnyArray, " I"]]:
    """μ φ and (1 - μ) φ, their logarithms, and φ."""
    xp = at.x.__array_namespace__()
    log_phi = at.others[:, PRECISION]
    log_shapes = xp.stack(log_sigmoids(xp.clip(at.x, -STEEPEST, STEEPEST)), axis=2) + log_phi[None, :, None]
    return xp.exp(log_shapes), log_shapes, xp.exp(log_phi)


def _log_beta(at: Coordinates) -> Float[AnyArray, "Q I"]:
    """Log B(μ φ, (1 - μ) φ), by log Γ(s) = log Γ(1 + s) - log s: s may be very small."""
    shapes, log_shapes, phi = _shapes(at)
    log_gamma = _special(at.x.__array_namespace__()).gammaln
    return (log_gamma(1 + shapes) - log_shapes).sum(axis=2) - log_gamma(phi)[None]


def _share(at: Coordinates) -> tuple[Float[AnyArray, "Q I"], Float[AnyArray, "Q I"]]:
    """Mean and variance of y where it is between 0 and 1."""
    xp = at.x.__array_namespace__()
    mean, rest = (xp.exp(one) for one in log_sigmoids(at.x))
    return mean, mean * rest / (1 + xp.exp(at.others[:, PRECISION]))[None]


def _mean_logarithms(at: Coordinates) -> Float[AnyArray, "Q I 2"]:
    shapes, _, phi = _shapes(at)
    digamma = _special(at.x.__array_namespace__()).digamma
    return digamma(1 + shapes) - 1 / shapes - digamma(phi)[None, :, None]


def _covariance_of_logarithms(at: Coordinates) -> Float[AnyArray, "Q I 2 2"]:
    xp, (shapes, _, phi) = at.x.__array_namespace__(), _shapes(at)
    polygamma = _special(xp).polygamma
    own = polygamma(1, 1 + shapes) + 1 / shapes**2
    return own[..., None] * xp.eye(2)[None, None] - polygamma(1, phi)[None, :, None, None]


def _log_chances(at: Coordinates) -> tuple[Float[AnyArray, "Q I"], Float[AnyArray, "Q I"], Float[AnyArray, "Q I"]]:
    """Log P(y = 0), log P(0 < y < 1), log P(y = 1); the middle one is a product, however far in the tails."""
    xp = at.x.__array_namespace__()
    low, gap = at.others[:, CUT], xp.exp(at.others[:, LOG_GAP])
    above, below = log_sigmoids(at.x - low[None])
    above_high, below_high = log_sigmoids(at.x - (low + gap)[None])
    return below, above + below_high + xp.log(-xp.expm1(-gap))[None], above_high


def _start_between(values: Shaped[np.ndarray, "J I"]) -> tuple[Float[np.ndarray, " I"], Float[np.ndarray, " I"]]:
    """Logit of the mean, and log φ by the variance, of the shares between; a share of 1/2 more, and one as usual."""
    between = (values > 0) & (values < 1)
    number = between.sum(axis=0)
    y = np.where(between, values, 0.0)
    mean = (y.sum(axis=0) + 0.5) / (number + 1)
    squares = np.where(between, (values - mean) ** 2, 0.0).sum(axis=0)
    variance = (squares + mean * (1 - mean) / 4) / (number + 1)
    phi = mean * (1 - mean) / variance - 1
    return FLATTER * np.log(mean / (1 - mean)), np.log(np.clip(phi, 0.5, 100.0))


BETA, ORDERED_BETA = Beta(), OrderedBeta()
