"""Which parameters a fit estimated of each item by itself."""

from typing import NamedTuple

import numpy as np

from irtjax.types import Bool, Float


class OwnParameters(NamedTuple):
    """Of I items in one dimension, in the order slope, intercept, others.

    Attributes:
        free: (I, K) whether a parameter was estimated of the item alone: it is neither held nor one that items share.
        prior: (I, K) information of its prior at the estimate, 0 where it has none.
    """

    free: Bool[np.ndarray, "I K"]
    prior: Float[np.ndarray, "I K"]

    def of(self, items: np.ndarray) -> "OwnParameters":
        """Those of some of the items."""
        return OwnParameters(self.free[items], self.prior[items])
