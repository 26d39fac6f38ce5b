"""What there is to report of each group of items."""

from typing import NamedTuple

import pandas as pd

from irtjax.scale.confirmation import Confirmation
from irtjax.scale.procedure import ScaleResult


class GroupFindings(NamedTuple):
    """What was found for a group of items.

    Attributes:
        name: of the group.
        result: of building its scale.
        confirmation: on fresh responses; None if there are none, or no scale.
        comparisons: of subjects, from `irtjax.scale.groups.compare_groups`; empty if there is no scale.
        levels: of subjects, from `irtjax.scale.groups.levels`; None if there is no scale, or nothing to compare.
    """

    name: str
    result: ScaleResult
    confirmation: Confirmation | None
    comparisons: dict[str, pd.DataFrame]
    levels: pd.DataFrame | None = None


class Wanted(NamedTuple):
    """What is to be told of precision.

    Attributes:
        size: items of a short form.
        ability_range: lowest and highest ability that it is chosen for.
        least: information that is enough.
    """

    size: int
    ability_range: tuple[float, float]
    least: float
