"""Nodes on a line that resolve every posterior to which answers to known items can lead, in one dimension.

They follow the items and the population, so that all subjects may share them. Where few enough suffice they are equally
spaced. In a population that is wide beside its items these would be too many: then the line is cut into panels, short
where the items are and long where nothing happens, with Gauss-Legendre nodes in each.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_expit

from irtjax.kernels.models import ItemParameters
from irtjax.kernels.quadrature import BOUND, STANDARD_NODES, rectangular
from irtjax.types import Float

RESOLVED = 1.0  # spacings of equally spaced nodes in the smallest standard deviation of a posterior
MOST_NODES = 4801
LOW = 9.0  # nats below its mode that every posterior is where nodes may end
PANEL_NODES = 8
PANEL = 3.0  # widths of a panel in the narrowest structure that a posterior can have there
HALVINGS = 200  # that the search for a mode takes at most
NEAR = 0.01  # standard deviations of the population: how well a mode is found
LARGE = 100.0  # logits from which on an item has no information


class LineNodes(NamedTuple):
    """Q nodes of a normal population in increasing order.

    Attributes:
        nodes: (Q,) in logits.
        log_weights: (Q,) logarithms of the weights, which sum to 1.
        edges: (Q + 1,) between the parts of the line that the nodes stand for, in logits; (0,) where these are equally
            long.
    """

    nodes: Float[np.ndarray, " Q"]
    log_weights: Float[np.ndarray, " Q"]
    edges: Float[np.ndarray, " _"]


def line_nodes(items: ItemParameters, max_items: int, mean: float, sd: float) -> LineNodes:
    """Nodes that resolve every posterior that answers to `max_items` of the items can lead to, D = 1.

    No item has more Fisher information than a²/4, so that no posterior is much narrower than (1/σ² + Σ a²/4)^(-1/2),
    with the sum over the steepest items. With that as spacing the trapezoidal rule is off by about 2 exp(-2π²) = 5e-9
    (Trefethen and Weideman 2014). If that takes more than `MOST_NODES`, panels are halved until each is at most `PANEL`
    times as long as 1/ρ at any of its points,

        ρ² = 1/σ² + Σ a² P (1 - P) + max a²/4 / (1 + x²/4),   x the logit of an item,

    with the sum over the most informative items. Its last term follows the distance to the poles of P, at x = iπ. The
    error of a logistic curve within such a panel is about 5e-7.

    They end 6 standard deviations from the mean of the population; where a posterior may still be high there, 6 beyond
    the farthest mode.

    Args:
        items: of I items, NumPy arrays.
        max_items: answers of a subject, at most.
        mean: of the population, in logits.
        sd: of the population, in logits.
    """
    slope = np.asarray(items.slope, float)[:, 0]
    some = slope != 0
    slope, intercept = slope[some], np.asarray(items.intercept, float)[some]
    steepness, place = sd * np.abs(slope), (-intercept / slope - mean) / sd
    number = min(max_items, slope.size)
    low, high = -_end(steepness, -place, number), _end(steepness, place, number)
    steepest = np.sort(slope**2)[slope.size - number :]
    narrowest = (sd**-2 + steepest.sum() / 4) ** -0.5
    needed = max(math.ceil((high - low) * sd / (RESOLVED * narrowest)) + 1, STANDARD_NODES)
    if needed > MOST_NODES:
        return _on_panels(steepness, place, number, mean, sd, (low, high))
    if (low, high) == (-BOUND, BOUND):
        return even_nodes(needed, mean, sd)
    z = np.linspace(low, high, needed)
    return LineNodes(mean + sd * z, _normalised(-0.5 * z**2), np.zeros(0))


def even_nodes(number: int, mean: float, sd: float) -> LineNodes:
    """So many equally spaced nodes, within 6 standard deviations of the mean."""
    quadrature = rectangular(number)
    return LineNodes(mean + sd * quadrature.nodes[:, 0], quadrature.log_weights, np.zeros(0))


def _end(steepness: Float[np.ndarray, " I"], place: Float[np.ndarray, " I"], number: int) -> float:
    """Where nodes end above, for items of a population N(0, 1).

    The slope of a log-posterior is at most G(z) - z, with G(z) = Σ a σ(-a (z - b)) over the items that pull most. So
    modes are at most where that is 0, and beyond the posterior falls at least as fast as a normal density of standard
    deviation 1, whatever the asymptotes.
    """

    def largest(values: Float[np.ndarray, " I"]) -> float:
        return np.partition(values, values.size - number)[values.size - number :].sum() if number else 0.0

    low, mode = 0.0, float(largest(steepness * expit(steepness * place)))
    for _ in range(HALVINGS):
        if mode - low <= NEAR:
            break
        middle = (low + mode) / 2
        pull = largest(steepness * expit(-steepness * (middle - place)))
        low, mode = (middle, mode) if pull > middle else (low, middle)
    if mode < BOUND:
        risen = log_expit(steepness * (BOUND - place)) - log_expit(steepness * (mode - place))
        if (BOUND**2 - mode**2) / 2 - largest(risen) >= LOW:
            return BOUND
    return mode + BOUND


def _on_panels(
    steepness: Float[np.ndarray, " I"],
    place: Float[np.ndarray, " I"],
    number: int,
    mean: float,
    sd: float,
    ends: tuple[float, float],
) -> LineNodes:
    """Gauss-Legendre nodes in panels; steepness and places of items in units of the population."""
    longest = PANEL
    edges = None
    while edges is None:
        edges = _edges(steepness, place, number, ends, longest)
        longest *= 2  # of more steep items than nodes can follow
    points, weights = np.polynomial.legendre.leggauss(PANEL_NODES)
    half = np.diff(edges) / 2
    z = (edges[:-1, None] + half[:, None] * (1 + points)).ravel()
    widths = half[:, None] * weights
    parts = np.append((edges[1:, None] - np.cumsum(widths[:, ::-1], axis=1)[:, ::-1]).ravel(), edges[-1])
    return LineNodes(mean + sd * z, _normalised(np.log(widths.ravel()) - 0.5 * z**2), mean + sd * parts)


def _edges(
    steepness: Float[np.ndarray, " I"],
    place: Float[np.ndarray, " I"],
    number: int,
    ends: tuple[float, float],
    longest: float,
) -> Float[np.ndarray, " P"] | None:
    """Edges of panels of at most `longest` times 1/ρ; None if there are too many for `MOST_NODES`."""
    most = MOST_NODES // PANEL_NODES
    done: list[np.ndarray] = []
    left = np.linspace(*ends, 13)
    low, high = left[:-1], left[1:]
    while low.size:
        if low.size + sum(map(len, done)) > most:
            return None
        # of each item the nearest point of a panel counts
        x = steepness * np.maximum(np.maximum(low[:, None] - place, place - high[:, None]), 0)
        information = steepness**2 / 4 / np.cosh(np.minimum(x, LARGE) / 2) ** 2
        top = np.partition(information, place.size - number, axis=1)[:, place.size - number :].sum(axis=1)
        structure = np.sqrt(1 + top + (steepness**2 / (4 + x**2)).max(axis=1))
        short = (high - low) * structure <= longest
        done.append(low[short])
        low, high = low[~short], high[~short]
        middle = (low + high) / 2
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    return np.append(np.sort(np.concatenate(done)), ends[1])


def _normalised(log_weights: Float[np.ndarray, " Q"]) -> Float[np.ndarray, " Q"]:
    return log_weights - np.logaddexp.reduce(log_weights)
