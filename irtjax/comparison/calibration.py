"""Parameters of new items, from subjects whose abilities are known from other items."""

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.integration.posteriors import LEAST_PROBABILITY
from irtjax.kernels.models import ItemParameters, derivatives, probabilities
from irtjax.kernels.quadrature import gauss_hermite
from irtjax.responses.matrix import MISSING
from irtjax.responses.padded_rows import padded_rows
from irtjax.responses.sparse import SparseResponses
from irtjax.types import Float, Int

Search = tuple[jax.Array, jax.Array, jax.Array, jax.Array]  # parameters, objective, its last gain, number of steps

NODES = {1: 7, 2: 5, 3: 3}  # per dimension, of a normal posterior; 3 in more dimensions
MOST_STEPS = 100
SAME = 1e-9  # relative spread below which a parameter is one for all items
SHORTER = (1.0, 0.5, 0.25, 0.0625, 0.0)  # shares of a step


def calibrate(
    values: Int[np.ndarray, "J I"],
    mean: Float[np.ndarray, "J D"],
    covariance: Float[np.ndarray, "J D D"],
    known: ItemParameters,
) -> ItemParameters:
    """Posterior modes of the parameters of I new items, abilities having normal posteriors from known items.

    An item's parameters x maximise

        Σ_j log ∫ P_x(y_j | θ) N(θ; mean_j, covariance_j) dθ + Σ_k log N(x_k; m_k, s_k²),

    the prior of each parameter having the middle and the spread of the known items: their median, and half of the
    distance between their 16% and 84% quantiles, which single steep items do not move. A parameter that is the same for
    all known items, as is the slope of the 1PL, is held at that value. By Fisher scoring on Gauss-Hermite nodes.

    Args:
        values: responses to the new items; 1 right, 0 wrong, -1 missing.
        mean: of the subjects' abilities.
        covariance: of the subjects' abilities.
        known: items of the same model, from which the abilities are known.
    """
    dims = mean.shape[1]
    centre, spread = _prior(known)
    z, log_weights = gauss_hermite(NODES.get(dims, 3), dims)
    theta = mean[:, None, :] + np.einsum("jkl,ql->jqk", np.linalg.cholesky(covariance), z)
    with jax.enable_x64(True):
        found = np.asarray(_calibrate(np.ascontiguousarray(values.T), theta, log_weights, centre, spread))
    return _as_items(found)


def calibrate_by_answer(
    responses: SparseResponses,
    mean: Float[np.ndarray, "J D"],
    covariance: Float[np.ndarray, "J D D"],
    known: ItemParameters,
) -> ItemParameters:
    """As `calibrate`, each item by the subjects who answered it; items with about as many answers share a program.

    Args:
        responses: to the new items.
        mean: of the subjects' abilities.
        covariance: of the subjects' abilities.
        known: items of the same model, from which the abilities are known.
    """
    dims, by_item = mean.shape[1], responses.transposed()
    centre, spread = _prior(known)
    z, log_weights = gauss_hermite(NODES.get(dims, 3), dims)
    away = np.einsum("jkl,ql->jqk", np.linalg.cholesky(covariance), z)
    found = np.empty((by_item.num_subjects, dims + 3))
    for rows, places, answers in padded_rows(by_item):
        theta = mean[places][:, :, None, :] + away[places]
        with jax.enable_x64(True):
            found[rows] = np.asarray(_calibrate_each(answers, theta, log_weights, centre, spread))[: len(rows)]
    return _as_items(found)


def _prior(known: ItemParameters) -> tuple[np.ndarray, np.ndarray]:
    """The middle and the spread of each parameter of known items."""
    table = np.concatenate([np.asarray(leaf, float).reshape(len(known.intercept), -1) for leaf in known], axis=1)
    return _middle_and_spread(table)


def _as_items(found: np.ndarray) -> ItemParameters:
    dims = found.shape[1] - 3
    return ItemParameters(found[:, :dims], found[:, dims], found[:, dims + 1], found[:, dims + 2])


def _middle_and_spread(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each column; a spread of 0 says that the parameter is held."""
    columns = [column[np.isfinite(column)] if np.isfinite(column).any() else column[:1] for column in table.T]
    low, centre, high = np.array([np.quantile(column, [0.16, 0.5, 0.84], method="lower") for column in columns]).T
    with np.errstate(invalid="ignore"):
        spread = np.where(np.isfinite(centre), (high - low) / 2, 0.0)
        return centre, np.where(spread > SAME * np.abs(centre), spread, 0.0)


@jax.jit
def _calibrate(
    values: jax.Array, theta: jax.Array, log_weights: jax.Array, centre: jax.Array, spread: jax.Array
) -> jax.Array:
    """Parameters (I, K) from responses (I, J), nodes (J, Q, D) of abilities and the items' distribution (K,) each."""
    return jax.lax.map(lambda y: _of_item(y, theta, log_weights, centre, spread), values)


@jax.jit
def _calibrate_each(
    values: jax.Array, theta: jax.Array, log_weights: jax.Array, centre: jax.Array, spread: jax.Array
) -> jax.Array:
    """The same, where nodes (I, J, Q, D) are of those who answered each item."""
    return jax.lax.map(lambda one: _of_item(one[0], one[1], log_weights, centre, spread), (values, theta))


def _of_item(y: jax.Array, theta: jax.Array, log_weights: jax.Array, centre: jax.Array, spread: jax.Array) -> jax.Array:
    """Parameters (K,) of an item from responses (J,)."""
    dims, num_nodes = theta.shape[2], theta.shape[1]
    nodes, y = theta.reshape(-1, dims), jnp.repeat(y, num_nodes)
    free = spread > 0
    precision = jnp.where(free, jnp.where(free, spread, 1.0) ** -2.0, 0.0)

    def as_items(x: jax.Array) -> ItemParameters:
        return ItemParameters(x[None, :dims], x[dims][None], x[dims + 1][None], x[dims + 2][None])

    def from_centre(x: jax.Array) -> jax.Array:
        return jnp.where(free, x - jnp.where(free, centre, 0.0), 0.0)  # a held asymptote is infinite

    def given(x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        p, q = (jnp.maximum(leaf[:, 0], LEAST_PROBABILITY) for leaf in probabilities(as_items(x), nodes))
        return p, q, jnp.where(y == 1, p, jnp.where(y == MISSING, 1.0, q))

    def log_joint(x: jax.Array) -> jax.Array:
        return jnp.log(given(x)[2]).reshape(-1, num_nodes) + log_weights[None, :]

    def objective(x: jax.Array) -> jax.Array:
        log_prior = -0.5 * (precision * from_centre(x) ** 2).sum()
        return jax.scipy.special.logsumexp(log_joint(x), axis=1).sum() + log_prior

    def step(carry: Search) -> Search:
        x, value, _, count = carry
        p, q, likelihood = given(x)
        posterior = jnp.where(y == MISSING, 0.0, jax.nn.softmax(log_joint(x), axis=1).ravel())
        by_x = jnp.where(free[None, :], derivatives(as_items(x), nodes)[:, 0], 0.0)
        gradient = (posterior * jnp.where(y == 1, 1.0, -1.0) / likelihood) @ by_x - precision * from_centre(x)
        weight = (posterior / (p * q))[:, None]
        information = by_x.T @ (weight * by_x) + jnp.diag(jnp.where(free, precision, 1.0))
        change = jnp.linalg.solve(information, gradient)
        candidates = x[None, :] + jnp.asarray(SHORTER)[:, None] * change[None, :]
        values = jax.lax.map(objective, candidates)
        best = jnp.argmax(values)
        return candidates[best], values[best], values[best] - value, count + 1

    def moving(carry: Search) -> jax.Array:
        return (carry[2] > 1e-7) & (carry[3] < MOST_STEPS)

    start = (centre, objective(centre), jnp.asarray(jnp.inf, theta.dtype), jnp.zeros((), jnp.int32))
    return jax.lax.while_loop(moving, step, start)[0]
