"""What an engine asks of a rule for nodes: where they are, and whether they are fine enough."""

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from irtjax.integration.encode import AnyAnswers
from irtjax.integration.sparse_grid import SparseGrid
from irtjax.item_models.protocol import Items
from irtjax.populations.kinds import Populations
from irtjax.types import Float


class Tolerance(NamedTuple):
    """By how much finer nodes may change log-likelihoods, in nats.

    Attributes:
        mean: that of all subjects, for each of them.
        of_each: that of one subject, on average: errors of opposite sign are there to be exploited.
    """

    mean: float
    of_each: float


class Refinement(NamedTuple):
    """What finer nodes would change.

    Attributes:
        change: (J,) of the log-likelihood of each subject, in nats.
        affordable: whether a fit can be made on them.
        log_likelihoods: (J,) by them.
    """

    change: Float[np.ndarray, " J"]
    affordable: bool
    log_likelihoods: Float[np.ndarray, " J"]


@runtime_checkable
class NodeRule(Protocol):
    """So many nodes; one that says how many is a frozen dataclass.

    Attributes:
        way: how abilities are integrated out, as the argument of MML has it.
        tolerance: by how much finer nodes may change log-likelihoods.
        moves_with_posterior: whether each subject has nodes of its own, where its posterior was when they were laid.
        steepest: the slope that they can tell from a step.
        narrowest: the standard deviation of a group, in units of the scale, that they tell from none.
        weights_of_finer: nodes of the next rule for each of these.
    """

    @property
    def way(self) -> str: ...  # noqa: D102

    @property
    def tolerance(self) -> Tolerance: ...  # noqa: D102

    @property
    def moves_with_posterior(self) -> bool: ...  # noqa: D102

    @property
    def steepest(self) -> float: ...  # noqa: D102

    @property
    def narrowest(self) -> float: ...  # noqa: D102

    @property
    def weights_of_finer(self) -> int: ...  # noqa: D102

    def finer(self) -> "NodeRule":
        """The next rule."""

    def wider(
        self, nodes: Float[np.ndarray, "Q D"], weights: Float[np.ndarray, "Q I"], slack: float
    ) -> "NodeRule | None":
        """The rule that reaches further, where posteriors come to the ends of the nodes; else None.

        Args:
            nodes: of this rule.
            weights: of the posteriors there: answers to each item that they expect.
            slack: times as much may be there as is allowed at last.
        """

    def lay_out(self, items: Items, population: Populations, answers: AnyAnswers) -> SparseGrid:
        """The nodes, and where the subjects may be."""

    def refined(self, items: Items, population: Populations, answers: AnyAnswers, num_subjects: int) -> Refinement:
        """What the next rule would change for some of `num_subjects` subjects."""

    def summary(self, population: Populations) -> dict[str, object]:
        """Entries of `fit.json`."""
