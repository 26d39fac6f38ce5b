"""Nodes on a line for posteriors of abilities on known items of families: panels, short where the items tell.

What an item tells between two abilities is the symmetric divergence of its responses there (Jeffreys 1946),

    (η(h) - η(l))' (E T(h) - E T(l)),

which is about I (h - l)² where they are near, and sees every change of what is answered, however narrow it is beside
the population. A panel is halved until this, summed over the items that a subject may have answered, and the square of
its length in standard deviations of the population are together at most `LONGEST²`; and until no panel is more than
twice as long as its neighbour.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.item_models.families import Families
from irtjax.item_models.protocol import PredictorParameters
from irtjax.kernels.ability_nodes import PANEL_NODES, LineNodes
from irtjax.types import AnyArray, Float

LONGEST = 2.0
FIRST = 1.0  # standard deviations of the population
MOST_PANELS = 2048
MOST_ENTRIES = 2**22  # of natural parameters at a time
FEW_ENTRIES = 2**17  # items at points
MOST_POINTS = 512


def family_nodes(
    model: Families,
    items: PredictorParameters,
    most: Float[np.ndarray, " I"],
    number: int,
    end: float,
) -> LineNodes:
    """Gauss-Legendre nodes of a population N(0, 1), `end` standard deviations to either side.

    Args:
        model: of the items.
        items: parameters, for abilities in units of the population.
        most: (I,) trials of a response, at most.
        number: of items that a subject answered, at most.
        end: of the nodes.
    """
    longest = LONGEST
    while True:
        edges = _edges(model, items, most, number, np.arange(-end, end + FIRST / 2, FIRST), longest)
        if edges is not None:
            break
        longest *= 2  # of more steep items than nodes can follow
    points, weights = np.polynomial.legendre.leggauss(PANEL_NODES)
    half = np.diff(edges) / 2
    z = (edges[:-1, None] + half[:, None] * (1 + points)).ravel()
    log_weights = np.log((half[:, None] * weights).ravel()) - 0.5 * z**2
    return LineNodes(z, log_weights - np.logaddexp.reduce(log_weights), edges)


def _edges(
    model: Families,
    items: PredictorParameters,
    most: Float[np.ndarray, " I"],
    number: int,
    edges: Float[np.ndarray, " first"],
    longest: float,
) -> Float[np.ndarray, " all"] | None:
    """Edges of panels that are short enough; None if there would be too many."""
    allowed = max(MOST_PANELS, 2 * len(edges))
    eta, mean = _at(model, items, edges)
    while True:
        length = np.diff(edges)
        told = (np.diff(eta, axis=0) * np.diff(mean, axis=0)).reshape(len(length), len(most), -1).sum(axis=2) * most
        if number < len(most):
            told = np.partition(told, len(most) - number, axis=1)[:, len(most) - number :]
        long = told.sum(axis=1) + length**2 > longest**2
        long[1:] |= length[1:] > 2 * length[:-1]
        long[:-1] |= length[:-1] > 2 * length[1:]
        if not long.any():
            return edges
        if len(edges) + long.sum() > allowed:
            return None
        middle = (edges[:-1] + edges[1:])[long] / 2
        places = np.flatnonzero(long) + 1
        edges = np.insert(edges, places, middle)
        eta, mean = (
            np.insert(whole, places, part, axis=0)
            for whole, part in zip((eta, mean), _at(model, items, middle), strict=True)
        )


def _at(
    model: Families, items: PredictorParameters, points: Float[np.ndarray, " Q"]
) -> tuple[Float[np.ndarray, "Q M"], Float[np.ndarray, "Q M"]]:
    """η and E T at points, some at a time; few of categories without compilation, which takes longer."""
    if model.has_indicators and len(points) * len(items.intercept) <= FEW_ENTRIES:
        plain = PredictorParameters(*(np.asarray(leaf) for leaf in items))
        eta = model.natural(plain, points[:, None], asymptotes=False).eta
        return np.asarray(eta), np.asarray(model.moments(plain, points[:, None], asymptotes=False).mean)
    size = int(np.clip(MOST_ENTRIES // (len(items.intercept) * model.per_item), 16, MOST_POINTS))
    padded = np.pad(points, (0, -len(points) % size), mode="edge").reshape(-1, size)
    parts = [jax.device_get(_natural_and_mean(model, items, jnp.asarray(part))) for part in padded]
    eta, mean = (np.concatenate(each)[: len(points)] for each in zip(*parts, strict=True))
    return eta, mean


@functools.partial(jax.jit, static_argnums=0)
def _natural_and_mean(model: Families, items: PredictorParameters, points: AnyArray) -> tuple[AnyArray, AnyArray]:
    theta = points[:, None]
    return (
        model.natural(items, theta, asymptotes=False).eta,
        model.moments(items, theta, asymptotes=False).mean,
    )
