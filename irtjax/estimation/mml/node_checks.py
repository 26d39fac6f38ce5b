"""Whether nodes are fine enough for a fit, and what finer ones would change."""

from typing import Protocol

import jax
import numpy as np

from irtjax.estimation.mml import slope_bounds
from irtjax.estimation.mml.climb import Point
from irtjax.estimation.mml.node_rules import Finer, NodeRule
from irtjax.estimation.mml.nodes import Answers
from irtjax.estimation.mml.windows import Windows
from irtjax.estimation.parameterization import Specification
from irtjax.kernels.models import ItemParameters

SAMPLE_WEIGHTS = 2**25  # beyond it the error is known from a sample of the subjects
JUDGES = 2000  # subjects by which it is decided whether nodes are fine enough
STEP = 1e3  # times a slope makes of any curve a step


class OnNodes(Protocol):
    """A state of the engine."""

    point: Point
    specification: Specification
    rule: NodeRule
    answers: Answers
    windows: Windows


def compare(state: OnNodes, items: ItemParameters, at_most: int) -> Finer:
    """What finer nodes would change, on an even sample of the subjects if they are too many."""
    num_subjects = len(state.answers.right)
    of_finer = state.rule.weights_of_finer * state.windows.num_weights(num_subjects) / num_subjects
    most = min(at_most, max(100, int(SAMPLE_WEIGHTS / of_finer)))
    rows = np.arange(num_subjects) if num_subjects <= most else np.linspace(0, num_subjects - 1, most).astype(int)
    answers = jax.tree.map(lambda leaf: np.asarray(leaf)[rows], state.answers)
    return state.rule.compare(items, state.point.population, answers, num_subjects)


def too_coarse(state: OnNodes, slack: float) -> bool:
    """Whether finer nodes change the log-likelihoods too much, and can be afforded.

    With several dimensions, items that finer nodes would only make steeper have no say: they ask for ever more.
    """
    items, rule = state.point.items, state.rule
    found = compare(state, items, JUDGES)
    off = slope_bounds.at_bounds(items, state.specification, state.point.population.sd, rule.steepest)
    if items.slope.shape[1] > 1 and off.any() and found.affordable:
        steepest = rule.finer().steepest == rule.steepest
        if steepest or _rise(compare(state, _scaled(items, off, STEP), JUDGES), found):
            found = compare(state, _scaled(items, off, 0.0), JUDGES)
    mean, of_each = rule.tolerance
    too_much = abs(found.change.mean()) > slack * mean or np.abs(found.change).mean() > slack * of_each
    return bool(too_much and found.affordable)


def _rise(steps: Finer, found: Finer) -> bool:
    return bool(steps.log_likelihoods.sum() >= found.log_likelihoods.sum())


def _scaled(items: ItemParameters, chosen: np.ndarray, factor: float) -> ItemParameters:
    """Some items with curves so much steeper, where they are."""
    share = np.where(chosen, factor, 1.0)
    return items._replace(slope=np.asarray(items.slope) * share[:, None], intercept=np.asarray(items.intercept) * share)
