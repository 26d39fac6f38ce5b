"""The scale of ability that anchors set: items on another one, and the step to where anchors fit best.

A change of scale is an origin o and a log unit t: abilities θ become θ exp(t) + o.
"""

from typing import Any

from irtjax.estimation.item_step import priors_of
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


def by_scale_of_priors(
    items: Items, specification: Specification, estimated: bool | AnyArray = True
) -> tuple[Float[AnyArray, "2"], Float[AnyArray, "2 2"]]:
    """Gradient and information in origin and log unit of the priors of free items, which move with these (D = 1).

    Args:
        items: where they are.
        specification: what is free; priors.
        estimated: whether those that can be are estimated: these leave the scale to the anchors, and are left out.
    """
    array, moves = as_array(items), _moves(items, specification)
    xp, prior = array.__array_namespace__(), priors_of(array, specification)
    columns = [k for group in specification.estimated for k in group]
    can_be = xp.asarray([k in columns for k in range(array.shape[1])])
    counts = xp.where(can_be & xp.asarray(estimated), 0.0, 1.0)[None, :]
    return (
        xp.einsum("ik,ikc->c", counts * prior.gradient, moves),
        xp.einsum("ik,ikc,ikd->cd", counts * prior.information, moves, moves),
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
    """Origin and log unit after a Newton step from 0, each of at most a half; the unit stays where no slope is free."""
    xp = gradient.__array_namespace__()
    if not specification.free_slopes:  # the items would not follow
        by_origin = gradient[0] / (information[0, 0] * (1 + 1e-6))
        return xp.clip(xp.stack([by_origin, xp.zeros_like(by_origin)]), -MOST_CHANGE, MOST_CHANGE)
    # of a single subject anchors tell one of the two
    regular = information + 1e-6 * xp.trace(information) * xp.eye(2, dtype=information.dtype)
    return xp.clip(xp.linalg.solve(regular, gradient), -MOST_CHANGE, MOST_CHANGE)


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
