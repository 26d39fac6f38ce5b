"""Categories 0 … K without order in several dimensions: a slope of each category in each of them (Bock 1972).

    P(y = k) ∝ exp(Σ_d s_dk θ_d + c_k),      Σ_k s_dk = Σ_k c_k = 0

Abilities enter by themselves, and the item's predictor is 0. The others are K orthonormal contrasts of the s of each
dimension in turn, then K of the c (`contrasts`). The last contrast, of the highest category with the others, of the
first D - 1 items fixes the rotation: that of item i is 0 in dimensions beyond i.
"""

import dataclasses
from typing import Any

import numpy as np

from irtjax.item_models.categories import Coordinates, Indicators, log_normalizer_of
from irtjax.item_models.contrasts import helmert
from irtjax.item_models.principal_axes import principal_means
from irtjax.item_models.protocol import PredictorParameters
from irtjax.types import AnyArray, Bool, Float, Int


@dataclasses.dataclass(frozen=True)
class NominalInDimensions(Indicators):
    """The family.

    Attributes:
        dims: D.
    """

    dims: int
    name: str = "nominal"

    def num_others(self, top: int) -> int:
        """Slopes in each dimension and intercepts."""
        return (self.dims + 1) * top

    def natural(self, at: Coordinates, num_statistics: int) -> tuple[AnyArray, AnyArray]:
        """η_k = Σ_d (s_dk - s_d0) θ_d + c_k - c_0."""
        assert at.theta is not None
        slopes, intercepts = of_categories(at.others, num_statistics, self.dims)
        eta = sum(
            at.theta[:, d, None, None] * (slopes[None, :, d, 1:] - slopes[None, :, d, :1]) for d in range(self.dims)
        )
        eta = eta + (intercepts[:, 1:] - intercepts[:, :1])[None]
        return eta, log_normalizer_of(eta, at.top)

    def derivatives(
        self, at: Coordinates, num_statistics: int
    ) -> tuple[Float[AnyArray, "Q I S"], Float[AnyArray, "Q I S L"]]:
        """By x: 0; by others their contrasts, and of slopes θ times these."""
        assert at.theta is not None
        xp, (num_nodes, num_items) = at.x.__array_namespace__(), at.x.shape
        width, own = at.others.shape[1] // (self.dims + 1), helmert(num_statistics + 1)
        contrasts = np.zeros((num_statistics, width))
        contrasts[:, :num_statistics] = own[1:] - own[:1]
        ones = xp.concatenate([at.theta, xp.ones_like(at.theta[:, :1])], axis=1)
        by = ones[:, None, :, None] * xp.asarray(contrasts)[None, :, None, :]
        by = by.reshape(num_nodes, 1, num_statistics, (self.dims + 1) * width)
        by = xp.pad(by, ((0, 0), (0, 0), (0, 0), (0, at.others.shape[1] - by.shape[3])))
        by_x = xp.zeros((num_nodes, num_items, num_statistics))
        return by_x, xp.broadcast_to(by, (num_nodes, num_items, num_statistics, at.others.shape[1]))

    def curvature(self, at: Coordinates, residual: Float[AnyArray, "Q I S"]) -> Float[AnyArray, "Q I K K"]:
        """0: η is linear."""
        size = 1 + at.others.shape[1]
        return at.x.__array_namespace__().zeros((*residual.shape[:2], size, size))

    def start(
        self, values: Any, trials: Any, top: Int[np.ndarray, " I"], num_others: int
    ) -> tuple[Float[np.ndarray, " I"], Float[np.ndarray, "I L"]]:
        """As of one dimension, by the first D principal axes, rotated to where the last contrasts are to be 0."""
        del trials
        most, width = int(top.max()), num_others // (self.dims + 1)
        mean, counts = principal_means(values, most, self.dims)
        parts = np.concatenate([mean, np.log(counts + 0.5)[:, None]], axis=1)
        own = (np.arange(most + 1) <= top[:, None])[:, None]
        middle = np.where(own, parts, 0.0).sum(axis=2, keepdims=True) / (top + 1)[:, None, None]
        others = np.zeros((len(top), self.dims + 1, width))
        others[:, :, :most] = np.where(own, parts - middle, 0.0) @ helmert(most + 1)
        last = np.stack([others[i, : self.dims, top[i] - 1] for i in range(self.dims - 1)])
        rotation = np.linalg.qr(last.T, mode="complete")[0]
        others[:, : self.dims] = np.einsum("idk,de->iek", others[:, : self.dims], rotation)
        others = np.where(self.fixes_rotation(top, width), 0.0, others.reshape(len(top), -1))
        return np.zeros(len(top)), others

    def fixes_rotation(self, top: Int[np.ndarray, " I"], width: int) -> Bool[np.ndarray, "I L"]:
        """Which slopes are held at 0, of the first items of a test; `width` contrasts of each dimension."""
        held = np.zeros((len(top), self.dims + 1, width), bool)
        for item in range(self.dims - 1):
            held[item, item + 1 : self.dims, top[item] - 1] = True
        return held.reshape(len(top), -1)

    def reported(self, slope: AnyArray, intercept: AnyArray, others: AnyArray, top: int) -> dict[str, AnyArray]:
        """Slopes of all categories in all dimensions, and intercepts."""
        slopes, intercepts = of_categories(others[None], top, self.dims)
        found = {f"slope_{k}_{d + 1}": slopes[0, d, k] for k in range(top + 1) for d in range(self.dims)}
        return found | {f"intercept_{k}": intercepts[0, k] for k in range(top + 1)}

    def restored(self, columns: dict[str, Float[np.ndarray, " I"]], top: Int[np.ndarray, " I"]) -> PredictorParameters:
        """Parameters from these."""
        most = int(top.max())
        names = [f"slope_{{}}_{d + 1}" for d in range(self.dims)] + ["intercept_{}"]
        parts = [np.stack([columns[name.format(k)] for k in range(most + 1)], axis=1) for name in names]
        none = np.zeros(len(top))
        others = np.concatenate([np.nan_to_num(part) @ helmert(most + 1) for part in parts], axis=1)
        return PredictorParameters(np.zeros((len(top), self.dims)), none, others, top)


def of_categories(
    others: Float[AnyArray, "I L"], top: int, dims: int
) -> tuple[Float[AnyArray, "I D C"], Float[AnyArray, "I C"]]:
    """Slopes in each dimension and intercepts of the categories, which sum to zero over those that an item has."""
    width = others.shape[1] // (dims + 1)
    parts = others[:, : (dims + 1) * width].reshape(others.shape[0], dims + 1, width)[:, :, :top] @ helmert(top + 1).T
    return parts[:, :dims], parts[:, dims]
