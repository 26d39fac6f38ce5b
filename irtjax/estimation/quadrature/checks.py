"""Whether nodes are fine enough for a fit, and what finer ones would change."""

import numpy as np

from irtjax import processes
from irtjax.estimation.problem import layout
from irtjax.estimation.quadrature.state import State
from irtjax.estimation.quadrature.step_length import at_bounds, narrowing
from irtjax.integration.e_step import e_step
from irtjax.integration.node_rule import Refinement
from irtjax.item_models.families import Families
from irtjax.item_models.protocol import Items
from irtjax.types import Bool, Float

SAMPLE_WEIGHTS = 2**25  # beyond it the error is known from a sample of the subjects
PART_WEIGHTS = 2**22  # that are held at a time: some arrays of 32 MB
JUDGES = 2000  # subjects by which it is decided whether nodes are fine enough
STEP = 1e3  # times a slope makes of any curve a step
STEEP = 20.0  # a slope, in standard deviations of the population, that few real items have
NEGLIGIBLE = 0.05  # nats that the likelihood of a step may lack


def refinement(state: State, items: Items, at_most: int) -> Refinement:
    """What finer nodes would change, on an even sample of the subjects if they are too many."""
    at_most = -(-at_most // processes.number())
    num_subjects = state.answers.num_subjects
    of_finer = state.rule.weights_of_finer * state.grid.num_weights(num_subjects) / num_subjects
    most = min(at_most, max(100, int(SAMPLE_WEIGHTS / of_finer)))
    rows = np.arange(num_subjects) if num_subjects <= most else np.linspace(0, num_subjects - 1, most).astype(int)
    answers = state.answers.on_host()
    # as many parts on every process: nodes are those that any of them needs
    number = max(processes.everyone(-(-len(rows) * int(of_finer) // PART_WEIGHTS)))
    found = [
        state.rule.refined(items, state.point.population, answers.rows(part), num_subjects)
        for part in np.array_split(rows, max(1, number))
    ]
    change, log_likelihoods = (
        processes.gather(np.concatenate([getattr(part, name) for part in found]))
        for name in ("change", "log_likelihoods")
    )
    affordable = all(part.affordable for part in found)
    return Refinement(change, all(processes.everyone(affordable)), log_likelihoods)


def too_coarse(state: State, slack: float) -> bool:
    """Whether finer nodes change the log-likelihoods too much, and can be afforded.

    They are, too, where a group is narrower than they tell. With several dimensions, items that finer nodes would
    only make steeper have no say: they ask for ever more.
    """
    items, rule = state.point.items, state.rule
    found = refinement(state, items, JUDGES)
    off = at_bounds(state.point, state.specification, rule.steepest)
    if items.slope.shape[1] > 1 and off.any() and found.affordable:
        steepest = rule.finer().steepest == rule.steepest
        if steepest or _rise(refinement(state, _scaled(state, off, STEP), JUDGES), found):
            found = refinement(state, _scaled(state, off, 0.0), JUDGES)
    narrow = (narrowing(state.point, layout(state.specification), rule.narrowest) <= 0).any()
    mean, of_each = rule.tolerance
    too_much = abs(found.change.mean()) > slack * mean or np.abs(found.change).mean() > slack * of_each
    return bool((too_much or narrow) and found.affordable)


def slopes_without_maximum(state: State, error: Float[np.ndarray, " I"]) -> Bool[np.ndarray, " I"]:
    """Steep items of one dimension whose likelihood hardly falls, if at all, on the way to a step.

    Slopes that are shared go there together, and so do those of 1 where the unit of the scale is free.

    Args:
        state: at rest.
        error: (I,) standard errors of the slopes, NaN where they are not known.
    """
    items, population, specification = state.point.items, state.point.population, state.specification
    slope = np.abs(np.asarray(items.slope)[:, 0])
    steep = slope * population.unit[0] > STEEP
    unit_is_free = specification.mean_fixed and not specification.sd_fixed
    own = np.asarray(specification.free)[:, 0] & (np.asarray(specification.prior_precision)[:, 0] == 0)
    together = np.asarray(specification.shared) & own | unit_is_free
    suspects = steep & (own & ~(error < slope / 2) | unit_is_free)
    groups = [np.arange(len(slope)) == item for item in np.flatnonzero(suspects & ~together)]
    if (suspects & together).any():
        groups.append(together)
    if not groups:
        return suspects
    grid = state.rule.finer().lay_out(items, population, state.answers)

    def log_likelihood(items: Items) -> float:
        found = e_step(items, population, state.answers, grid)
        return float(processes.total(found.log_likelihoods.sum()))

    here = log_likelihood(items)
    found = [group for group in groups if log_likelihood(_scaled(state, group, STEP)) > here - NEGLIGIBLE]
    return np.any([np.zeros_like(steep), *found], axis=0)


def _rise(steps: Refinement, found: Refinement) -> bool:
    return bool(steps.log_likelihoods.sum() >= found.log_likelihoods.sum())


def _scaled(state: State, chosen: np.ndarray, factor: float) -> Items:
    """Some items with curves so much steeper, where they are."""
    items, model, share = state.point.items, state.answers.model, np.where(chosen, factor, 1.0)
    scaled = items._replace(
        slope=np.asarray(items.slope) * share[:, None], intercept=np.asarray(items.intercept) * share
    )
    if isinstance(model, Families):
        scaled = scaled._replace(others=model.others_of_steeper(np.asarray(items.others), share))
    return scaled
