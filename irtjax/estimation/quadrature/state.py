"""Where a fit on nodes is."""

from typing import NamedTuple

from irtjax.estimation.problem import Specification
from irtjax.estimation.quadrature.climb import Point
from irtjax.estimation.quadrature.quasi_newton import Memory
from irtjax.integration.nodes import Answers
from irtjax.integration.rules import NodeRule
from irtjax.integration.sparse_grid import SparseGrid
from irtjax.kernels.models import ItemParameters


class State(NamedTuple):
    """Where the climb is.

    Attributes:
        point: the present one.
        memory: of the last steps.
        specification: what is free in this phase; priors.
        rule: which nodes.
        answers: of all subjects.
        grid: where they may be.
        waiting: starting values and specification with asymptotes, in the phase that is without; else None.
        tolerance: of this phase.
        prior_rounds: times that priors have been estimated anew since the nodes or a mode changed; -1 when settled.
        searches: for better modes so far; -1 when over.
        steps: since nodes were laid.
        relaid: times that nodes of each subject's own have been laid anew at the end.
    """

    point: Point
    memory: Memory
    specification: Specification
    rule: NodeRule
    answers: Answers
    grid: SparseGrid
    waiting: tuple[ItemParameters, Specification] | None
    tolerance: float
    prior_rounds: int
    searches: int
    steps: int = 0
    relaid: int = 0
