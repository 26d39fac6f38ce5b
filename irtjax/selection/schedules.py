"""Fixed schedules: the share of the training data in each epoch, whatever the network has learned."""

import numpy as np

from irtjax.types import Float


def full_share(num_epochs: int) -> Float[np.ndarray, " E"]:
    """The schedule of the baseline: all data in every epoch."""
    return np.ones(num_epochs)


def linear_share(num_epochs: int, length: int, c0: float) -> Float[np.ndarray, " E"]:
    """CB-linear, share of the data at epoch t = 0, 1, …: min(1, t (1 - c0)/T + c0) (Platanios et al. 2019, eq. 6).

    Args:
        num_epochs: entries of the schedule.
        length: T, the epoch at which all data are reached.
        c0: share at epoch 0, 0 to 1.
    """
    t = np.arange(num_epochs)
    return np.minimum(1, t * (1 - c0) / length + c0)


def root_share(num_epochs: int, length: int, c0: float) -> Float[np.ndarray, " E"]:
    """CB-root: min(1, sqrt(t (1 - c0²)/T + c0²)) (Platanios et al. 2019, eq. 7); arguments as in `linear_share`."""
    t = np.arange(num_epochs)
    return np.minimum(1, np.sqrt(t * (1 - c0**2) / length + c0**2))
