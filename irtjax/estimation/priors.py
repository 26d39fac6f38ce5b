"""Priors of item parameters."""

from typing import NamedTuple


class NormalPrior(NamedTuple):
    """Normal prior on a parameter: mean and standard deviation on the parameter's own scale (logit for c and d)."""

    mean: float
    sd: float


# Centred at c = 0.2 and d = 0.95. They hardly move an asymptote that the data determine, and keep one that the data say
# nothing about from running off to 0 or 1.
GUESSING_PRIOR = NormalPrior(-1.4, 1.0)
UPPER_PRIOR = NormalPrior(3.0, 1.0)
