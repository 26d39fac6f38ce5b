"""Categories 0 … K without order, by the nominal model (Bock 1972).

    P(y = k) ∝ exp(s_k θ + c_k),      Σ_k s_k = Σ_k c_k = 0

The predictor of an item is θ itself (slope 1, intercept 0). The others are K orthonormal contrasts of the s, then K of
the c (`contrasts`): no category is the baseline.
"""

import dataclasses
from typing import Any

import numpy as np

from irtjax.item_models.categories import Coordinates, Indicators, log_normalizer_of
from irtjax.item_models.contrasts import helmert
from irtjax.item_models.principal_axes import principal_means
from irtjax.item_models.protocol import PredictorParameters
from irtjax.types import AnyArray, Float, Int


@dataclasses.dataclass(frozen=True)
class Nominal(Indicators):
    """The family."""

    name: str = "nominal"

    def num_others(self, top: int) -> int:
        """Slopes and intercepts of K + 1 categories."""
        return 2 * top

    def natural(self, at: Coordinates, num_statistics: int) -> tuple[AnyArray, AnyArray]:
        """η_k = (s_k - s_0) θ + c_k - c_0."""
        slopes, intercepts = (part[:, 1:] - part[:, :1] for part in of_categories(at.others, num_statistics))
        eta = at.x[:, :, None] * slopes[None] + intercepts[None]
        return eta, log_normalizer_of(eta, at.top)

    def derivatives(
        self, at: Coordinates, num_statistics: int
    ) -> tuple[Float[AnyArray, "Q I S"], Float[AnyArray, "Q I S L"]]:
        """By x: s_k - s_0; by others their contrasts, and of the slopes x times these."""
        xp = at.x.__array_namespace__()
        slopes, _ = of_categories(at.others, num_statistics)
        by_slopes, by_intercepts = map(xp.asarray, _contrasts(num_statistics, at.others.shape[1]))
        by_x = xp.broadcast_to((slopes[:, 1:] - slopes[:, :1])[None], (*at.x.shape, num_statistics))
        return by_x, at.x[:, :, None, None] * by_slopes[None, None] + by_intercepts[None, None]

    def curvature(self, at: Coordinates, residual: Float[AnyArray, "Q I S"]) -> Float[AnyArray, "Q I K K"]:
        """η is linear but for x times slopes."""
        xp = at.x.__array_namespace__()
        cross = residual @ xp.asarray(_contrasts(residual.shape[2], at.others.shape[1])[0])
        row = (
            xp.pad(cross, ((0, 0), (0, 0), (1, 0)))[:, :, None, :]
            * (xp.arange(cross.shape[2] + 1) == 0)[None, None, :, None]
        )
        return row + row.swapaxes(2, 3)

    def start(
        self, values: Any, trials: Any, top: Int[np.ndarray, " I"], num_others: int
    ) -> tuple[Float[np.ndarray, " I"], Float[np.ndarray, "I L"]]:
        """Logarithms of frequencies; slopes by where those who chose a category are on the first principal axis.

        Values are a SciPy array (J, I) of categories, each 1 more, 0 where missing.
        """
        del trials
        most = int(top.max())
        means, counts = principal_means(values, most, 1)
        own, mean = np.arange(most + 1) <= top[:, None], means[:, 0]
        others = np.zeros((len(top), num_others))
        width = num_others // 2
        for part, each in enumerate((mean, np.log(counts + 0.5))):
            middle = np.where(own, each, 0.0).sum(axis=1) / (top + 1)
            others[:, part * width : part * width + most] = np.where(own, each - middle[:, None], 0.0) @ helmert(
                most + 1
            )
        return np.zeros(len(top)), others

    def reported(self, slope: AnyArray, intercept: AnyArray, others: AnyArray, top: int) -> dict[str, AnyArray]:
        """Slopes and intercepts of all categories."""
        del slope, intercept
        slopes, intercepts = (part[0] for part in of_categories(others[None], top))
        return {f"slope_{k}": slopes[k] for k in range(top + 1)} | {
            f"intercept_{k}": intercepts[k] for k in range(top + 1)
        }

    def restored(self, columns: dict[str, Float[np.ndarray, " I"]], top: Int[np.ndarray, " I"]) -> PredictorParameters:
        """Parameters from slopes and intercepts of all categories."""
        most = int(top.max())
        parts = [
            np.nan_to_num(np.stack([columns[f"{name}_{k}"] for k in range(most + 1)], axis=1)) @ helmert(most + 1)
            for name in ("slope", "intercept")
        ]
        none = np.zeros(len(top))
        return PredictorParameters(np.ones((len(top), 1)), none, np.concatenate(parts, axis=1), top)


def of_categories(others: Float[AnyArray, "I L"], top: int) -> tuple[Float[AnyArray, "I C"], Float[AnyArray, "I C"]]:
    """Slopes and intercepts of the categories, each of which sums to zero over those that an item has."""
    contrasts, width = helmert(top + 1).T, others.shape[1] // 2
    return others[:, :top] @ contrasts, others[:, width : width + top] @ contrasts


def _contrasts(num_statistics: int, num_others: int) -> tuple[Float[np.ndarray, "S L"], Float[np.ndarray, "S L"]]:
    """Derivatives of s_k - s_0 and of c_k - c_0 by the others."""
    own, width = helmert(num_statistics + 1), num_others // 2
    by_slopes, by_intercepts = np.zeros((num_statistics, num_others)), np.zeros((num_statistics, num_others))
    by_slopes[:, :num_statistics] = by_intercepts[:, width : width + num_statistics] = own[1:] - own[:1]
    return by_slopes, by_intercepts


NOMINAL = Nominal()
