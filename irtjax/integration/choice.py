"""Which way abilities are integrated out: on nodes that subjects share, around each posterior, or by normal ones."""

from typing import NamedTuple

import numpy as np

from irtjax.arguments import whole_number
from irtjax.errors import InputError
from irtjax.integration.rules import ImportanceNodes, NodeRule, SharedNodes, importance_nodes_to_start_with
from irtjax.kernels.quadrature import nodes_per_dimension, spacing
from irtjax.types import Int

WAYS = ("auto", "nodes", "around", "normal")
MOST_GIVEN = 10**6  # nodes in all dimensions, that a user may ask for
MOST_SHARED = 3  # dimensions in which subjects share nodes
NARROW = 0.1  # expected standard deviation of posteriors, in any dimension, below which they are normal enough


class Totals(NamedTuple):
    """What the choice goes by.

    Attributes:
        right: (I,) right answers to each item.
        observed: (I,) answers.
        num_subjects: J.
    """

    right: Int[np.ndarray, " I"]
    observed: Int[np.ndarray, " I"]
    num_subjects: int

    def expected_width(self, dims: int) -> float:
        """Posterior standard deviation of ability to expect with slopes of 1 and the mean number of responses.

        The items' information is shared by the dimensions.
        """
        p = self.right / self.observed
        return float((1 + (self.observed * p * (1 - p)).sum() / (self.num_subjects * dims)) ** -0.5)


def choose(way: str, num_nodes: int | None, totals: Totals, dims: int) -> NodeRule | None:
    """The nodes to begin with; None for normal posteriors.

    Args:
        way: one of `WAYS`. "auto" takes nodes that subjects share where posteriors are expected to be wide, in up to
            three dimensions, nodes around each posterior in more, if the responses are few enough, and else normal
            posteriors.
        num_nodes: of a grid that subjects share, per dimension; None to choose.
        totals: of the responses.
        dims: D.

    Raises:
        InputError: an unknown way, one that cannot be had, or nodes that do not go with it.
    """
    if way not in WAYS:
        raise InputError(f"unknown `integration` {way!r}, expected one of {', '.join(WAYS)}")
    if num_nodes is not None:
        if way not in ("auto", "nodes"):
            raise InputError(f"`num_nodes` {num_nodes} with `integration` {way!r}: expected 'nodes'")
        most = round(MOST_GIVEN ** (1 / dims))
        if not 3 <= whole_number("num_nodes", num_nodes) <= num_nodes <= most:
            raise InputError(f"`num_nodes` {num_nodes}, expected 3 to {most:,} with `dims` {dims}")
        return SharedNodes(num_nodes, dims)
    width = totals.expected_width(dims)
    if way == "nodes" or (way == "auto" and dims <= MOST_SHARED and width >= NARROW):
        number = nodes_per_dimension(dims)
        # where posteriors are narrower than their distance, more nodes; three dimensions have many already
        return SharedNodes(2 * number - 1 if width < spacing(number) and dims < 3 else number, dims)
    if way == "normal" or width < NARROW:
        return None
    around: ImportanceNodes | None = importance_nodes_to_start_with(totals.num_subjects, len(totals.right))
    if around is None and way == "around":
        size = f"{totals.num_subjects:,} subjects × {len(totals.right):,} items"
        raise InputError(f"`integration` 'around': too many responses ({size}) for nodes of each subject's own")
    return around
