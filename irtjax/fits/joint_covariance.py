"""The covariance of the estimates of all items together, which links and tests between items ask for."""

from typing import NamedTuple

import numpy as np

from irtjax.types import AnyArray, Float, Int

MOST_KEPT = 1000  # parameters of a fit that keeps it: 8 MB


class JointCovariance(NamedTuple):
    """Covariances of the free parameters of all items, in slope-intercept form, by the observed information.

    Attributes:
        matrix: (P, P); the population's parameters are among them where they are free.
        places: (I, K) of each item's slopes, intercept and others, -1 where a parameter is held. Items that have one in
            common share its place.
    """

    matrix: Float[np.ndarray, "P P"]
    places: Int[np.ndarray, "I K"]

    def of(self, items: AnyArray) -> Float[np.ndarray, "n n"]:
        """(N K, N K) of all parameters of N items, one item after the other; 0 of what is held."""
        at = self.places[items].ravel()
        return np.where((at[:, None] >= 0) & (at >= 0), self.matrix[np.ix_(at, at)], 0.0)

    def turned(self, sign: Float[np.ndarray, " K"]) -> "JointCovariance":
        """With some of the parameters of all items times -1."""
        of_place = np.ones(len(self.matrix))
        for column, one in enumerate(sign):
            of_place[self.places[self.places[:, column] >= 0, column]] = one
        return self._replace(matrix=self.matrix * of_place[:, None] * of_place)

    def without(self, column: int) -> "JointCovariance":
        """With one parameter of all items held."""
        places = self.places.copy()
        places[:, column] = -1
        return self._replace(places=places)
