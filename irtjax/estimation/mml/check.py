"""The check of normal posteriors: the marginal likelihood of some subjects by nodes around each one's own mean."""

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.estimation.mml.estimate import Estimate
from irtjax.kernels.models import ItemParameters
from irtjax.responses.matrix import MISSING
from irtjax.types import Float, Int

NODES = np.linspace(-8, 8, 49)  # in posterior standard deviations
MOST_SUBJECTS, FEWEST_SUBJECTS = 64, 8
RESPONSES = 2**22  # that the sample answered at most, unless that is less than the fewest subjects


def sampled_error(estimate: Estimate, values: Int[np.ndarray, "J I"]) -> float:
    """What exact integration would add to the log-likelihood of all subjects, by a sample of them, in nats; D = 1."""
    (num_subjects, num_items), dims = values.shape, 1
    number = min(num_subjects, max(FEWEST_SUBJECTS, min(MOST_SUBJECTS, RESPONSES // num_items)))
    rows = np.linspace(0, num_subjects - 1, number).astype(int)
    with jax.enable_x64(True):
        exact = _log_likelihoods(
            jax.tree.map(jnp.asarray, estimate.items),
            estimate.ability[rows, :dims],
            estimate.ability_se[rows, :dims],
            np.concatenate([np.asarray(leaf) for leaf in estimate.population]),
            values[rows],
        )
    return float((np.asarray(exact) - estimate.log_likelihoods[rows]).mean()) * num_subjects


@jax.jit
def _log_likelihoods(
    items: ItemParameters, mean: jax.Array, sd: jax.Array, population: jax.Array, values: jax.Array
) -> Float[jax.Array, " J"]:
    """Marginal log-likelihoods (J,) by equally spaced nodes at mean + sd z (Trefethen and Weideman 2014)."""
    lower, upper = jax.nn.sigmoid(items.lower), jax.nn.sigmoid(items.upper)
    not_upper = jax.nn.sigmoid(-items.upper)

    def of_subject(subject: tuple[jax.Array, ...]) -> jax.Array:
        mean, sd, y = subject

        def at_node(theta: jax.Array) -> jax.Array:
            logit = items.slope[:, 0] * theta + items.intercept
            right, wrong = jax.nn.log_sigmoid(logit), jax.nn.log_sigmoid(-logit)
            log_p = jnp.logaddexp(jnp.log(lower), jnp.log(upper - lower) + right)
            log_q = jnp.logaddexp(jnp.log(not_upper), jnp.log(upper - lower) + wrong)
            return jnp.where(y == MISSING, 0.0, jnp.where(y == 1, log_p, log_q)).sum()

        theta = mean[0] + sd[0] * NODES
        prior = -0.5 * ((theta - population[0]) / population[1]) ** 2 - jnp.log(population[1])
        joint = jax.lax.map(at_node, theta) + prior - 0.5 * jnp.log(2 * jnp.pi)
        return jax.nn.logsumexp(joint) + jnp.log(sd[0] * (NODES[1] - NODES[0]))

    return jax.lax.map(of_subject, (mean, sd, values))
