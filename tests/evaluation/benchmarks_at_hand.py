"""A simulated benchmark, calibrated once for all tests."""

import functools
from typing import NamedTuple

import numpy as np
from simulation import by_difficulty, draw

from irtjax.evaluation.bank import Bank, calibrate
from irtjax.evaluation.prediction import Crossed, cross
from irtjax.responses.matrix import ResponseMatrix


class Simulated(NamedTuple):
    """Answers by a 2PL model, and scores on a benchmark of which the items are a part."""

    responses: ResponseMatrix
    scores: np.ndarray
    slope: np.ndarray
    difficulty: np.ndarray
    ability: np.ndarray


@functools.cache
def simulate(num_subjects: int, num_items: int = 24, seed: int = 0) -> Simulated:
    """The same items for every number of subjects; the benchmark has as many items again, times 20."""
    of_items, rng = np.random.default_rng(5), np.random.default_rng(seed)
    slope, difficulty = of_items.uniform(0.5, 2.5, num_items), of_items.normal(0, 1.2, num_items)
    ability = rng.normal(size=num_subjects)
    p = by_difficulty(ability, slope, difficulty)
    values = draw(rng, p)
    scores = 100 * (values.sum(axis=1) + rng.binomial(20, p).sum(axis=1)) / (21 * num_items)
    subjects, items = ([f"{what}{k}" for k in range(n)] for what, n in (("m", num_subjects), ("i", num_items)))
    return Simulated(ResponseMatrix(values, subjects, items), scores, slope, difficulty, ability)


@functools.cache
def crossed_bank() -> Crossed:
    """150 subjects, and the folds of them."""
    simulated = simulate(150)
    return cross(calibrate(simulated.responses, simulated.scores))


def calibrated_bank() -> Bank:
    """The same without the folds."""
    return crossed_bank().bank
