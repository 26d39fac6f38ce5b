"""Fixed schedules: the share of the training data in each epoch, whatever the network has learned."""

import numpy as np

from irtjax.errors import InputError
from irtjax.types import AnyArray, Float, Int, Shaped

ROUNDING = 4  # in units of the shares' last place, by which one may be off as schedules compute it


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


def examples_in_epochs(shares: Shaped[AnyArray, "..."], num_epochs: int, num_examples: int) -> Int[np.ndarray, " E"]:
    """How many examples a schedule selects at each epoch: ⌈share N⌉, at least 1.

    A share that is k/N but for rounding gives k: 0.07 of 100 examples are 7, though the product of these floating-point
    numbers is above 7.

    Args:
        shares: (E,) of the data, 0 to 1.
        num_epochs: E.
        num_examples: N.

    Raises:
        InputError: not one share from 0 to 1 for each epoch.
    """
    found = np.asarray(shares)
    if found.shape != (num_epochs,):
        raise InputError(
            f"`selection` has the shape {found.shape}, expected ({num_epochs},): one share of the data for each epoch"
        )
    outside = np.flatnonzero(~((found >= 0) & (found <= 1)))
    if outside.size:
        at = outside[0]
        raise InputError(f"`selection` has the share {found[at]} at epoch {at}, expected 0 to 1")
    dtype = np.result_type(found, np.float16)  # whole numbers are exact in any
    counts = np.ceil(found.astype(np.float64) * num_examples * (1 - ROUNDING * float(np.finfo(dtype).eps)))
    return np.clip(counts, 1, num_examples).astype(np.int32)
