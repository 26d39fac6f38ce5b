"""What crowds can be asked for: designs, and those that are usual; commands list it without loading JAX."""

import dataclasses

from irtjax.arguments import bounded, require_bounds

STOP_ON = ("validation", "train")  # the split that early stopping looks at
MOST_EXAMPLES = 10**9


@dataclasses.dataclass(frozen=True)
class CrowdDesign:
    """How members differ from a common recipe; the defaults are those of the task `digits`.

    Attributes:
        min_subset: smallest training subset; sizes are log-uniform between this and all training examples.
        max_corruption: largest share of corrupted labels; shares are uniform between 0 and this.
        min_width: widths are uniform between this and the recipe's; None for the recipe's width only.
        learning_rate_factor: learning rates are log-uniform between the recipe's / factor and the recipe's × factor.
        networks: names of architectures, ours and your own, as equally many members of each as possible; empty for
            the recipe's only.

    Raises:
        InputError: a field out of its bounds.
    """

    min_subset: int = bounded(16, 1, MOST_EXAMPLES)
    max_corruption: float = bounded(0.8, 0, 1)
    min_width: int | None = bounded(None, 1)
    learning_rate_factor: float = bounded(1.0, 1, 1000)
    networks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuses what is out of bounds."""
        require_bounds(self)


DESIGNS = {
    "digits": CrowdDesign(),
    "mnist": CrowdDesign(min_subset=50),
    "cifar10": CrowdDesign(min_subset=100),
    # more corruption than (C - 1) / C of the labels would teach members to be wrong
    "sst2": CrowdDesign(min_subset=50, max_corruption=0.5),
    "snli": CrowdDesign(min_subset=50, max_corruption=0.65),
}
