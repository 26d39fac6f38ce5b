"""Grades 0 … K in order, by the graded response model (Samejima 1969, logistic).

    P(y ≥ k) = σ(a θ + d_k) = σ(a (θ - b_k)),     d_1 > d_2 > … > d_K,     k = 1 … K

The intercept is the mean of the d_k, and the others are the logarithms of their gaps, log(d_k - d_{k+1}): thresholds
stay in order by construction. With K = 1 it is the 2PL.
"""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from irtjax.item_models.families import (
    FLATTER,
    Coordinates,
    Indicators,
    frequencies,
    places_of,
    slopes_and_places,
    there,
)
from irtjax.item_models.protocol import PredictorParameters
from irtjax.kernels.models import log_sigmoids
from irtjax.types import AnyArray, Float, Int, Shaped

LEAST_GAP = 1e-6  # of thresholds


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
        gap = xp.exp(at.others[:, : num_statistics - 1])
        inner = below[:, :, 1:] + xp.log(-xp.expm1(-gap))[None]
        last = at.top[None, :, None] <= xp.arange(1, num_statistics)[None, None]
        log_p = above + xp.concatenate([xp.where(last, 0.0, inner), xp.zeros_like(below[:, :, :1])], axis=2)
        return log_p - below[:, :, :1], -below[:, :, 0]

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


GRADED = Graded()
