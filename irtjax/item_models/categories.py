"""What families of items share: where they are at nodes, categories and their indicators, thresholds as columns."""

import abc
from typing import NamedTuple

import jax
import numpy as np

from irtjax.item_models.protocol import PredictorParameters
from irtjax.types import AnyArray, Float, Int, Shaped

FLATTER = np.sqrt(1 + 1 / 2.89)  # a normal population of variance 1 flattens logits by about as much


class Coordinates(NamedTuple):
    """Items at nodes, as families take them.

    Attributes:
        x: (Q, I) predictor.
        others: (I, L).
        top: (I,) highest category.
        theta: (Q, D) abilities, for families of several dimensions.
    """

    x: AnyArray
    others: AnyArray
    top: AnyArray
    theta: AnyArray | None = None


def frequencies(values: Shaped[np.ndarray, "J I"], top: int) -> Float[np.ndarray, "I C"]:
    """How often each category was given, and half a time more."""
    return np.stack([(values == k).sum(axis=0) + 0.5 for k in range(top + 1)], axis=1)


def slopes_and_places(slope: AnyArray, d: AnyArray) -> dict[str, AnyArray]:
    """Slopes, and intercepts d_1 … d_K on the scale of ability, b_k = -d_k / a; with D > 1 the d_k themselves."""
    if slope.shape[0] > 1:
        names = {f"discrimination_{k + 1}": slope[k] for k in range(slope.shape[0])}
        return names | {f"intercept_{k + 1}": d[k] for k in range(d.shape[0])}
    b = -d / slope[0]
    return {
        "difficulty": b.mean(),
        "discrimination": slope[0],
        **{f"threshold_{k + 1}": b[k] for k in range(b.shape[0])},
    }


def places_of(columns: dict[str, Float[np.ndarray, " I"]], top: Int[np.ndarray, " I"]) -> Float[np.ndarray, "I K"]:
    """d_1 … d_K out of slopes and thresholds; 0 beyond those that an item has."""
    most = int(top.max())
    b = np.stack([columns[f"threshold_{k}"] for k in range(1, most + 1)], axis=1)
    return np.where(there(top, most), -columns["discrimination"][:, None] * b, 0.0)


def one_place(slope: AnyArray, intercept: AnyArray) -> dict[str, AnyArray]:
    """Slope and difficulty, -intercept / a; with D > 1 slopes and intercept."""
    if slope.shape[0] > 1:
        return {f"discrimination_{k + 1}": slope[k] for k in range(slope.shape[0])} | {"intercept": intercept}
    return {"difficulty": -intercept / slope[0], "discrimination": slope[0]}


def restored_place(
    columns: dict[str, Float[np.ndarray, " I"]], others: Float[np.ndarray, "I L"], top: Int[np.ndarray, " I"]
) -> PredictorParameters:
    """The inverse of `one_place` (D = 1), with the others of the items."""
    slope = columns["discrimination"]
    return PredictorParameters(slope[:, None], -slope * columns["difficulty"], others, top)


def there(top: AnyArray, num_statistics: int) -> AnyArray:
    """(I, S) whether an item has category k, k from 1."""
    return top[:, None] >= top.__array_namespace__().arange(1, num_statistics + 1)[None, :]


def log_normalizer_of(eta: Float[AnyArray, "Q I S"], top: AnyArray) -> Float[AnyArray, "Q I"]:
    """A = log(1 + Σ_k exp η_k), of the categories that an item has."""
    xp = eta.__array_namespace__()
    own = xp.where(there(top, eta.shape[2])[None], eta, -xp.inf)
    largest = xp.maximum(_constant(own).max(axis=2), 0.0)
    return largest + xp.log(xp.exp(-largest) + xp.exp(own - largest[:, :, None]).sum(axis=2))


def _constant(x: AnyArray) -> AnyArray:
    """x, of which no derivative is taken.

    The derivative of a maximum is divided by the number of terms that are equal to it. Where the compiler computes
    these anew, in another rounding, there are none, and it is NaN.
    """
    return jax.lax.stop_gradient(x) if isinstance(x, jax.Array) else x


class Indicators(abc.ABC):
    """Statistics of categories: T_k = [y = k] for k from 1."""

    def num_statistics(self, top: int) -> int:
        """One for each category but the lowest."""
        return top

    def statistics(self, values: AnyArray, num_statistics: int) -> Float[AnyArray, "J I S"]:
        """[y = k]."""
        xp = values.__array_namespace__()
        return (values[:, :, None] == xp.arange(1, num_statistics + 1)[None, None]).astype(float)

    def log_base(
        self, values: Shaped[np.ndarray, "J I"], trials: Int[np.ndarray, "J I"] | None
    ) -> Float[np.ndarray, "J I"]:
        """0."""
        return np.zeros(values.shape)

    def present(self, top: AnyArray, num_statistics: int) -> AnyArray:
        """(I, S) weights of categories in what is expected: 1 where an item has one, else 0."""
        return there(top, num_statistics)

    @abc.abstractmethod
    def natural(self, at: Coordinates, num_statistics: int) -> tuple[AnyArray, AnyArray]:
        """η and A: a family's own."""

    def mean(self, at: Coordinates, num_statistics: int) -> Float[AnyArray, "Q I S"]:
        """P(y = k) = exp(η_k - A)."""
        eta, log_normalizer = self.natural(at, num_statistics)
        xp = eta.__array_namespace__()
        return xp.exp(eta - log_normalizer[:, :, None]) * self.present(at.top, num_statistics)[None]

    def covariance(self, at: Coordinates, num_statistics: int) -> Float[AnyArray, "Q I S S"]:
        """P_k [k = l] - P_k P_l."""
        p = self.mean(at, num_statistics)
        xp = p.__array_namespace__()
        return p[..., None] * xp.eye(num_statistics)[None, None] - p[..., :, None] * p[..., None, :]

    def worth(
        self, at: Coordinates, of_categories: Float[AnyArray, "I C"]
    ) -> tuple[Float[AnyArray, "Q I"], Float[AnyArray, "Q I"]]:
        """Σ_k w_k P_k, and Σ_k (w_k - mean)² P_k."""
        p = self.mean(at, of_categories.shape[1] - 1)
        xp = p.__array_namespace__()
        p = xp.concatenate([xp.maximum(1 - p.sum(axis=2, keepdims=True), 0.0), p], axis=2)
        mean = (p * of_categories[None]).sum(axis=2)
        return mean, (p * (of_categories[None] - mean[:, :, None]) ** 2).sum(axis=2)

    @abc.abstractmethod
    def derivatives(
        self, at: Coordinates, num_statistics: int
    ) -> tuple[Float[AnyArray, "Q I S"], Float[AnyArray, "Q I S L"]]:
        """∂η by predictor and by each of the others: a family's own."""

    def others_of_steeper(
        self, others: Float[np.ndarray, "I L"], share: Float[np.ndarray, " I"]
    ) -> Float[np.ndarray, "I L"]:
        """The others of items so many times as steep whose thresholds stay: the same, if they say nothing of these."""
        del share
        return others

    @abc.abstractmethod
    def curvature(self, at: Coordinates, residual: Float[AnyArray, "Q I S"]) -> Float[AnyArray, "Q I K K"]:
        """Σ_s residual_s ∂²η_s by predictor and others; residuals are 0 beyond an item's own statistics."""
