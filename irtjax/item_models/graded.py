"""Grades 0 … K in order, by the graded response model (Samejima 1969, logistic).

    P(y ≥ k) = σ(a θ + d_k) = σ(a (θ - b_k)),     d_1 > d_2 > … > d_K,     k = 1 … K

The intercept is the mean of the d_k, and the others are the logarithms of their gaps, log(d_k - d_{k+1}): thresholds
stay in order by construction. With K = 1 it is the 2PL.
"""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from irtjax.item_models.categories import (
    FLATTER,
    Coordinates,
    Indicators,
    frequencies,
    places_of,
    slopes_and_places,
    there,
)
from irtjax.item_models.protocol import PredictorParameters
from irtjax.kernels.models import log_sigmoids, sigmoids
from irtjax.types import AnyArray, Float, Int, Shaped

LEAST_GAP = 1e-6  # of thresholds
SMALL = 1e-20  # gap that is its own 1 - exp(-gap)
LOG_SMALL = np.log(SMALL)
LARGE = 700.0  # the same is 1


@dataclasses.dataclass(frozen=True)
class Graded(Indicators):
    """The family."""

    name: str = "graded"

    def num_others(self, top: int) -> int:
        """Gaps between K thresholds."""
        return top - 1

    def natural(self, at: Coordinates, num_statistics: int) -> tuple[AnyArray, AnyArray]:
        """η_k = log P_k - log P_0 and A = -log P_0.

        Between d_k and d_{k+1}, P_k = σ(u) - σ(v) = σ(u) σ(-v) (1 - exp(v - u)): a product, however far in the tails.
        """
        xp = at.x.__array_namespace__()
        d = at.x[:, :, None] + offsets(at.others, at.top, num_statistics)[None]
        above, below = log_sigmoids(d)
        inner = below[:, :, 1:] + log_between(at.others[:, : num_statistics - 1])[None]
        has_next = there(at.top, num_statistics)[None, :, 1:]
        log_p = above + xp.concatenate([xp.where(has_next, inner, 0.0), xp.zeros_like(below[:, :, :1])], axis=2)
        return log_p - below[:, :, :1], -below[:, :, 0]

    def derivatives(
        self, at: Coordinates, num_statistics: int
    ) -> tuple[Float[AnyArray, "Q I S"], Float[AnyArray, "Q I S L"]]:
        """By x: σ(-d_k) - σ(d_{k+1}) + σ(d_1); by others the same of each d times its derivative, and of the gap."""
        xp, of_d = at.x.__array_namespace__(), _offset_derivatives(at, num_statistics)[None]
        above, below = _sides(at, num_statistics)
        following, first = _next(xp.where(there(at.top, num_statistics)[None], above, 0.0)), above[:, :, :1]
        by_others = below[..., None] * of_d - following[..., None] * _next(of_d) + first[..., None] * of_d[:, :, :1]
        of_gap = xp.eye(num_statistics, of_d.shape[3])[None] * _between_derivatives(at)[0][:, None]
        return below - following + first, by_others + of_gap[None]

    def curvature(self, at: Coordinates, residual: Float[AnyArray, "Q I S"]) -> Float[AnyArray, "Q I K K"]:
        """By the chain rule: each d is in log σ(d) and log σ(-d) alone, and each gap in its logarithm."""
        xp, num_statistics, size = at.x.__array_namespace__(), residual.shape[2], at.others.shape[1]
        above, below = _sides(at, num_statistics)
        # how often log σ(-d_k) is in what is summed
        before = xp.concatenate([-residual.sum(axis=2)[:, :, None], residual[:, :, :-1]], axis=2)
        before = xp.where(there(at.top, num_statistics)[None], before, 0.0)
        of_d = _offset_derivatives(at, num_statistics)
        by = xp.concatenate([xp.ones((*of_d.shape[:2], 1)), of_d], axis=2)
        twice = xp.einsum("qis,isk,isl->qikl", -(residual + before) * above * below, by, by, optimize=True)
        own = xp.einsum("qis,isl->qil", residual * below - before * above, of_d)
        width = min(size, num_statistics)
        of_gap = residual[:, :, :width] * _between_derivatives(at)[1][None, :, :width]
        diagonal = xp.pad(own + xp.pad(of_gap, ((0, 0), (0, 0), (0, size - width))), ((0, 0), (0, 0), (1, 0)))
        return twice + diagonal[..., None] * xp.eye(size + 1)[None, None]

    def others_of_steeper(
        self, others: Float[np.ndarray, "I L"], share: Float[np.ndarray, " I"]
    ) -> Float[np.ndarray, "I L"]:
        """Gaps grow with the slope; those of flat curves, which have no thresholds, stay."""
        return others + np.log(np.where(share > 0, share, 1.0))[:, None]

    def start(
        self, values: Shaped[np.ndarray, "J I"], trials: Any, top: Int[np.ndarray, " I"], num_others: int
    ) -> tuple[Float[np.ndarray, " I"], Float[np.ndarray, "I L"]]:
        """Logits of the shares of responses at a category or above."""
        del trials
        most = int(top.max())
        counts = frequencies(values, most)
        above = counts[:, ::-1].cumsum(axis=1)[:, ::-1]
        share = above[:, 1:] / above[:, :1]
        d = FLATTER * np.log(share / (1 - share))
        return parameters_of(np.where(there(top, most), d, 0.0), top, num_others)

    def reported(self, slope: AnyArray, intercept: AnyArray, others: AnyArray, top: int) -> dict[str, AnyArray]:
        """Difficulty, which is the mean of the thresholds, discrimination, and thresholds b_k = -d_k / a."""
        d = intercept + offsets(others[None], jnp.array([top]), top)[0]
        return slopes_and_places(slope, d)

    def restored(self, columns: dict[str, Float[np.ndarray, " I"]], top: Int[np.ndarray, " I"]) -> PredictorParameters:
        """Parameters from discriminations and thresholds."""
        intercept, others = parameters_of(places_of(columns, top), top, int(top.max()) - 1)
        return PredictorParameters(columns["discrimination"][:, None], intercept, others, top)


def parameters_of(
    d: Float[np.ndarray, "I K"], top: Int[np.ndarray, " I"], num_others: int
) -> tuple[Float[np.ndarray, " I"], Float[np.ndarray, "I L"]]:
    """Mean and log gaps of d_1 > … > d_K, of which an item has the first `top`."""
    own = there(top, d.shape[1])
    others = np.zeros((len(d), num_others))
    gaps = np.where(own[:, 1:], np.maximum(d[:, :-1] - d[:, 1:], LEAST_GAP), 1.0)
    others[:, : d.shape[1] - 1] = np.log(gaps)
    return np.where(own, d, 0.0).sum(axis=1) / top, others


def offsets(others: Float[AnyArray, "I L"], top: AnyArray, num_thresholds: int) -> Float[AnyArray, "I K"]:
    """d_k less their mean, of the thresholds that an item has."""
    xp = others.__array_namespace__()
    own = there(top, num_thresholds)
    gaps = xp.where(own[:, 1:], xp.exp(others[:, : num_thresholds - 1]), 0.0)
    fall = xp.concatenate([xp.zeros_like(others[:, :0].sum(axis=1))[:, None], xp.cumulative_sum(gaps, axis=1)], axis=1)
    return xp.where(own, fall, 0.0).sum(axis=1)[:, None] / top[:, None] - fall


def log_between(log_gap: Float[AnyArray, "I L"]) -> Float[AnyArray, "I L"]:
    """Log(1 - exp(-gap)), which is the logarithm of the gap where that is small."""
    xp = log_gap.__array_namespace__()
    gap = xp.exp(log_gap)
    return xp.where(log_gap < LOG_SMALL, log_gap, xp.log(-xp.expm1(-xp.maximum(gap, SMALL))))


def _between_derivatives(at: Coordinates) -> tuple[Float[AnyArray, "I L"], Float[AnyArray, "I L"]]:
    """First and second derivative of log(1 - exp(-gap)) by the logarithm of the gap; 0 where there is none."""
    xp = at.x.__array_namespace__()
    gap = xp.maximum(xp.exp(at.others), SMALL)
    first = xp.where(_gaps_there(at), gap / xp.expm1(xp.minimum(gap, LARGE)), 0.0)
    return first, first * (1 + gap / xp.expm1(-gap))


def _gaps_there(at: Coordinates) -> AnyArray:
    """(I, L) whether an item has such a gap."""
    return at.top[:, None] >= at.x.__array_namespace__().arange(2, at.others.shape[1] + 2)[None, :]


def _offset_derivatives(at: Coordinates, num_thresholds: int) -> Float[AnyArray, "I K L"]:
    """Derivatives of the offsets by the logarithms of the gaps; the second ones are the same, and 0 of two gaps."""
    xp = at.x.__array_namespace__()
    gaps = xp.where(_gaps_there(at), xp.exp(at.others), 0.0)
    places = xp.arange(at.others.shape[1])
    below = xp.arange(num_thresholds)[:, None] > places[None, :]
    share = (at.top[:, None] - 1 - places[None, :]) / at.top[:, None]
    return gaps[:, None] * (share[:, None] - below[None])


def _sides(at: Coordinates, num_thresholds: int) -> tuple[Float[AnyArray, "Q I K"], Float[AnyArray, "Q I K"]]:
    """σ(d_k) and σ(-d_k)."""
    return sigmoids(at.x[:, :, None] + offsets(at.others, at.top, num_thresholds)[None])


def _next(array: Float[AnyArray, "Q I K ..."]) -> Float[AnyArray, "Q I K ..."]:
    """What the next threshold has; 0 for the last."""
    xp = array.__array_namespace__()
    return xp.concatenate([array[:, :, 1:], xp.zeros_like(array[:, :, :1])], axis=2)


GRADED = Graded()
