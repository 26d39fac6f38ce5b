"""Standard errors: the observed information of the marginal likelihood, inverted."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.inference.fixed_nodes import Answers, State
from irtjax.inference.item_step import as_array, as_items, log_prior
from irtjax.inference.quadrature import Quadrature
from irtjax.inference.specification import Specification
from irtjax.models import probabilities

BATCH = 16  # columns of the Hessian at once: bounds the memory


def parameter_index(specification: Specification) -> np.ndarray:
    """Position (I, K) of every parameter in the vector of free ones, -1 where it is held; shared slopes have one."""
    free = np.asarray(specification.free)
    index = np.full(free.shape, -1)
    own = free.copy()
    own[:, 0] &= ~np.asarray(specification.shared)
    index[own] = np.arange(own.sum())
    if specification.has_shared:
        index[np.asarray(specification.shared), 0] = own.sum()
    return index


def num_parameters(specification: Specification) -> int:
    """Free parameters: of the items, and of the population where it is not fixed."""
    population = specification.dims * (int(not specification.fold_mean) + int(not specification.fold_sd))
    return int(parameter_index(specification).max()) + 1 + population


def item_covariances(
    state: State, answers: Answers, quadrature: Quadrature, specification: Specification
) -> np.ndarray:
    """Covariance matrices (I, K, K) of the estimates of each item; 0 where a parameter is held.

    They are blocks of the inverse of the observed information -∂²/∂φ² of marginal log-likelihood and log-prior over
    all free parameters φ, population included, by automatic differentiation. NaN where it cannot be inverted, which
    says that the data do not identify the model.
    """
    index = parameter_index(specification)
    hessian = _hessian(state, answers, quadrature, specification, jnp.asarray(index), num_parameters(specification))
    information = -np.asarray(hessian)
    try:
        covariance = np.linalg.inv(information)
        if (np.diag(covariance) <= 0).any():
            covariance = np.full_like(information, np.nan)
    except np.linalg.LinAlgError:
        covariance = np.full_like(information, np.nan)
    blocks = covariance[index[:, :, None], index[:, None, :]]
    held = index < 0
    return np.where(held[:, :, None] | held[:, None, :], 0.0, blocks)


@functools.partial(jax.jit, static_argnums=5)
def _hessian(state, answers, quadrature, specification, index, size):
    gradient = jax.grad(_objective(state, answers, quadrature, specification, index))
    at = jnp.zeros(size, state.mean.dtype)
    return jax.lax.map(
        lambda direction: jax.jvp(gradient, (at,), (direction,))[1], jnp.eye(size, dtype=at.dtype), batch_size=BATCH
    )


def _objective(state, answers, quadrature, specification, index) -> Callable[[jax.Array], jax.Array]:
    """The penalised marginal log-likelihood of a change of the free parameters."""
    dims = specification.dims

    def objective(change):
        of_items = jnp.where(index >= 0, change[jnp.maximum(index, 0)], 0.0)
        # an asymptote that does not exist is infinite: adding to it would make its derivative NaN
        array = jnp.asarray(as_array(state.items))
        items = as_items(jnp.where(index >= 0, jnp.where(index >= 0, array, 0.0) + of_items, array))
        mean, sd, at = state.mean, state.sd, change.shape[0]
        if not specification.fold_sd:
            sd, at = sd * jnp.exp(change[at - dims : at]), at - dims
        if not specification.fold_mean:
            mean = mean + change[at - dims : at]
        changed = State(items, mean, sd)
        return _log_likelihood(changed, answers, quadrature) + log_prior(items, specification).sum()

    return objective


def _log_likelihood(state, answers, quadrature) -> jax.Array:
    """Marginal log-likelihood of all answers, in nats."""
    p, q = probabilities(state.items, state.mean[None, :] + state.sd[None, :] * quadrature.nodes)
    log_p, log_q = (jnp.log(jnp.maximum(x, 1e-300)) for x in (p, q))
    observed = jnp.ones_like(answers.right) if answers.observed is None else answers.observed
    joint = answers.right @ log_p.T + (observed - answers.right) @ log_q.T + quadrature.log_weights[None, :]
    return jax.nn.logsumexp(joint, axis=1).sum()
