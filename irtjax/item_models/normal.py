"""Any number, by a line in ability with normal errors: the linear factor model (Spearman 1904).

    y = Σ_d a_d θ_d + intercept + e,     e ~ N(0, s²)

So T = z and z², η = x / s² and -1 / (2 s²), A = x² / (2 s²) + log s + ½ log 2π. The one other is log s. Given normal
abilities the responses of a subject are jointly normal, so that the marginal likelihood is known: integration is held
to it. Stored responses are z + `ABOVE`, since negative ones are missing; z is the number in standard deviations of its
item, from the mean.
"""

import dataclasses
from typing import Any

import numpy as np

from irtjax.item_models.categories import Coordinates, restored_place
from irtjax.item_models.protocol import PredictorParameters
from irtjax.types import AnyArray, Float, Int, Shaped

ABOVE = 1000.0  # no z of fewer than a million responses is further below
HALF_LOG_2PI = 0.5 * np.log(2 * np.pi)


@dataclasses.dataclass(frozen=True)
class Normal:
    """The family."""

    name: str = "normal"

    def num_statistics(self, top: int) -> int:
        """Two."""
        return 2

    def num_others(self, top: int) -> int:
        """The logarithm of s."""
        return 1

    def statistics(self, values: AnyArray, num_statistics: int) -> Float[AnyArray, "J I 2"]:
        """Z and z²."""
        z = values - ABOVE
        return values.__array_namespace__().stack([z, z * z], axis=2)

    def log_base(
        self, values: Shaped[np.ndarray, "J I"], trials: Int[np.ndarray, "J I"] | None
    ) -> Float[np.ndarray, "J I"]:
        """0, of densities of z."""
        return np.zeros(values.shape)

    def natural(self, at: Coordinates, num_statistics: int) -> tuple[AnyArray, AnyArray]:
        """η and A."""
        xp, log_sd = at.x.__array_namespace__(), at.others[None, :, 0]
        precision = xp.broadcast_to(xp.exp(-2 * log_sd), at.x.shape)
        eta = xp.stack([at.x * precision, -precision / 2], axis=2)
        return eta, at.x**2 * precision / 2 + log_sd + HALF_LOG_2PI

    def mean(self, at: Coordinates, num_statistics: int) -> Float[AnyArray, "Q I 2"]:
        """X and x² + s²."""
        return at.x.__array_namespace__().stack([at.x, at.x**2 + _variance(at)], axis=2)

    def covariance(self, at: Coordinates, num_statistics: int) -> Float[AnyArray, "Q I 2 2"]:
        """S², 2 x s² and 2 s⁴ + 4 x² s²."""
        xp, variance = at.x.__array_namespace__(), _variance(at)
        both = 2 * at.x * variance
        rows = [xp.stack([variance, both], axis=2), xp.stack([both, 2 * variance**2 + 2 * at.x * both], axis=2)]
        return xp.stack(rows, axis=2)

    def worth(
        self, at: Coordinates, of_categories: Float[AnyArray, "I C"]
    ) -> tuple[Float[AnyArray, "Q I"], Float[AnyArray, "Q I"]]:
        """X and s²."""
        return at.x, _variance(at)

    def start(
        self, values: Shaped[np.ndarray, "J I"], trials: Any, top: Int[np.ndarray, " I"], num_others: int
    ) -> tuple[Float[np.ndarray, " I"], Float[np.ndarray, "I L"]]:
        """Means, and half of the variance for errors."""
        return np.zeros(len(top)), np.full((len(top), num_others), 0.5 * np.log(0.5))

    def reported(self, slope: AnyArray, intercept: AnyArray, others: AnyArray, top: int) -> dict[str, AnyArray]:
        """Loadings, mean and standard deviation of the errors, in units of z."""
        names = ["loading"] if slope.shape[0] == 1 else [f"loading_{k + 1}" for k in range(slope.shape[0])]
        found = {name: slope[k] for k, name in enumerate(names)}
        return found | {"mean": intercept, "error_sd": others.__array_namespace__().exp(others[0])}

    def restored(self, columns: dict[str, Float[np.ndarray, " I"]], top: Int[np.ndarray, " I"]) -> PredictorParameters:
        """Parameters from these (D = 1)."""
        places = {"discrimination": columns["loading"], "difficulty": -columns["mean"] / columns["loading"]}
        return restored_place(places, np.log(columns["error_sd"])[:, None], top)


def _variance(at: Coordinates) -> Float[AnyArray, "Q I"]:
    xp = at.x.__array_namespace__()
    return xp.broadcast_to(xp.exp(2 * at.others[None, :, 0]), at.x.shape)


NORMAL = Normal()
