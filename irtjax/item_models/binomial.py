"""Items that are tried several times: k right of n, by the curves of right/wrong items.

    log p(k | θ) = k η - n A + log C(n, k)

with η and A of one trial (`binary`). Trials of a cell are independent given the ability. With n = 1 it is that model.
"""

import dataclasses

import numpy as np
from scipy.special import gammaln

from irtjax.errors import InputError
from irtjax.item_models.binary import Binary
from irtjax.types import AnyArray, Float, Int


@dataclasses.dataclass(frozen=True)
class Binomial(Binary):
    """The 1PL to 4PL of each of n trials."""

    name: str = "binomial"

    def statistics(self, values: Int[AnyArray, "J I"]) -> Float[AnyArray, "J I"]:
        """k, and 0 where it is missing."""
        return values.__array_namespace__().maximum(values, 0).astype(float)

    def log_base(
        self, values: Int[np.ndarray, "J I"], trials: Int[np.ndarray, "J I"] | None
    ) -> Float[np.ndarray, " J"]:
        """Σ log C(n, k) over the observed responses of each subject.

        Raises:
            InputError: no trials, or more successes than trials.
        """
        if trials is None:
            raise InputError("the binomial model needs the number of trials of each response")
        if (values > trials).any():
            j, i = np.argwhere(values > trials)[0]
            raise InputError(f"{values[j, i]} successes of {trials[j, i]} trials, subject number {j + 1}, item {i + 1}")
        k = np.maximum(values, 0)
        combinations = gammaln(trials + 1) - gammaln(k + 1) - gammaln(trials - k + 1)
        return np.where(values >= 0, combinations, 0.0).sum(axis=1)


BINOMIAL = Binomial()
