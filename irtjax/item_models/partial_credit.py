"""Grades 0 … K in order, each a step from the one before: generalised partial credit (Muraki 1992).

    P(y = k) ∝ exp(Σ_{v ≤ k} a (θ - b_v)) = exp(k (a θ + intercept) + Σ_{v ≤ k} τ_v),      Σ_v τ_v = 0

The τ are orthonormal contrasts of the K - 1 others (`contrasts`). With slopes of 1 it is the partial credit model
(Masters 1982), and with τ that all items share the rating scale model (Andrich 1978). With K = 1 it is the 2PL.
"""

import dataclasses
from typing import Any

import numpy as np

from irtjax.item_models.categories import (
    Coordinates,
    Indicators,
    frequencies,
    log_normalizer_of,
    places_of,
    slopes_and_places,
    there,
)
from irtjax.item_models.contrasts import helmert
from irtjax.item_models.protocol import PredictorParameters
from irtjax.types import AnyArray, Float, Int, Shaped


@dataclasses.dataclass(frozen=True)
class PartialCredit(Indicators):
    """The family."""

    name: str = "gpcm"

    def num_others(self, top: int) -> int:
        """Steps that sum to zero."""
        return top - 1

    def natural(self, at: Coordinates, num_statistics: int) -> tuple[AnyArray, AnyArray]:
        """η_k = k x + Σ_{v ≤ k} τ_v."""
        xp = at.x.__array_namespace__()
        steps = xp.cumulative_sum(tau(at.others, num_statistics), axis=1)
        eta = at.x[:, :, None] * xp.arange(1, num_statistics + 1)[None, None] + steps[None]
        return eta, log_normalizer_of(eta, at.top)

    def derivatives(
        self, at: Coordinates, num_statistics: int
    ) -> tuple[Float[AnyArray, "Q I S"], Float[AnyArray, "Q I S L"]]:
        """By x: k; by others the sums of their contrasts."""
        xp, (num_nodes, num_items) = at.x.__array_namespace__(), at.x.shape
        by_others = np.zeros((num_statistics, at.others.shape[1]))
        by_others[:, : num_statistics - 1] = np.cumsum(helmert(num_statistics), axis=0)
        shape = num_nodes, num_items, num_statistics
        by_x = xp.broadcast_to(xp.arange(1.0, num_statistics + 1)[None, None], shape)
        return by_x, xp.broadcast_to(xp.asarray(by_others)[None, None], (*shape, at.others.shape[1]))

    def curvature(self, at: Coordinates, residual: Float[AnyArray, "Q I S"]) -> Float[AnyArray, "Q I K K"]:
        """0: η is linear."""
        size = 1 + at.others.shape[1]
        return at.x.__array_namespace__().zeros((*residual.shape[:2], size, size))

    def others_of_steeper(
        self, others: Float[np.ndarray, "I L"], share: Float[np.ndarray, " I"]
    ) -> Float[np.ndarray, "I L"]:
        """Steps grow with the slope."""
        return others * share[:, None]

    def start(
        self, values: Shaped[np.ndarray, "J I"], trials: Any, top: Int[np.ndarray, " I"], num_others: int
    ) -> tuple[Float[np.ndarray, " I"], Float[np.ndarray, "I L"]]:
        """Logarithms of the ratios of a category to the one before."""
        del trials
        most = int(top.max())
        counts = frequencies(values, most)
        return parameters_of(np.where(there(top, most), np.log(counts[:, 1:] / counts[:, :-1]), 0.0), top, num_others)

    def reported(self, slope: AnyArray, intercept: AnyArray, others: AnyArray, top: int) -> dict[str, AnyArray]:
        """Difficulty, which is the mean of the step difficulties, discrimination, and steps b_v."""
        return slopes_and_places(slope, intercept + tau(others[None], top)[0])

    def restored(self, columns: dict[str, Float[np.ndarray, " I"]], top: Int[np.ndarray, " I"]) -> PredictorParameters:
        """Parameters from discriminations and step difficulties."""
        intercept, others = parameters_of(places_of(columns, top), top, int(top.max()) - 1)
        return PredictorParameters(columns["discrimination"][:, None], intercept, others, top)


def parameters_of(
    steps: Float[np.ndarray, "I K"], top: Int[np.ndarray, " I"], num_others: int
) -> tuple[Float[np.ndarray, " I"], Float[np.ndarray, "I L"]]:
    """Mean and contrasts of steps -a b_v, of which an item has the first `top`; 0 beyond."""
    intercept, others = steps.sum(axis=1) / top, np.zeros((len(steps), num_others))
    centred = np.where(there(top, steps.shape[1]), steps - intercept[:, None], 0.0)
    others[:, : steps.shape[1] - 1] = centred @ helmert(steps.shape[1])
    return intercept, others


def tau(others: Float[AnyArray, "I L"], num_steps: int) -> Float[AnyArray, "I K"]:
    """Steps of items, which sum to zero over those that an item has; the others beyond these are 0."""
    return others[:, : num_steps - 1] @ helmert(num_steps).T


PARTIAL_CREDIT = PartialCredit()
