"""Newton steps of the abilities of all subjects, given the items."""

import functools

import jax
import jax.numpy as jnp

from irtjax.estimation.normal.damping import Damping, damp
from irtjax.estimation.normal.scale import LatentScale, project_out_scale, standardize
from irtjax.estimation.problem import Specification
from irtjax.integration.normal_posterior import Posterior
from irtjax.kernels.precision import in_full_precision
from irtjax.types import AnyArray, Float

MOST_CHANGE = 1.0  # of an ability in one step


@functools.partial(jax.jit, static_argnames="asymptotes")
@in_full_precision
def ability_step(
    state: LatentScale,
    sums: tuple[jax.Array, jax.Array],
    damping: Damping,
    weight: jax.Array,
    specification: Specification,
    *,
    asymptotes: bool,
) -> tuple[Posterior, Damping, Float[jax.Array, "J D D"]]:
    """Posteriors moved towards their modes, but for what the scale would take back (`ability_scale.project_out_scale`).

    Args:
        state: where the step begins; its population is the prior.
        sums: gradients (J, D) and curvatures (J, D, D) of the log-likelihood, from `expectations.subject_sums`.
        damping: of the steps before.
        weight: (J,) 1 for a subject, 0 for padding.
        specification: how the scale is fixed.
        asymptotes: whether the log-likelihood need not be concave.

    Returns:
        Moved posteriors, their damping, and the precisions (J, D, D) they moved by.
    """
    move, covariance, precisions = _newton_step(state, sums, asymptotes)
    damping, made = damp(damping, project_out_scale(move, state.posterior.mean, weight, specification))
    return Posterior(state.posterior.mean + made, covariance), damping, precisions


@functools.partial(jax.jit, static_argnames="asymptotes")
@in_full_precision
def settled(
    state: LatentScale,
    sums: tuple[jax.Array, jax.Array],
    weight: jax.Array,
    specification: Specification,
    *,
    asymptotes: bool,
) -> LatentScale:
    """Abilities at their modes given the items, and the scale then fixed anew; arguments as for `ability_step`.

    Where iterations end, priors of slopes have left the abilities off their modes by a common unit.
    """
    move, covariance, _ = _newton_step(state, sums, asymptotes)
    mean = state.posterior.mean
    return standardize(state._replace(posterior=Posterior(mean + move, covariance)), mean, weight, specification)


def _newton_step(
    state: LatentScale, sums: tuple[jax.Array, jax.Array], asymptotes: bool
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Moves (J, D) towards the modes, each ability by at most one logit, and covariances and precisions (J, D, D)."""
    posterior, mean, sd = state.posterior, state.mean, state.sd
    slope, curvature = sums
    if asymptotes:
        curvature = not_negative(curvature)
    slope = slope - (posterior.mean - mean[None, :]) * (sd**-2)[None, :]
    precisions = curvature + jnp.diag(sd**-2)[None]
    covariance = jnp.linalg.inv(precisions) if precisions.shape[1] > 1 else 1 / precisions
    move = jnp.einsum("jkl,jl->jk", covariance, slope)
    move = move * jnp.minimum(1.0, MOST_CHANGE / jnp.maximum(jnp.abs(move).max(axis=1), MOST_CHANGE))[:, None]
    return move, covariance, precisions


def not_negative(matrices: AnyArray) -> jax.Array:
    """Symmetric matrices (J, D, D) with their negative eigenvalues set to 0."""
    if matrices.shape[1] == 1:
        return jnp.maximum(matrices, 0)
    values, vectors = jnp.linalg.eigh(matrices)
    return jnp.einsum("jkm,jm,jlm->jkl", vectors, jnp.maximum(values, 0), vectors)
