"""Numbers that sum to zero, as one free number fewer."""

import numpy as np

from irtjax.types import Float


def helmert(number: int) -> Float[np.ndarray, "N N-1"]:
    """Orthonormal contrasts (N, N - 1), H with H'H = I and 1'H = 0: normal u make H u exchangeable.

    Of n < N numbers the first n - 1 columns are those of n: the others are 0 in the first n rows' place.
    """
    columns = np.zeros((number, number - 1))
    for k in range(1, number):
        columns[:k, k - 1], columns[k, k - 1] = -1.0, k
        columns[:, k - 1] /= np.sqrt(k * (k + 1))
    return columns
