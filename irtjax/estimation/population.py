"""The population that abilities come from."""

from typing import NamedTuple

import numpy as np

from irtjax.types import Float


class Population(NamedTuple):
    """Independent normal distributions of D abilities, on the scale that is reported.

    Attributes:
        mean: (D,), 0 unless anchor items set the scale.
        sd: (D,) standard deviations, 1 unless anchors or slopes of 1 set the unit.
    """

    mean: Float[np.ndarray, " D"]
    sd: Float[np.ndarray, " D"]
