"""What items are at nodes, as an E-step needs it."""

from typing import NamedTuple

import jax

from irtjax.integration.nodes import Answers
from irtjax.types import AnyArray, Int


class Curves(NamedTuple):
    """The items at the nodes of T tiles of S places.

    Attributes:
        eta: (T, S, M).
        log_normalizer: (T, S, I).
        log_weights: (T, S) of the nodes, (T, S, G) for each group, or (T, S, 1 + C) by predictors.
        powers: (T, S, 2 D) nodes and their squares.
    """

    eta: AnyArray
    log_normalizer: AnyArray
    log_weights: AnyArray
    powers: AnyArray

    def tile(self, at: Int[AnyArray, ""] | int) -> "Curves":
        """Those of one tile, without its axis."""
        return jax.tree.map(lambda leaf: leaf[at], self)

    def joint(self, answers: Answers) -> AnyArray:
        """Logarithm (J, S) of the likelihood times the weight of each node, in a tile."""
        return answers.log_likelihoods(self.eta, self.log_normalizer) + answers.weighed(self.log_weights)
