"""The scale of ability that anchors set: items on another one, and the step to where anchors fit best.

A change of scale is an origin o and a log unit t: abilities θ become θ exp(t) + o.
"""

import dataclasses
from typing import Any

from irtjax.estimation.empirical_priors import bounded, has_own, line
from irtjax.estimation.item_step import priors_of
from irtjax.estimation.priors import to_prior_scale
from irtjax.estimation.problem import Specification, as_array
from irtjax.item_models.protocol import Items, PredictorParameters
from irtjax.types import AnyArray, Float

MOST_CHANGE = 0.5  # logits of an origin, or of a log unit, in one step


def anchors_only(items: Items, specification: Specification) -> Any:
    """The items with all slopes set to 0 except those of anchors, so that only anchors inform about abilities."""
    xp = items.slope.__array_namespace__()
    free = xp.asarray(specification.free).any(axis=1)[:, None]
    return items._replace(slope=xp.where(free, 0.0, items.slope))


def categories_alone(specification: Specification) -> AnyArray:
    """Which items (I,) have slopes and intercepts of categories, and none of their own (`item_models.nominal`)."""
    own = specification.dims + 1
    xp = specification.free.__array_namespace__()
    return xp.logical_and(~specification.free[:, :own].any(axis=1), specification.free[:, own:].any(axis=1))


def given_alone(specification: Specification, estimated: bool | AnyArray = True) -> Specification:
    """The specification without the priors that are estimated, if they are by now: these leave the scale to anchors."""
    precision = specification.prior_precision
    xp, columns = precision.__array_namespace__(), [k for group in specification.estimated for k in group]
    can_be = xp.asarray([k in columns for k in range(precision.shape[1])])
    left = xp.where(can_be & xp.asarray(estimated), 0.0, precision)
    return dataclasses.replace(specification, prior_precision=left)


def following(specification: Specification, items: Items, there: Items) -> Specification:
    """The estimated priors (D = 1) moved along with items that go `there`, as far as these go together.

    A prior of intercepts, whose mean is a line in the slope, moves by the line through what the intercepts move by.
    """
    (before, _), (after, _) = (to_prior_scale(as_array(one), specification.asinh_slopes) for one in (items, there))
    xp = before.__array_namespace__()
    means = [xp.asarray(specification.prior_mean, dtype=before.dtype)[:, k] for k in range(before.shape[1])]
    for column in (column for group in specification.estimated for column in group):
        own = has_own(specification, column)
        change = xp.where(own, after[:, column] - before[:, column], 0.0)
        x = bounded(items.slope[:, 0], own) if column == specification.dims else xp.zeros_like(change)
        means[column] = means[column] + xp.where(own, line(x, change, own), 0.0)
    return dataclasses.replace(specification, prior_mean=xp.stack(means, axis=1))


def by_scale_of_priors(
    items: Items, specification: Specification
) -> tuple[Float[AnyArray, "2"], Float[AnyArray, "2 2"]]:
    """Gradient and information in origin and log unit of the priors of free items, which move with these (D = 1)."""
    array, moves = as_array(items), _moves(items, specification)
    xp, prior = array.__array_namespace__(), priors_of(array, specification)
    return (
        xp.einsum("ik,ikc->c", prior.gradient, moves),
        xp.einsum("ik,ikc,ikd->cd", prior.information, moves, moves),
    )


def _moves(items: Items, specification: Specification) -> Float[AnyArray, "I K 2"]:
    """Derivatives of all parameters in the origin and the log unit of `on_scale`."""
    xp, slope = items.slope.__array_namespace__(), items.slope[:, 0]
    free = xp.asarray(specification.free)
    none = xp.zeros(free[:, 2:].shape, dtype=slope.dtype)
    by_origin = by_unit = none
    if isinstance(items, PredictorParameters):
        half, alone = none.shape[1] // 2, categories_alone(specification)[:, None]
        slopes = xp.where(alone, items.others[:, :half], 0.0)
        rest = none[:, 2 * half :]
        by_origin = xp.concatenate([none[:, :half], -slopes, rest], axis=1)
        by_unit = xp.concatenate([-slopes, none[:, :half], rest], axis=1)
    zero = xp.zeros_like(slope)
    of_origin = xp.stack([zero, xp.where(free[:, 1], -slope, 0.0)], axis=1)
    of_unit = xp.stack([xp.where(free[:, 0], -slope, 0.0), zero], axis=1)
    return xp.stack(
        [xp.concatenate([of_origin, by_origin], axis=1), xp.concatenate([of_unit, by_unit], axis=1)], axis=2
    )


def newton_change(
    gradient: Float[AnyArray, "2"], information: Float[AnyArray, "2 2"], specification: Specification
) -> Float[AnyArray, "2"]:
    """Origin and log unit after a Newton step from 0, each of at most a half; the unit stays where no slope is free.

    Anchors that tell nothing move nothing.
    """
    xp = gradient.__array_namespace__()
    if not specification.free_slopes:  # the items would not follow
        gradient, information = (
            gradient * xp.asarray([1.0, 0.0]),
            information[0, 0] * xp.eye(2, dtype=information.dtype),
        )
    # of a single subject anchors tell one of the two
    (first, cross), (_, second) = information + 1e-6 * xp.trace(information) * xp.eye(2, dtype=information.dtype)
    determinant = first * second - cross**2
    change = xp.stack([second * gradient[0] - cross * gradient[1], first * gradient[1] - cross * gradient[0]])
    change = xp.where(determinant > 0, change / xp.where(determinant > 0, determinant, 1.0), 0.0)
    return xp.clip(change, -MOST_CHANGE, MOST_CHANGE)


def on_scale(items: Items, change: Float[AnyArray, "2"], specification: Specification) -> Any:
    """The free items (D = 1) for abilities θ exp(t) + o, with `change` (o, t): their probabilities stay."""
    xp = items.slope.__array_namespace__()
    origin, unit = change[0], xp.exp(change[1])
    slope = xp.where(specification.free[:, :1], items.slope / unit, items.slope)
    intercept = xp.where(specification.free[:, 1], items.intercept - slope[:, 0] * origin, items.intercept)
    moved = items._replace(slope=slope, intercept=intercept)
    return with_categories(moved, -origin / unit, 1 / unit, specification)


def with_categories(
    items: Items, origin: AnyArray | float, unit: AnyArray | float, specification: Specification
) -> Any:
    """Slopes and intercepts of categories for abilities (θ - origin) / unit; those of the items are so already."""
    if not isinstance(items, PredictorParameters) or specification.dims > 1:
        return items
    xp = items.others.__array_namespace__()
    alone, others = categories_alone(specification)[:, None], items.others
    half = others.shape[1] // 2
    slopes, intercepts = others[:, :half], others[:, half : 2 * half]
    parts = [unit * slopes, intercepts + origin * slopes, others[:, 2 * half :]]
    return items._replace(
        intercept=xp.where(alone[:, 0], 0.0, items.intercept),
        others=xp.where(alone, xp.concatenate(parts, axis=1), others),
    )
