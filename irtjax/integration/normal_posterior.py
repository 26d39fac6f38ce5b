"""Normal posteriors of ability."""

from typing import NamedTuple

import numpy as np

from irtjax.types import AnyArray, Float


class Posterior(NamedTuple):
    """Normal distributions of the abilities of J subjects.

    Attributes:
        mean: (J, D).
        covariance: (J, D, D).
    """

    mean: AnyArray
    covariance: AnyArray


def root(posterior: Posterior) -> Float[np.ndarray, "J D D"]:
    """Lower triangular L of each subject, with L L' its covariance, in float64."""
    covariance = np.asarray(posterior.covariance, float)
    return np.linalg.cholesky(covariance) if covariance.shape[1] > 1 else np.sqrt(covariance)
