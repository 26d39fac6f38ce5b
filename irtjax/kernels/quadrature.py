"""Nodes and weights that stand for the population of abilities, and the rules that say how many are needed for what."""

import itertools
from typing import NamedTuple

import numpy as np

from irtjax.types import Float

BOUND = 6.0  # standard deviations of the population; beyond it is a mass of 2e-9
STANDARD_NODES = 61
VISIBLE = 0.05  # relative error up to which nodes tell a curve from a step
LONG_TEST = 60  # items from which on twice as many nodes are needed, posteriors being narrow


class Quadrature(NamedTuple):
    """Nodes of a standard normal population and the logarithms of their weights, which sum to 1.

    Attributes:
        nodes: (Q, D) in standard deviations of the population.
        log_weights: (Q,).
    """

    nodes: Float[np.ndarray, "Q D"]
    log_weights: Float[np.ndarray, " Q"]


def rectangular(num_nodes: int = STANDARD_NODES, bound: float = BOUND, dims: int = 1) -> Quadrature:
    """Equally spaced nodes in [-bound, bound] in each of D dimensions, weighted by the normal density there.

    For a density that is smooth on the scale of the spacing h this is far more accurate than its order suggests: the
    error for a normal factor of standard deviation s is about 2 exp(-2 π² s²/h²) (Trefethen and Weideman 2014).

    Args:
        num_nodes: in each dimension.
        bound: in standard deviations of the population.
        dims: D.
    """
    line = np.linspace(-bound, bound, num_nodes)
    nodes = np.array(list(itertools.product(line, repeat=dims)))
    log_weights = -0.5 * (nodes**2).sum(axis=1)
    return Quadrature(nodes, log_weights - np.logaddexp.reduce(log_weights))


def gauss_hermite(num_nodes: int, dims: int = 1) -> Quadrature:
    """Nodes of an expectation over a standard normal distribution, exact for polynomials of degree 2 `num_nodes` - 1.

    For smooth functions of one normal posterior; of whole populations and sharp curves `rectangular` knows more.
    """
    line, weights = np.polynomial.hermite_e.hermegauss(num_nodes)
    nodes = np.array(list(itertools.product(line, repeat=dims)))
    log_weights = np.array(list(itertools.product(np.log(weights / weights.sum()), repeat=dims))).sum(axis=1)
    return Quadrature(nodes, log_weights)


def sobol(number: int, dims: int) -> Float[np.ndarray, "Q D"]:
    """The first Sobol' points (Q, D) in the unit cube, which fill it evenly; a power of 2 of them."""
    from scipy.stats import qmc  # a third of a second to import, for four dimensions and more

    return qmc.Sobol(dims, scramble=False).random(number)


def spacing(num_nodes: int, bound: float = BOUND) -> float:
    """Distance of neighbouring nodes of `rectangular(num_nodes, bound)`, in standard deviations of the population."""
    return 2 * bound / (num_nodes - 1)


def steepest(spacing: float) -> float:
    """The slope of a logistic curve that nodes so far apart can tell from a step.

    By the trapezoidal rule with nodes h apart, a curve of slope a is integrated with a relative error of about
    exp(-2π²/(a h)) (Trefethen and Weideman 2014).
    """
    return 2 * np.pi**2 / (spacing * -np.log(VISIBLE))


def nodes_per_dimension(dims: int) -> int:
    """Number of nodes in each of D dimensions with which item parameters are estimated, on a grid."""
    return {1: STANDARD_NODES, 2: 31, 3: 21}.get(dims, 9)


def of_test(num_items: int) -> Quadrature:
    """Nodes for sums over the abilities of what a test of so many items says."""
    return rectangular(STANDARD_NODES if num_items < LONG_TEST else 2 * STANDARD_NODES - 1)


def of_moments(dims: int) -> Quadrature:
    """Nodes for probabilities of right answers, and of pairs of them, in the whole population."""
    return rectangular({1: STANDARD_NODES, 2: 31}.get(dims, 15), dims=dims)


def of_posterior_mean(dims: int) -> Quadrature:
    """Nodes around one subject's posterior in D > 1 dimensions, in its standard deviations."""
    return rectangular({2: 21, 3: 11}[dims], dims=dims) if dims < 4 else rectangular(7, 0.75 * BOUND, dims)


def of_mode_search(dims: int) -> Quadrature:
    """Nodes from the best of which the search for the mode of a posterior begins."""
    return rectangular() if dims == 1 else rectangular(7 if dims < 4 else 3, BOUND / 2, dims)
