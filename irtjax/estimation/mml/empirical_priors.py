"""Normal priors of item parameters, their means and standard deviations estimated from the items (empirical Bayes).

With few subjects, the errors of the items bend the scale of ability, however many items there are: a slope that came
out too steep by chance is taken at its word. The distribution of thousands of items is known well, and a prior equal to
it undoes the bias.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.estimation.mml.item_step import as_array, scoring_step, solve
from irtjax.estimation.parameterization import Specification
from irtjax.kernels.models import ItemParameters
from irtjax.types import Float

LEAST_SD, MOST_SD = 0.05, 2.0  # of a prior; equal slopes would draw it to 0, and with it every step
MOST_CHANGE = 1.0  # of a mean in one step
TINY = 1e-6  # where responses determine nothing, a prior stays where it is


def reestimate(
    items: ItemParameters,
    gradient: Float[jax.Array, "I K"],
    information: Float[jax.Array, "I K K"],
    specification: Specification,
) -> Specification:
    """One step towards the means and standard deviations under which the responses are likeliest (MacKay 1992).

    With V the posterior variance of a parameter x under the prior N(m, s²), 1 - V/s² is the share of x that the
    responses determine: m = mean x and s² = Σ (x - m)² / Σ (1 - V/s²), sums over items. Slopes of D dimensions have a
    mean each and share s, so that a rotation changes nothing.

    Args:
        items: I items.
        gradient: (I, K) of the log-likelihood.
        information: (I, K, K) of each item; like the gradient without priors.
        specification: which priors are estimated (`estimated`), and their present values.
    """
    size = information.shape[1]
    # where the items would go under the present priors: otherwise items and priors would chase each other
    array = (as_array(items) + scoring_step(items, gradient, information, specification))[:, :size]
    free = jnp.asarray(specification.free)[:, :size]
    own = free.at[:, 0].set(free[:, 0] & ~jnp.asarray(specification.shared))
    prior_mean, prior_precision = (
        jnp.asarray(leaf, array.dtype) for leaf in (specification.prior_mean, specification.prior_precision)
    )
    unit = jnp.eye(size, dtype=array.dtype)
    penalised = jnp.where(own[:, :, None] & own[:, None, :], information, 0.0)
    penalised = penalised + jnp.where(own, prior_precision[:, :size] + TINY, 1.0)[:, :, None] * unit[None]
    for group in specification.estimated:
        columns = np.array(group)
        variance = jnp.stack([solve(penalised, jnp.broadcast_to(unit[k], array.shape))[:, k] for k in group], axis=1)
        chosen = own[:, columns]
        usable = chosen & jnp.isfinite(array[:, columns]) & jnp.isfinite(variance)  # one may run off to infinity
        determined = jnp.where(usable, 1 - variance * prior_precision[:, columns], 0.0).sum(axis=0)
        distance = jnp.where(usable, array[:, columns] - prior_mean[:, columns], 0.0)
        change = distance.sum(axis=0) / (determined + TINY)
        mean = prior_mean[:, columns] + jnp.clip(change, -MOST_CHANGE, MOST_CHANGE)[None, :]
        squares = jnp.where(usable, (array[:, columns] - mean) ** 2, 0.0).sum()
        precision = 1 / jnp.clip(squares / (determined.sum() + TINY), LEAST_SD**2, MOST_SD**2)
        prior_mean = prior_mean.at[:, columns].set(jnp.where(chosen, mean, prior_mean[:, columns]))
        prior_precision = prior_precision.at[:, columns].set(jnp.where(chosen, precision, prior_precision[:, columns]))
    return dataclasses.replace(specification, prior_mean=prior_mean, prior_precision=prior_precision)


def summary(specification: Specification) -> dict[str, Any]:
    """Mean and standard deviation of every prior but those of single items, for `fit.json`."""
    dims = specification.dims
    free, mean, precision = (
        np.array(leaf) for leaf in (specification.free, specification.prior_mean, specification.prior_precision)
    )
    precision[np.asarray(specification.shared), 0] *= np.sum(specification.shared)  # each item has its share of it
    names = [f"discrimination_{k + 1}" if dims > 1 else "discrimination" for k in range(dims)]
    columns = dict(zip([*names, "logit_guessing", "logit_upper"], [*range(dims), dims + 1, dims + 2], strict=True))
    priors = {}
    for name, column in columns.items():
        chosen = np.flatnonzero(free[:, column] & (precision[:, column] > 0))
        if chosen.size:
            first = chosen[0], column
            priors[name] = {"mean": float(mean[first]), "sd": float(precision[first] ** -0.5)}
    return priors
