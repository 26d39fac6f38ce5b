"""What filtering and curricula can be asked for, by name; commands list it without loading JAX."""

import dataclasses

from irtjax.arguments import bounded, require_bounds

FILTERS = ("AVI", "AVO", "UB", "LB", "PCUB", "PCLB", "random")  # strategies of filtering
CENTRED = ("AVI", "AVO")  # those that depend on what is average
CENTRES = ("difficulty", "median", "ability", "midpoint")  # what is average

BASELINE = "baseline"  # what the others are compared with
NO_EFFECT = "no-effect"  # the same with other seeds: the null control

STRATEGIES = (  # of curricula
    BASELINE, NO_EFFECT, "CB-linear", "CB-root", "CB-linear-average", "CB-root-average", "CB-linear-length",
    "CB-root-length", "DDaCLAE", "DDaCLAE-hard", "window",
)  # fmt: skip
AVERAGE_FIRST = ("CB-linear-average", "CB-root-average")  # proposed by Lalor (2020), run by no study
USUAL = tuple(name for name in STRATEGIES if name not in AVERAGE_FIRST)
PROBE_ERROR = 0.005  # standard error that the selected share may have


@dataclasses.dataclass(frozen=True)
class CurriculumOptions:
    """What strategies leave open.

    Attributes:
        length: T of CB-linear and CB-root: epochs until they use all data.
        initial_share: c0 of CB-linear and CB-root: share of the data at epoch 0.
        half_width: of the window: largest distance of items from the ability, in logits.
        floor: by ability, where fewer examples than a minibatch are selected: whether `batch_size` about their middle
            are trained on, and twice as many at each further such epoch; otherwise what is selected, and with nothing
            selected the epoch is left out, as in the study.

    Raises:
        InputError: a field out of its bounds.
    """

    length: int = bounded(10, 1)
    initial_share: float = bounded(0.01, 0, 1)
    half_width: float = bounded(1.0, positive=True)
    floor: bool = bounded(True)

    def __post_init__(self) -> None:
        """Refuses what is out of bounds."""
        require_bounds(self)
