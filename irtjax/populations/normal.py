"""The population that abilities come from."""

from typing import Any, NamedTuple

import numpy as np

from irtjax.types import Float


class Population(NamedTuple):
    """Normal distribution of ability, on the scale that is reported; of several dimensions independent ones.

    Attributes:
        mean: in logits, a number or (D,); 0 unless anchor items set the scale.
        sd: standard deviation, a number or (D,); 1 unless anchors or slopes of 1 set the unit.
    """

    mean: Any = 0.0
    sd: Any = 1.0

    @property
    def unit(self) -> Any:
        """What nodes are laid out in: this population, which takes them along."""
        return self.sd

    def place(self, nodes: Float[np.ndarray, "Q D"]) -> Float[np.ndarray, "Q D"]:
        """Nodes of a standard normal distribution on the scale of ability; mean and sd have D entries."""
        return np.asarray(self.mean)[None, :] + np.asarray(self.sd)[None, :] * nodes

    def log_weights(
        self, nodes: Float[np.ndarray, "Q D"], log_weights: Float[np.ndarray, " Q"]
    ) -> Float[np.ndarray, " Q"]:
        """Of the nodes as they are placed, from those of a standard normal distribution: the same."""
        return log_weights

    def rescaled(self, origin: float, unit: float) -> "Population":
        """On a scale of ability whose origin and unit are these of the present one; its own stay, by convention."""
        return self

    def on(self, shift: float, unit: float) -> "Population":
        """Of abilities so many times as large, and then shifted."""
        return Population(unit * self.mean + shift, unit * self.sd)


STANDARD = Population()
