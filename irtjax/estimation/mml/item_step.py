"""Fisher-scoring steps for the parameters of all items, given gradients and information.

NumPy arrays give NumPy arrays, without compilation; JAX arrays are for compiled functions.
"""

from collections.abc import Callable

import numpy as np

from irtjax.estimation.parameterization import Specification
from irtjax.kernels.models import ItemParameters
from irtjax.types import AnyArray, Float

STEP_FRACTIONS = (1.0, 0.5, 0.25, 0.1)
MAX_CHANGE = 1.0  # of any parameter in one step: a first step from afar must not overshoot into a flat region


def as_array(items: ItemParameters) -> Float[AnyArray, "I K"]:
    """(I, D + 3): slopes, intercept, lower, upper."""
    xp = items.slope.__array_namespace__()
    return xp.concatenate([items.slope, *(leaf[:, None] for leaf in items[1:])], axis=1)


def as_items(array: Float[AnyArray, "I K"]) -> ItemParameters:
    """The inverse of `as_array`."""
    dims = array.shape[1] - 3
    return ItemParameters(array[:, :dims], array[:, dims], array[:, dims + 1], array[:, dims + 2])


def scoring_step(
    items: ItemParameters,
    gradient: Float[AnyArray, "I K"],
    information: Float[AnyArray, "I K K"],
    specification: Specification,
) -> Float[AnyArray, "I all_parameters"]:
    """The change information⁻¹ gradient of the free parameters, priors included, each at most `MAX_CHANGE`.

    Items are independent given the abilities, but for the slope that 1PL items share: it is stepped by its Schur
    complement over the items' own parameters, so that the joint step is exact.

    Args:
        items: where the step begins.
        gradient: (I, K) of the log-likelihood, K = D + 3, or D + 1 where no item has asymptotes.
        information: (I, K, K) expected information.
        specification: what is free and shared; priors.

    Returns:
        (I, D + 3).
    """
    xp, num_parameters = gradient.__array_namespace__(), gradient.shape[1]
    array = as_array(items)[:, :num_parameters]
    identity = xp.eye(num_parameters, dtype=array.dtype)[None]
    precision = xp.asarray(specification.prior_precision, dtype=array.dtype)[:, :num_parameters]
    gradient = gradient - precision * _distance(array, specification)
    information = information + precision[:, :, None] * identity

    shared, free = xp.asarray(specification.shared), xp.asarray(specification.free)[:, :num_parameters]
    own = free & ~(shared[:, None] & (xp.arange(num_parameters) == 0)[None, :])
    own_gradient = xp.where(own, gradient, 0.0)
    own_information = xp.where(own[:, :, None] & own[:, None, :], information, 0.0)
    # a unit diagonal where nothing is free, and a trace of one where nothing is known, keep the systems regular
    tiny = xp.finfo(array.dtype).eps * (1 + xp.abs(information).max(axis=(1, 2)))
    own_information = own_information + xp.where(own, tiny[:, None], 1.0)[:, :, None] * identity
    step = solve(own_information, own_gradient)

    if specification.has_shared:
        weight = shared.astype(array.dtype)
        coupling = xp.where(own, information[:, :, 0], 0.0) * weight[:, None]
        response = solve(own_information, coupling)
        rest = (weight * gradient[:, 0] - (coupling * step).sum(1)).sum()
        curvature = (weight * information[:, 0, 0] - (coupling * response).sum(1)).sum()
        # of a unit change of the common slope: its own, and the response of the others
        step = step + rest / curvature * (weight[:, None] * identity[0, :1] - response)

    step = xp.where(free, step, 0.0)
    # a long step is shortened as a whole: cut parameter by parameter it might no longer lead uphill
    factor = xp.minimum(1.0, MAX_CHANGE / xp.maximum(xp.abs(step).max(axis=1), MAX_CHANGE))
    if specification.has_shared:
        factor = xp.where(shared, xp.where(shared, factor, 1.0).min(), factor)
    none = xp.zeros((step.shape[0], items.slope.shape[1] + 3 - num_parameters), dtype=step.dtype)
    return xp.concatenate([factor[:, None] * step, none], axis=1)


def solve(matrices: Float[AnyArray, "I K K"], vectors: Float[AnyArray, "I K"]) -> Float[AnyArray, "I K"]:
    """Solves positive definite systems (I, K, K), (I, K) by elimination, all I at once: K is at most D + 3."""
    size = vectors.shape[1]
    xp = vectors.__array_namespace__()
    rows = [xp.concatenate([matrices[:, k], vectors[:, k : k + 1]], axis=1) for k in range(size)]
    for k in range(size):
        for below in range(k + 1, size):
            rows[below] = rows[below] - (rows[below][:, k] / rows[k][:, k])[:, None] * rows[k]
    solution: dict[int, AnyArray] = {}
    for k in reversed(range(size)):
        known = sum((rows[k][:, later] * solution[later] for later in range(k + 1, size)), 0.0)
        solution[k] = (rows[k][:, size] - known) / rows[k][:, k]
    return xp.stack([solution[k] for k in range(size)], axis=1)


def best_step(
    items: ItemParameters,
    steps: Float[AnyArray, "S I K"],
    objective: Callable[[ItemParameters], AnyArray],
    specification: Specification,
) -> ItemParameters:
    """Makes the step, or none, that raises each item's own objective most.

    Expected information can be far below the observed one in the 3PL and 4PL, and a whole step then overshoots, again
    and again. Items that share a slope make the same step.

    Args:
        items: where the steps begin.
        steps: (S, I, D + 3), such as fractions of one from `scoring_step`.
        objective: of all items, (I,).
        specification: says which items share a slope.
    """
    tried = candidates(items, steps)
    return best_of(tried, np.stack([objective(as_items(one)) for one in tried]), specification)


def candidates(items: ItemParameters, steps: Float[AnyArray, "S I K"]) -> Float[AnyArray, "S+1 I K"]:
    """(S + 1, I, D + 3): where each of the steps (S, I, D + 3) leads, and last where it begins."""
    array = as_array(items)[None]
    xp = array.__array_namespace__()
    return xp.concatenate([xp.where(steps == 0, array, array + steps), array])  # held ones are infinite


def best_of(
    tried: Float[AnyArray, "C I K"], values: Float[AnyArray, "C I"], specification: Specification
) -> ItemParameters:
    """Of the candidates (S + 1, I, D + 3) the best of each item by its objective (S + 1, I)."""
    xp = values.__array_namespace__()
    if specification.has_shared:
        shared = xp.asarray(specification.shared)[None, :]
        values = xp.where(shared, xp.where(shared, values, 0.0).sum(axis=1, keepdims=True), values)
    best = xp.argmax(xp.where(xp.isnan(values), -xp.inf, values), axis=0)  # an item may run off to infinity
    return as_items(xp.take_along_axis(tried, best[None, :, None], axis=0)[0])


def fractions(step: Float[AnyArray, "I K"]) -> Float[AnyArray, "S I K"]:
    """Fractions of a step, for `best_step`."""
    return step.__array_namespace__().stack([part * step for part in STEP_FRACTIONS])


def log_prior(items: ItemParameters, specification: Specification) -> Float[AnyArray, " I"]:
    """Log-density (I,) of the normal priors of each item, up to a constant."""
    distance = _distance(as_array(items), specification)
    xp = distance.__array_namespace__()
    return -0.5 * (xp.asarray(specification.prior_precision, dtype=distance.dtype) * distance**2).sum(axis=1)


def _distance(array: AnyArray, specification: Specification) -> AnyArray:
    # an asymptote that does not exist is infinite; it has no prior, but 0 · inf would be NaN
    xp, width = array.__array_namespace__(), array.shape[1]
    has_prior = xp.asarray(specification.prior_precision)[:, :width] > 0
    return xp.where(has_prior, array - xp.asarray(specification.prior_mean, dtype=array.dtype)[:, :width], 0.0)


def fold_population(
    items: ItemParameters,
    mean: Float[AnyArray, " D"],
    sd: Float[AnyArray, " D"],
    specification: Specification,
    *,
    expand: bool,
) -> tuple[ItemParameters, Float[AnyArray, " D"], Float[AnyArray, " D"]]:
    """Brings the population back to mean 0 and standard deviation 1 where the specification says so.

    θ = mean + sd θ' leaves every probability as it is with slope' = slope sd, intercept' = intercept + slope mean.
    Estimating the population in the M-step and folding it into the items is the parameter expansion of Liu, Rubin and
    Wu (1998): the maximum of EM, in a fraction of its iterations. On nodes that end at ±6 the equality holds to about
    1e-4 of a slope only; without `expand` what was found is dropped instead, which is EM itself.
    """
    slope, intercept = items.slope, items.intercept
    xp = slope.__array_namespace__()
    if specification.fold_mean:
        intercept = xp.where(expand, intercept + slope @ mean, intercept)
        mean = xp.zeros_like(mean)
    if specification.fold_sd:
        # a slope that is held must not wander off with the unit, fold by fold
        free = xp.asarray(specification.free)[:, : slope.shape[1]]
        slope = xp.where(expand & free, slope * sd[None, :], slope)
        sd = xp.ones_like(sd)
    return items._replace(slope=slope, intercept=intercept), mean, sd
