"""Newton steps of the abilities of all subjects, given the items."""

import functools

import jax
import jax.numpy as jnp

from irtjax.estimation.mml.ability_scale import State
from irtjax.estimation.mml.damping import Damping, damp
from irtjax.estimation.mml.posterior import Posterior
from irtjax.types import Float

MOST_CHANGE = 1.0  # of an ability in one step


@functools.partial(jax.jit, static_argnames="asymptotes")
def ability_step(
    state: State, sums: tuple[jax.Array, jax.Array], damping: Damping, *, asymptotes: bool
) -> tuple[Posterior, Damping, Float[jax.Array, "J D D"]]:
    """Posteriors moved towards their modes, each ability by at most one logit.

    Args:
        state: where the step begins; its population is the prior.
        sums: gradients (J, D) and curvatures (J, D, D) of the log-likelihood, from `expectations.subject_sums`.
        damping: of the steps before.
        asymptotes: whether the log-likelihood need not be concave.

    Returns:
        Moved posteriors, their damping, and the precisions (J, D, D) they moved by.
    """
    posterior, mean, sd = state.posterior, state.mean, state.sd
    slope, curvature = sums
    if asymptotes:  # the log-likelihood need not be concave then
        curvature = _not_negative(curvature)
    slope = slope - (posterior.mean - mean[None, :]) * (sd**-2)[None, :]
    precisions = curvature + jnp.diag(sd**-2)[None]
    covariance = jnp.linalg.inv(precisions) if precisions.shape[1] > 1 else 1 / precisions
    move = jnp.einsum("jkl,jl->jk", covariance, slope)
    move = move * jnp.minimum(1.0, MOST_CHANGE / jnp.maximum(jnp.abs(move).max(axis=1), MOST_CHANGE))[:, None]
    damping, move = damp(damping, move)
    return Posterior(posterior.mean + move, covariance), damping, precisions


def _not_negative(matrices: jax.Array) -> jax.Array:
    """Symmetric matrices (J, D, D) with their negative eigenvalues set to 0."""
    if matrices.shape[1] == 1:
        return jnp.maximum(matrices, 0)
    values, vectors = jnp.linalg.eigh(matrices)
    return jnp.einsum("jkm,jm,jlm->jkl", vectors, jnp.maximum(values, 0), vectors)
