"""A search for better modes of items with asymptotes.

The likelihood of such an item has several maxima: a steep curve far out, a flat one, one that falls. Given what the
posteriors expect of the answers at each ability, each item can be tried from many starts at once, at the price of a few
iterations. A better one is better for the whole likelihood too (it is an M-step of EM).
"""

import dataclasses

import numpy as np

from irtjax.estimation.item_step import best_of, candidates, log_prior, natural_step, priors_of
from irtjax.estimation.problem import Specification, as_array, as_items
from irtjax.estimation.quadrature.item_score import Counts, log_likelihood, score
from irtjax.kernels.models import ItemParameters
from irtjax.types import Bool, Float

LOCATIONS = (-1.5, -0.75, 0.0, 0.75, 1.5)  # of the steep curves that the search starts from
STEEP = 4.0
SMALLEST_GAIN = 0.1  # nats for which an item moves
STEPS = 12
MOST_CHANGE = 2.0
FRACTIONS = (1.0, 0.4, 0.1)
BINS = 80  # of nodes, in which the search climbs
MOST_LOGIT = 5.0  # of an asymptote to start from


def better_modes(
    items: ItemParameters, specification: Specification, counts: Counts
) -> tuple[ItemParameters, Bool[np.ndarray, " I"]]:
    """Items moved to better modes of what they contribute to the expected log-likelihood, and which did; D = 1.

    Among two modes of opposite slopes that explain the answers equally well, the one whose sign is the commoner is
    taken: a falling curve gains log(share rising / share falling) too little.

    Args:
        items: I items; those without free asymptotes stay.
        specification: what is free; priors.
        counts: expected answers at the nodes.
    """
    free = np.asarray(specification.free)
    moving = np.flatnonzero(free[:, 0] & free[:, 2:].any(axis=1) & ~np.asarray(specification.shared))
    array = np.asarray(as_array(items))
    moved = np.zeros(len(array), bool)
    if not moving.size:
        return items, moved
    part = dataclasses.replace(counts, statistics=counts.statistics[:, moving], observed=counts.observed[:, moving])
    coarse = _binned(part)
    start = np.concatenate([_steep(coarse, array[moving], free[moving], at) for at in LOCATIONS])
    tiles = len(LOCATIONS)
    of_tiles = _choose(specification, np.tile(moving, tiles))
    tried = _climb(start, of_tiles, _tiled(coarse, tiles))
    own = _choose(specification, moving)

    def value(array: np.ndarray, specification: Specification, counts: Counts) -> np.ndarray:
        items = as_items(array)
        return log_likelihood(items, counts) + log_prior(items, specification) + odds * (array[:, 0] < 0)

    rising = (array[moving, 0] >= 0).sum()
    odds = np.log((moving.size - rising + 1) / (rising + 1))
    values = value(tried, of_tiles, _tiled(part, tiles)).reshape(tiles, -1)
    best = np.nanargmax(np.where(np.isfinite(values), values, -np.inf), axis=0)
    at = np.arange(moving.size)
    better = values[best, at] > value(array[moving], own, part) + SMALLEST_GAIN
    array[moving[better]] = tried.reshape(tiles, moving.size, -1)[best, at][better]
    moved[moving[better]] = True
    return as_items(array), moved


def _choose(specification: Specification, items: np.ndarray) -> Specification:
    rows = {
        name: np.asarray(getattr(specification, name))[items]
        for name in ("free", "shared", "prior_mean", "prior_precision")
    }
    return dataclasses.replace(specification, has_shared=False, **rows)


def _tiled(counts: Counts, tiles: int) -> Counts:
    return dataclasses.replace(
        counts, statistics=np.tile(counts.statistics, tiles), observed=np.tile(counts.observed, tiles)
    )


def _binned(counts: Counts) -> Counts:
    """The counts at fewer nodes, which is enough to climb by."""
    starts = np.arange(0, len(counts.nodes), max(1, len(counts.nodes) // BINS))
    leaves = counts.nodes, counts.statistics, counts.observed
    nodes, statistics, observed = (np.add.reduceat(leaf, starts, axis=0) for leaf in leaves)
    return Counts(counts.model, nodes / np.diff([*starts, len(counts.nodes)])[:, None], statistics, observed)


def _steep(counts: Counts, array: np.ndarray, free: np.ndarray, at: float) -> np.ndarray:
    """Steep curves at an ability, between the shares of right answers below and above it: (I, K)."""
    below = counts.nodes[:, 0] < at
    low, high = (
        (counts.statistics[side].sum(axis=0) + 0.5) / (counts.observed[side].sum(axis=0) + 1.0)
        for side in (below, ~below)
    )
    ends = np.stack([np.minimum(low, high), np.maximum(low, high)], axis=1)
    logits = np.clip(np.log(ends) - np.log1p(-ends), -MOST_LOGIT, MOST_LOGIT)
    slope = np.where(high < low, -STEEP, STEEP)
    start = np.stack([slope, -slope * at, logits[:, 0], logits[:, 1]], axis=1)
    start[:, 2:] = np.where(start[:, 3:] - start[:, 2:3] < 0.5, [[-MOST_LOGIT, MOST_LOGIT]], start[:, 2:])
    return np.where(free, start, array)


def _climb(array: Float[np.ndarray, "I K"], specification: Specification, counts: Counts) -> Float[np.ndarray, "I K"]:
    """A few steps of Fisher scoring, each the best of three lengths."""
    for _ in range(STEPS):
        items = as_items(array)
        prior = priors_of(array, specification)
        with np.errstate(divide="ignore", invalid="ignore"):  # a flat likelihood tells no step; none is made then
            gradient, information = score(items, counts, asymptotes=True)
            step = natural_step(
                gradient + prior.gradient, information + prior.information[:, :, None] * np.eye(4)[None], specification
            )
        step = np.where(np.isfinite(step), step, 0.0)
        step *= np.minimum(1.0, MOST_CHANGE / np.maximum(np.abs(step).max(axis=1), MOST_CHANGE))[:, None]
        tried = candidates(items, np.stack([share * step for share in FRACTIONS]))
        values = [log_likelihood(as_items(one), counts) + log_prior(as_items(one), specification) for one in tried]
        array = np.asarray(as_array(best_of(tried, np.stack(values), specification)))
    return array
