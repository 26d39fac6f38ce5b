"""What is free of items that are not right or wrong, under which priors, and where a fit of them starts."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from irtjax.errors import InputError
from irtjax.estimation.empirical_priors import DETERMINED, intercepts_determined
from irtjax.estimation.priors import ASINH_SLOPE_PRIOR, INTERCEPT_PRIOR, WEAK_STEPS
from irtjax.estimation.problem import Specification
from irtjax.estimation.specify import start_slopes
from irtjax.item_models.families import Families
from irtjax.item_models.listing import MODELS, model_of, num_others
from irtjax.item_models.protocol import PredictorParameters
from irtjax.responses.scaled import ScaledResponses
from irtjax.types import Bool, Int

STEP_SD = 1.0  # of a prior of steps, where the estimated one starts
OPTION_SD = 1.0  # the same of slopes and intercepts of categories without order


class FamilyPlan(NamedTuple):
    """What is to be estimated.

    Attributes:
        responses: with the categories that the fit knows.
        model: of the items.
        items: to start from.
        specification: what is free; priors.
        in_logits: whether slopes are reported as 1, and the population has the spread.
    """

    responses: ScaledResponses
    model: Families
    items: PredictorParameters
    specification: Specification
    in_logits: bool


def plan_families(responses: ScaledResponses, models: Sequence[str], dims: int, priors: str | None) -> FamilyPlan:
    """The items to start from, and what is free of them.

    With priors "auto", those of slopes, intercepts and steps are estimated from the items unless the responses
    determine the thresholds: by more than 90% of their variance, each threshold taken for a right/wrong item. Without
    priors, categories that nobody was given have no finite estimate, and are taken out of the scales of their items.

    Raises:
        InputError: an item of one category, or models that do not go together.
    """
    used = responses.given_only()
    alone = np.array([scale.top == 0 for scale in used.scales])
    if alone.any():
        i = int(np.argmax(alone))
        only = (used.scales[i].labels or ("",))[0]
        raise InputError(
            f"item {str(used.item_ids[i])!r} (1 of {alone.sum()} such): every response is "
            f"{only!r}, which tells no one from another: leave it out"
        )
    determined = dims > 1 or priors is None or _thresholds_determined(used) > DETERMINED
    if determined:
        responses = used
    top = np.array([scale.top for scale in responses.scales])
    model = model_of(tuple(models), top)
    free, shared, steps_in_common = _free(models, top, dims, num_others(model))
    size = free.shape[1]
    mean, precision = np.zeros(free.shape), np.zeros(free.shape)
    estimated: tuple[tuple[int, ...], ...] = ()
    own_slopes = bool((free[:, 0] & ~shared).any())
    if priors is not None and dims == 1:
        nominal = np.array([MODELS[name].family.name == "nominal" for name in models])
        if own_slopes:
            chosen = free[:, 0] & ~shared
            mean[chosen, 0], precision[chosen, 0] = ASINH_SLOPE_PRIOR.mean, ASINH_SLOPE_PRIOR.sd**-2
            estimated += ((0,),)
        if not determined:
            if free[:, 1].any():
                mean[:, 1], precision[:, 1] = INTERCEPT_PRIOR.mean, INTERCEPT_PRIOR.sd**-2
                estimated += ((1,),)
            others = tuple(range(2, size))
            precision[:, 2:] = np.where(nominal, OPTION_SD, STEP_SD)[:, None] ** -2.0
            if others and not steps_in_common:
                groups = _halves(others, bool(nominal.all()))
                estimated += groups
            precision[:, steps_in_common] = 0.0
        precision = np.where(free, precision, 0.0)
    specification = Specification(
        free=free,
        shared=shared,
        prior_mean=mean,
        prior_precision=precision,
        dims=dims,
        has_shared=bool(shared.any()),
        mean_fixed=True,
        sd_fixed=True,
        free_slopes=bool(free[:, :dims].any()),
        estimated=estimated,
        asinh_slopes=(0,) in estimated,
        common_others=steps_in_common,
        weak_others=WEAK_STEPS,
    )
    return FamilyPlan(responses, model, _start(responses, model, specification, top), specification, bool(shared.all()))


def _halves(others: tuple[int, ...], nominal: bool) -> tuple[tuple[int, ...], ...]:
    """Columns whose priors share a standard deviation: slopes and intercepts of categories each have their own."""
    half = len(others) // 2
    return (others[:half], others[half:]) if nominal else (others,)


def _thresholds_determined(responses: ScaledResponses) -> float:
    """Share of the variance of thresholds, 0 to 1, that responses determine."""
    counts = responses.frequencies()
    above = counts[:, ::-1].cumsum(axis=1)[:, ::-1]
    total = np.broadcast_to(above[:, :1], above[:, 1:].shape)
    own = np.arange(1, counts.shape[1]) <= np.array([scale.top for scale in responses.scales])[:, None]
    return intercepts_determined(above[:, 1:][own], total[own])


def _free(
    models: Sequence[str], top: Int[np.ndarray, " I"], dims: int, size: int
) -> tuple[Bool[np.ndarray, "I K"], Bool[np.ndarray, " I"], tuple[int, ...]]:
    """Which parameters are estimated, which slopes are shared, and the columns that all items have in common.

    Raises:
        InputError: models that do not go together, or have no several dimensions.
    """
    listed = [MODELS[name] for name in models]
    nominal = np.array([one.family.name == "nominal" for one in listed])
    shared = np.array([not one.own_slopes for one in listed])
    if dims > 1 and (shared | nominal).any():
        name = models[int(np.argmax(shared | nominal))]
        raise InputError(f"dims {dims} needs graded or gpcm: items of the {name} have one dimension")
    steps = np.array([one.common_steps for one in listed])
    if steps.any() and not (steps.all() and np.ptp(top) == 0):
        raise InputError(
            "rsm needs all items on one scale, of which every item uses every category, and no other model"
        )
    free = np.zeros((len(models), dims + 1 + size), bool)
    free[:, :dims], free[:, dims] = ~nominal[:, None], ~nominal
    for item in range(dims - 1):
        free[item, item + 1 : dims] = False
    places = np.arange(size)
    in_order = places < (top - 1)[:, None]
    of_categories = (places % max(size // 2, 1) < top[:, None]) & (places < 2 * (size // 2))
    free[:, dims + 1 :] = np.where(nominal[:, None], of_categories, in_order)
    return free, shared, tuple(range(dims + 1, dims + int(top.max()))) if steps.any() else ()


def _start(
    responses: ScaledResponses, model: Families, specification: Specification, top: Int[np.ndarray, " I"]
) -> PredictorParameters:
    """Slopes of 1, and what the frequencies of the categories say of the rest."""
    num_items, dims = responses.num_items, specification.dims
    intercept, others = np.zeros(num_items), np.zeros((num_items, specification.free.shape[1] - dims - 1))
    for family, group in model.groups(num_items):
        trials = None if responses.trials is None else responses.trials[:, group]
        values = np.asarray(responses.values[:, group], float)
        intercept[group], others[group] = family.start(values, trials, top[group], others.shape[1])
    for column in specification.common_others:
        others[:, column - dims - 1] = others[:, column - dims - 1].mean()
    return PredictorParameters(start_slopes(np.asarray(specification.free), dims), intercept, others, top)
