"""The population that abilities come from."""

from typing import Any, NamedTuple


class Population(NamedTuple):
    """Normal distribution of ability, on the scale that is reported; of several dimensions independent ones.

    Attributes:
        mean: in logits, a number or (D,); 0 unless anchor items set the scale.
        sd: standard deviation, a number or (D,); 1 unless anchors or slopes of 1 set the unit.
    """

    mean: Any = 0.0
    sd: Any = 1.0


STANDARD = Population()
