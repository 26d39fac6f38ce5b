"""What is free of items that are not right or wrong, under which priors, and where a fit of them starts."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from irtjax.errors import InputError
from irtjax.estimation import kinds_of_responses as kinds
from irtjax.estimation.empirical_priors import DETERMINED, intercepts_determined
from irtjax.estimation.family_anchors import Anchors, placed
from irtjax.estimation.priors import (
    ASINH_SLOPE_PRIOR,
    INTERCEPT_PRIOR,
    WEAK_STEPS,
    ItemPriors,
    NormalPrior,
    check_item_priors,
)
from irtjax.estimation.problem import Specification
from irtjax.estimation.specify import start_slopes
from irtjax.item_models.families import Families
from irtjax.item_models.listing import MODELS, OF_SHARES, model_of, num_others
from irtjax.item_models.nominal_dimensions import NominalInDimensions
from irtjax.item_models.protocol import PredictorParameters
from irtjax.item_models.unit_interval import CUT, LOG_GAP, ORDERED_BETA, without_ends
from irtjax.responses.values import OnScales
from irtjax.types import Bool, Float, Int

STEP_SD = 1.0  # of a prior of steps, where the estimated one starts
OPTION_SD = 3.0  # the same of slopes and intercepts of categories without order
# of log φ, where trials of a response agree more than chance
OF_AGREEMENT = NormalPrior(2.0, 1.0)
# of log φ, the lower cut and the logarithm of the gap of shares
OTHERS_OF_SHARES = NormalPrior(1.5, 1.0), NormalPrior(-3.0, 2.0), NormalPrior(1.8, 0.7)


class FamilyPlan(NamedTuple):
    """What is to be estimated.

    Attributes:
        responses: with the categories that the fit knows.
        model: of the items.
        items: to start from.
        specification: what is free; priors.
        in_logits: whether slopes are reported as 1, and the population has the spread.
    """

    responses: Any
    model: Families
    items: PredictorParameters
    specification: Specification
    in_logits: bool


def plan_families(
    responses: OnScales,
    models: Sequence[str],
    dims: int,
    priors: str | None,
    anchors: Anchors | None = None,
    *,
    whole_scales: bool = False,
) -> FamilyPlan:
    """The items to start from, and what is free of them.

    With priors "auto", those of slopes, intercepts and steps are estimated from the items unless the responses
    determine the thresholds: by more than 90% of their variance, each threshold taken for a right/wrong item, and so
    successes of trials, shares, and shares of exactly 0 and 1. Items without finite maximum (`kinds.without_maximum`),
    such as one where every trial failed, keep these priors for all. Beside items of other kinds, priors of what shares
    have besides slopes and intercepts are not estimated.

    Without priors, categories that nobody was given have no finite estimate, and are taken out of the scales of their
    items; so are the cuts of exactly 0, or 1, where no share is.

    Anchors have the categories and parameters that they had. The population's mean and standard deviation are then
    free, and what all items have in common, such as slopes of partial credit, is as the anchors have it.

    In several dimensions there are no priors but one of the slopes of categories without order, N(0, 3²).

    With `whole_scales` no category is taken out, so that the mean of the thresholds is the same of every item.

    Raises:
        InputError: an item of one category, models that do not go together or are of other responses, or items
            without finite maximum where there are no priors.
    """
    held = np.zeros(responses.num_items, bool) if anchors is None else anchors.held
    used = responses.given_only(held)
    _check_categories(used)
    kinds.check_models(used, models)
    lost = kinds.without_maximum(used, models) & ~held
    may_have_priors = dims == 1 and priors is not None
    if lost.any() and not may_have_priors:
        raise InputError(kinds.explain(used, models, lost, dims))
    determined = not may_have_priors or (not lost.any() and _thresholds_determined(used, models, ~held) > DETERMINED)
    if whole_scales and used.scales != responses.scales:
        determined = False
    if determined:
        responses = used
    top = np.array([scale.top for scale in responses.scales])
    model = model_of(tuple(models), top, dims)
    free, shared, steps_in_common = _free(models, top, dims, num_others(model))
    ends = kinds.ends(responses, models, determined)
    free[:, dims + 1 :][:, CUT : LOG_GAP + 1] &= ends[:, : max(free.shape[1] - dims - 1 - CUT, 0)]
    in_logits = bool(shared.all()) and anchors is None
    start = _start(responses, model, free, steps_in_common, top, ends)
    if anchors is not None:
        start = placed(start, anchors, models)
        free[held], free[:, steps_in_common], steps_in_common = False, False, ()
        free[:, 0] &= ~shared.all()
        shared &= ~held & free[:, 0]
    mean, precision = np.zeros(free.shape), np.zeros(free.shape)
    estimated: tuple[tuple[int, ...], ...] = ()
    if may_have_priors:
        mean, precision, estimated = _priors(models, free, shared, steps_in_common, determined)
    elif priors is not None and dims > 1 and set(models) == {"nominal"}:  # the same after a rotation
        precision[:, dims + 1 : dims + 1 + dims * ((free.shape[1] - dims - 1) // (dims + 1))] = OPTION_SD**-2.0
        precision[~free] = 0.0
    specification = Specification(
        free=free,
        shared=shared,
        prior_mean=mean,
        prior_precision=precision,
        dims=dims,
        has_shared=bool(shared.any()),
        mean_fixed=anchors is None,
        sd_fixed=anchors is None,
        free_slopes=bool(free[:, :dims].any()),
        estimated=estimated,
        asinh_slopes=(0,) in estimated,
        common_others=steps_in_common,
        weak_others=WEAK_STEPS,
    )
    return FamilyPlan(responses, model, start, specification, in_logits)


def with_item_priors(specification: Specification, given: Mapping[str, Any]) -> Specification:
    """The specification (D = 1) with priors of each item in place of estimated ones.

    Args:
        specification: of I items.
        given: `ItemPriors` of "slope", on asinh slope, and of "intercept"; None where there is none.

    Raises:
        InputError: what are no priors of the items, several dimensions, or slopes that items share.
    """
    mean, precision = np.array(specification.prior_mean), np.array(specification.prior_precision)
    estimated = list(specification.estimated)
    for column, (name, prior) in enumerate(given.items()):
        if prior is None:
            continue
        if not isinstance(prior, ItemPriors) or specification.dims > 1:
            raise InputError(
                f"`{name}_prior` of other models than of right and wrong answers: expected `ItemPriors`, D 1"
            )
        check_item_priors(prior, len(mean), f"{name}_prior")
        mean[:, column], precision[:, column] = prior.mean, np.asarray(prior.sd, float) ** -2.0
        estimated = [group for group in estimated if column not in group]
    if given["slope"] is not None and specification.has_shared:
        raise InputError("`slope_prior` of each item: expected items with slopes of their own")
    return dataclasses.replace(
        specification,
        prior_mean=mean,
        prior_precision=np.where(specification.free, precision, 0.0),
        estimated=tuple(estimated),
        asinh_slopes=specification.asinh_slopes or given["slope"] is not None,
    )


def _check_categories(used: OnScales) -> None:
    """Refuses items of one category."""
    alone = np.array([scale.top == 0 for scale in used.scales])
    if alone.any():
        i = int(np.argmax(alone))
        only = (used.scales[i].labels or ("",))[0]
        raise InputError(
            f"item {str(used.item_ids[i])!r} (1 of {alone.sum()} such): every response is "
            f"{only!r}, which tells no one from another: leave it out"
        )


def _priors(
    models: Sequence[str],
    free: Bool[np.ndarray, "I K"],
    shared: Bool[np.ndarray, " I"],
    steps_in_common: tuple[int, ...],
    determined: bool,
) -> tuple[Float[np.ndarray, "I K"], Float[np.ndarray, "I K"], tuple[tuple[int, ...], ...]]:
    """Means and precisions of priors (D = 1), and columns in which they are estimated.

    If `determined`, they are of slopes alone, and of how far trials of a response agree.
    """
    mean, precision = np.zeros(free.shape), np.zeros(free.shape)
    estimated: tuple[tuple[int, ...], ...] = ()
    agree = np.array([name == "beta_binomial" for name in models])
    chosen = free[:, 0] & ~shared
    if chosen.any():
        mean[chosen, 0], precision[chosen, 0] = ASINH_SLOPE_PRIOR.mean, ASINH_SLOPE_PRIOR.sd**-2
        estimated += ((0,),)
    if not determined:
        if free[:, 1].any():
            mean[:, 1], precision[:, 1] = INTERCEPT_PRIOR.mean, INTERCEPT_PRIOR.sd**-2
            estimated += ((1,),)
        nominal = np.array([MODELS[name].family.name == "nominal" for name in models])
        shares = np.isin(models, OF_SHARES)
        precision[:, 2:] = np.where(nominal, OPTION_SD, STEP_SD)[:, None] ** -2.0
        for column, prior in enumerate(OTHERS_OF_SHARES[: free.shape[1] - 2], 2):
            mean[shares, column], precision[shares, column] = prior.mean, prior.sd**-2
        others = tuple(column for column in range(2, free.shape[1]) if free[:, column].any())
        if others and shares.all():
            estimated += tuple((column,) for column in others)
        elif others and not shares.any() and not agree.any() and not steps_in_common:
            estimated += _of_steps(tuple(range(2, free.shape[1])), bool(nominal.all()))
        precision[:, steps_in_common] = 0.0
    if agree.any():  # responses hardly tell a large precision from an infinite one
        mean[agree, 2], precision[agree, 2] = OF_AGREEMENT.mean, OF_AGREEMENT.sd**-2
        estimated += ((2,),) if agree.all() else ()
    return mean, np.where(free, precision, 0.0), estimated


def _of_steps(others: tuple[int, ...], nominal: bool) -> tuple[tuple[int, ...], ...]:
    """Columns whose priors are estimated, with one standard deviation; of categories without order slopes apart."""
    half = len(others) // 2
    return (others[:half], others[half:]) if nominal else (others,)


def _thresholds_determined(responses: OnScales, models: Sequence[str], free: Bool[np.ndarray, " I"]) -> float:
    """Share of the variance of thresholds of free items, 0 to 1, that responses determine."""
    if not free.any():
        return 1.0
    responses, models = responses.choose_items(free), np.array(models)[free].tolist()
    right, total = kinds.successes(responses, models)
    categories = np.array([scale.labels is not None for scale in responses.scales])
    if categories.any():
        some = responses.choose_items(categories)
        counts = some.frequencies()
        above = counts[:, ::-1].cumsum(axis=1)[:, ::-1]
        every = np.broadcast_to(above[:, :1], above[:, 1:].shape)
        own = np.arange(1, counts.shape[1]) <= np.array([scale.top for scale in some.scales])[:, None]
        right, total = np.concatenate([right, above[:, 1:][own]]), np.concatenate([total, every[own]])
    return intercepts_determined(right, total)


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
    if dims > 1 and shared.any():
        name = models[int(np.argmax(shared))]
        raise InputError(
            f"dims {dims} needs items with slopes of their own, such as graded: those of the {name} have one dimension"
        )
    if dims > 1 and nominal.any() and not nominal.all():
        raise InputError(f"dims {dims}: items of the nominal model go with no others: fit them on their own")
    steps = np.array([one.common_steps for one in listed])
    if steps.any() and not (steps.all() and np.ptp(top) == 0):
        raise InputError(
            "rsm needs all items on one scale, of which every item uses every category, and no other model"
        )
    free = np.zeros((len(models), dims + 1 + size), bool)
    free[:, :dims], free[:, dims] = ~nominal[:, None], ~nominal
    for item in range(dims - 1):
        free[item, item + 1 : dims] = False
    if dims > 1 and nominal.all():
        width = size // (dims + 1)
        own = np.tile(np.arange(width) < top[:, None], dims + 1)
        free[:, dims + 1 :] = own & ~NominalInDimensions(dims).fixes_rotation(top, width)
        return free, shared, ()
    places = np.arange(size)
    in_order = (
        places < np.array([one.family.num_others(k) for one, k in zip(listed, top.tolist(), strict=True)])[:, None]
    )
    of_categories = (places % max(size // 2, 1) < top[:, None]) & (places < 2 * (size // 2))
    free[:, dims + 1 :] = np.where(nominal[:, None], of_categories, in_order)
    return free, shared, tuple(range(dims + 1, dims + int(top.max()))) if steps.any() else ()


def _start(
    responses: OnScales,
    model: Families,
    free: Bool[np.ndarray, "I K"],
    steps_in_common: tuple[int, ...],
    top: Int[np.ndarray, " I"],
    ends: Bool[np.ndarray, "I 2"],
) -> PredictorParameters:
    """Slopes of 1, and what the frequencies of the categories, counts and shares say of the rest."""
    slope = start_slopes(free, free.shape[1] - num_others(model) - 1)
    dims = slope.shape[1]
    intercept, others = np.zeros(len(free)), np.zeros((len(free), free.shape[1] - dims - 1))
    for family, group in model.groups(len(free)):
        values, trials = responses.columns(group) if family.name != "nominal" else (responses.categories(group), None)
        intercept[group], others[group] = family.start(values, trials, top[group], others.shape[1])
        if family is ORDERED_BETA:
            others[group] = without_ends(others[group], ends[group])
    for column in steps_in_common:
        others[:, column - dims - 1] = others[:, column - dims - 1].mean()
    return PredictorParameters(slope, intercept, others, top)
