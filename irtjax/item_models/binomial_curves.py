"""Items that are tried several times, k right of n, by the 3PL or 4PL of each trial.

    P(k | θ) = C(n, k) P^k (1 - P)^(n - k),     P = c + (d - c) σ(a (θ - b))

The others of an item are logit c and logit d. With n = 1 it is the 3PL or 4PL of right/wrong items, and the fit is by
the same engine: counts are right answers to so many questions (`TRIALS`), whose curves have the phases and the search
for modes that asymptotes need. Once fitted they are a family beside others (`BINOMIAL_CURVE`).
"""

import dataclasses

import numpy as np
from scipy.special import logit

from irtjax.item_models.binary import Binary
from irtjax.item_models.binomial import BINOMIAL, Binomial
from irtjax.item_models.categories import Coordinates, one_place, restored_place
from irtjax.item_models.protocol import PredictorParameters
from irtjax.kernels.models import ItemParameters, log_answers, sigmoids
from irtjax.types import AnyArray, Float, Int, Shaped

ENDLESS = 700.0  # logits of an asymptote of 0 or 1, whose exponential is still a number


@dataclasses.dataclass(frozen=True)
class BinomialCurve(Binomial):
    """The family."""

    name: str = "binomial_4pl"

    def num_others(self, top: int) -> int:
        """Both asymptotes."""
        return 2

    def natural(self, at: Coordinates, num_statistics: int) -> tuple[AnyArray, AnyArray]:
        """η = log P - log(1 - P) and A = -log(1 - P)."""
        log_p, log_q = _log_answers(at)
        return (log_p - log_q)[:, :, None], -log_q

    def mean(self, at: Coordinates, num_statistics: int) -> Float[AnyArray, "Q I 1"]:
        """P."""
        return at.x.__array_namespace__().exp(_log_answers(at)[0])[:, :, None]

    def covariance(self, at: Coordinates, num_statistics: int) -> Float[AnyArray, "Q I 1 1"]:
        """P (1 - P)."""
        return at.x.__array_namespace__().exp(sum(_log_answers(at)))[:, :, None, None]

    def reported(self, slope: AnyArray, intercept: AnyArray, others: AnyArray, top: int) -> dict[str, AnyArray]:
        """Difficulty, discrimination and both asymptotes."""
        ends = sigmoids(others)[0]
        return one_place(slope, intercept) | {"guessing": ends[0], "upper": ends[1]}

    def restored(self, columns: dict[str, Float[np.ndarray, " I"]], top: Int[np.ndarray, " I"]) -> PredictorParameters:
        """Parameters from these; an asymptote that is not given has no effect."""
        with np.errstate(divide="ignore"):
            ends = [logit(np.nan_to_num(columns[name], nan=none)) for name, none in (("guessing", 0.0), ("upper", 1.0))]
        return restored_place(columns, np.clip(np.stack(ends, axis=1), -ENDLESS, ENDLESS), top)


def _log_answers(at: Coordinates) -> tuple[Float[AnyArray, "Q I"], Float[AnyArray, "Q I"]]:
    """Log P and log(1 - P)."""
    lower, upper = at.others[:, 0], at.others[:, 1]
    return log_answers(ItemParameters(lower[:, None], lower, lower, upper), at.x)


@dataclasses.dataclass(frozen=True)
class Trials(Binary):
    """Counts of right answers as the engine of right/wrong items takes them."""

    name: str = "trials"

    def statistics(self, values: Shaped[AnyArray, "J I"]) -> Float[AnyArray, "J I"]:
        """The number right, 0 where it is missing."""
        return values.__array_namespace__().maximum(values, 0).astype(float)

    def log_base(
        self, values: Shaped[np.ndarray, "J I"], trials: Int[np.ndarray, "J I"] | None
    ) -> Float[np.ndarray, " J"]:
        """Σ log C(n, k)."""
        return np.where(values >= 0, BINOMIAL.log_base(values, trials), 0.0).sum(axis=1)


def as_predictors(items: ItemParameters) -> PredictorParameters:
    """The same items as the family has them."""
    ends = np.stack([np.asarray(items.lower, float), np.asarray(items.upper, float)], axis=1)
    slope, intercept = (np.asarray(leaf, float) for leaf in (items.slope, items.intercept))
    return PredictorParameters(slope, intercept, np.clip(ends, -ENDLESS, ENDLESS), np.ones(len(intercept), int))


BINOMIAL_CURVE, TRIALS = BinomialCurve(), Trials()
