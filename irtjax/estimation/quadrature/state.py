"""Where a fit on nodes is, and what is ahead of it."""

import enum
from typing import NamedTuple

from irtjax.estimation.problem import Specification
from irtjax.estimation.quadrature.climb import Memory
from irtjax.estimation.quadrature.point import Point
from irtjax.integration.encode import AnyAnswers
from irtjax.integration.node_rule import NodeRule
from irtjax.integration.sparse_grid import SparseGrid
from irtjax.kernels.models import ItemParameters


class Phase(enum.Enum):
    """What a fit does each time that the climb has come to rest, until that leaves nothing to do."""

    PRIORS = enum.auto()  # are estimated anew, until they settle
    ASYMPTOTES = enum.auto()  # are released; before, there were none
    MODES = enum.auto()  # other ones of items with asymptotes are tried
    LAST_STEPS = enum.auto()  # to the tolerance that was asked for


class State(NamedTuple):
    """Where the climb is.

    Attributes:
        point: the present one.
        memory: of the last steps.
        specification: what is free now; priors.
        rule: which nodes.
        answers: of all subjects.
        grid: where they may be.
        ahead: the phases to come; the first is the next.
        released: starting values and specification with asymptotes, where these are held at first; else None.
        tolerance: of the climb.
        dropped: the specification with the prior of slopes that was estimated and dropped; None where none was, or
            where it has been taken up again.
        rounds: of the next phase that are done.
        steps: since nodes were laid.
    """

    point: Point
    memory: Memory
    specification: Specification
    rule: NodeRule
    answers: AnyAnswers
    grid: SparseGrid
    ahead: tuple[Phase, ...]
    released: tuple[ItemParameters, Specification] | None
    tolerance: float
    dropped: Specification | None = None
    rounds: int = 0
    steps: int = 0
