"""Fisher-scoring steps for the parameters of all items, given gradients and information.

NumPy arrays give NumPy arrays, without compilation; JAX arrays are for compiled functions.
"""

from irtjax.estimation.priors import PriorTerms, prior_terms
from irtjax.estimation.problem import Specification, as_array, as_items
from irtjax.item_models.protocol import Items
from irtjax.kernels.elimination import solve
from irtjax.kernels.models import ItemParameters
from irtjax.types import AnyArray, Float

MAX_CHANGE = 1.0  # of any parameter in one step: a first step from afar must not overshoot into a flat region


def scoring_step(
    items: Items,
    gradient: Float[AnyArray, "I K"],
    information: Float[AnyArray, "I K K"],
    specification: Specification,
) -> Float[AnyArray, "I all_parameters"]:
    """The change information⁻¹ gradient of the free parameters, priors included, each at most `MAX_CHANGE`.

    Items are independent given the abilities, but for the slope that 1PL items share: it is stepped by its Schur
    complement over the items' own parameters, so that the joint step is exact.

    Args:
        items: where the step begins.
        gradient: (I, K) of the log-likelihood, K = D + 1 where no item has others.
        information: (I, K, K) expected information.
        specification: what is free and shared; priors.

    Returns:
        (I, K), 0 for the others where the gradient leaves them out.
    """
    xp, num_parameters = gradient.__array_namespace__(), gradient.shape[1]
    prior = priors_of(as_array(items)[:, :num_parameters], specification)
    identity = xp.eye(num_parameters, dtype=gradient.dtype)[None]
    step = natural_step(
        gradient + prior.gradient, information + prior.information[:, :, None] * identity, specification
    )
    # a long step is shortened as a whole: cut parameter by parameter it might no longer lead uphill
    factor = xp.minimum(1.0, MAX_CHANGE / xp.maximum(xp.abs(step).max(axis=1), MAX_CHANGE))
    if specification.has_shared:
        shared = xp.asarray(specification.shared)
        factor = xp.where(shared, xp.where(shared, factor, 1.0).min(), factor)
    none = xp.zeros((step.shape[0], specification.free.shape[1] - num_parameters), dtype=step.dtype)
    return xp.concatenate([factor[:, None] * step, none], axis=1)


def natural_step(
    gradient: Float[AnyArray, "I K"], information: Float[AnyArray, "I K K"], specification: Specification
) -> Float[AnyArray, "I K"]:
    """The change information⁻¹ gradient of the free parameters, 0 for those held; arguments hold priors already.

    Of the gradient in a parameter that items have in common only the sum over these counts.
    """
    xp, num_parameters = gradient.__array_namespace__(), gradient.shape[1]
    identity = xp.eye(num_parameters, dtype=gradient.dtype)[None]
    free = xp.asarray(specification.free)[:, :num_parameters]
    common = [(column, xp.asarray(items)) for column, items in specification.common if column < num_parameters]
    own = free
    for column, items in common:
        own = own & ~(items[:, None] & (xp.arange(num_parameters) == column)[None, :])
    own_gradient = xp.where(own, gradient, 0.0)
    own_information = xp.where(own[:, :, None] & own[:, None, :], information, 0.0)
    # a unit diagonal where nothing is free, and a trace of one where nothing is known, keep the systems regular
    tiny = xp.finfo(gradient.dtype).eps * (1 + xp.abs(information).max(axis=(1, 2)))
    own_information = own_information + xp.where(own, tiny[:, None], 1.0)[:, :, None] * identity
    step = solve(own_information, own_gradient)

    if common:
        weights = [(k, items.astype(gradient.dtype)) for k, items in common]
        couplings = [xp.where(own, information[:, :, k], 0.0) * weight[:, None] for k, weight in weights]
        responses = [solve(own_information, coupling) for coupling in couplings]
        rest = [
            (weight * gradient[:, k] - (coupling * step).sum(1)).sum()
            for (k, weight), coupling in zip(weights, couplings, strict=True)
        ]
        curvature = [
            [
                (weight * other * information[:, k, n] - (coupling * response).sum(1)).sum()
                for (n, other), response in zip(weights, responses, strict=True)
            ]
            for (k, weight), coupling in zip(weights, couplings, strict=True)
        ]
        for at in range(len(specification.tied_columns) and len(common)):
            curvature[at][at] = curvature[at][at] + (weights[at][1].sum() == 0)  # all of them held
        changes = solve(xp.stack([xp.stack(row) for row in curvature])[None], xp.stack(rest)[None])[0]
        for at, (k, weight) in enumerate(weights):
            # of a unit change of what is in common: its own, and the response of the others
            step = step + changes[at] * (weight[:, None] * identity[0, k : k + 1] - responses[at])

    return xp.where(free, step, 0.0)


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


def priors_of(array: Float[AnyArray, "I K"], specification: Specification) -> PriorTerms:
    """What the priors of the first K parameters of each item add to its log-likelihood and derivatives."""
    return prior_terms(array, specification.prior_mean, specification.prior_precision, specification.asinh_slopes)


def log_prior(items: Items, specification: Specification) -> Float[AnyArray, " I"]:
    """Log-density (I,) of the priors of each item, up to a constant."""
    return priors_of(as_array(items), specification).log_density
