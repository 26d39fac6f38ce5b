"""Items that are tried several times, k right of n, by the 2PL of each trial.

    P(k | θ) = C(n, k) P^k (1 - P)^(n - k),     P = σ(x),     x = a θ + intercept = a (θ - b)

So T = k, η = x, A = log(1 + exp x) for each trial, and log h = log C(n, k): trials of a cell are independent given the
ability. With n = 1 it is the 2PL.
"""

import dataclasses
from typing import Any

import numpy as np
from scipy.special import gammaln

from irtjax.item_models.categories import FLATTER, Coordinates, one_place, restored_place
from irtjax.item_models.protocol import PredictorParameters
from irtjax.kernels.models import log_sigmoids
from irtjax.types import AnyArray, Float, Int, Shaped


@dataclasses.dataclass(frozen=True)
class Binomial:
    """The family."""

    name: str = "binomial"

    def num_statistics(self, top: int) -> int:
        """One."""
        return 1

    def num_others(self, top: int) -> int:
        """None."""
        return 0

    def statistics(self, values: AnyArray, num_statistics: int) -> Float[AnyArray, "J I 1"]:
        """The number right, k."""
        return values[:, :, None].astype(float)

    def log_base(
        self, values: Shaped[np.ndarray, "J I"], trials: Int[np.ndarray, "J I"] | None
    ) -> Float[np.ndarray, "J I"]:
        """Log C(n, k)."""
        assert trials is not None
        k = np.maximum(values, 0)
        return gammaln(trials + 1) - gammaln(k + 1) - gammaln(np.maximum(trials - k, 0) + 1)

    def natural(self, at: Coordinates, num_statistics: int) -> tuple[AnyArray, AnyArray]:
        """η = x and A = -log(1 - P)."""
        return at.x[:, :, None], -log_sigmoids(at.x)[1]

    def mean(self, at: Coordinates, num_statistics: int) -> Float[AnyArray, "Q I 1"]:
        """P."""
        return at.x.__array_namespace__().exp(log_sigmoids(at.x)[0])[:, :, None]

    def covariance(self, at: Coordinates, num_statistics: int) -> Float[AnyArray, "Q I 1 1"]:
        """P (1 - P)."""
        return at.x.__array_namespace__().exp(sum(log_sigmoids(at.x)))[:, :, None, None]

    def worth(
        self, at: Coordinates, of_categories: Float[AnyArray, "I C"]
    ) -> tuple[Float[AnyArray, "Q I"], Float[AnyArray, "Q I"]]:
        """P and P (1 - P)."""
        return self.mean(at, 1)[:, :, 0], self.covariance(at, 1)[:, :, 0, 0]

    def start(
        self, values: Shaped[np.ndarray, "J I"], trials: Any, top: Int[np.ndarray, " I"], num_others: int
    ) -> tuple[Float[np.ndarray, " I"], Float[np.ndarray, "I L"]]:
        """Logits of the shares of successes."""
        observed = values >= 0
        right, total = (np.where(observed, count, 0).sum(axis=0) for count in (values, trials))
        return FLATTER * np.log((right + 0.5) / (total - right + 0.5)), np.zeros((len(top), num_others))

    def reported(self, slope: AnyArray, intercept: AnyArray, others: AnyArray, top: int) -> dict[str, AnyArray]:
        """Difficulty and discrimination."""
        return one_place(slope, intercept)

    def restored(self, columns: dict[str, Float[np.ndarray, " I"]], top: Int[np.ndarray, " I"]) -> PredictorParameters:
        """Parameters from these."""
        return restored_place(columns, np.zeros((len(top), 0)), top)


BINOMIAL = Binomial()
