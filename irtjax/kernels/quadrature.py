"""Nodes and weights that stand for the population of abilities in marginal likelihoods."""

import itertools
from typing import NamedTuple

import numpy as np

LONG = 60  # items from which on twice as many nodes are needed, posteriors being narrow


class Quadrature(NamedTuple):
    """Nodes (Q, D) of a standard normal population and the logarithms (Q,) of their weights, which sum to 1."""

    nodes: np.ndarray
    log_weights: np.ndarray


def rectangular(num_nodes: int = 61, bound: float = 6.0, dims: int = 1) -> Quadrature:
    """Equally spaced nodes in [-bound, bound] in each of D dimensions, weighted by the normal density there.

    For a density that is smooth on the scale of the spacing h this is far more accurate than its order suggests: the
    error for a normal factor of standard deviation s is about 2 exp(-2 π² s²/h²) (Trefethen and Weideman 2014).
    """
    line = np.linspace(-bound, bound, num_nodes)
    nodes = np.array(list(itertools.product(line, repeat=dims)))
    log_weights = -0.5 * (nodes**2).sum(axis=1)
    return Quadrature(nodes, log_weights - np.logaddexp.reduce(log_weights))


def of_test(num_items: int) -> Quadrature:
    """Nodes for sums over the abilities of what a test of so many items says."""
    return rectangular(61 if num_items < LONG else 121)
