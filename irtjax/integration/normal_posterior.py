"""Normal posteriors of ability."""

from typing import NamedTuple

from irtjax.types import AnyArray


class Posterior(NamedTuple):
    """Normal distributions of the abilities of J subjects.

    Attributes:
        mean: (J, D).
        covariance: (J, D, D).
    """

    mean: AnyArray
    covariance: AnyArray
