"""A network with two heads: the classes of an item, and its difficulty."""

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax

from irtjax import networks
from irtjax.networks import Network
from irtjax.tasks import Task
from irtjax.types import Float

OF_DIFFICULTY = 2  # outputs beyond the classes: f and log τ
MOST_LOG_SD = 3.0  # of log τ, in either direction


def two_heads(name: str, task: Task, width: int) -> Network:
    """The network called `name`, whose last layer has outputs for the C classes, for f and for log τ: (B, C + 2)."""
    more = tuple(f"difficulty {at}" for at in range(OF_DIFFICULTY))
    return networks.build(name, dataclasses.replace(task, classes=(*task.classes, *more)), width)


@functools.cache
def class_head(network: Network, num_classes: int) -> Network:
    """The first head alone: (B, C) logits."""
    return Network(network.init, lambda *arguments: network.logits(*arguments)[..., :num_classes])


def predicted_difficulty(outputs: Float[jax.Array, "B K"], num_classes: int) -> tuple[jax.Array, jax.Array]:
    """Means f (B,) and standard deviations τ (B,) of difficulties, in standard deviations of the training items'."""
    raw = outputs[..., num_classes + 1]
    return outputs[..., num_classes], jnp.exp(MOST_LOG_SD * jnp.tanh(raw / MOST_LOG_SD))


@functools.cache
def joint_loss(num_classes: int) -> Callable[[jax.Array, jax.Array], jax.Array]:
    r"""The loss of a minibatch, from outputs (B, C + 2) and targets (B, 4): label y, m, s and λ.

    .. math::
        \frac{1}{B} \sum_i \Big[ -\log \hat p_i(y_i)
            + \lambda \Big( \log \tau_i + \frac{(m_i - f_i)^2 + s_i^2}{2 \tau_i^2} \Big) \Big]

    The second term is what the evidence lower bound (ELBO) of the crowd's answers has to say of the network. Under
    answers by the 1PL and b_i ~ N(f(x_i), τ(x_i)²) that bound is

    .. math:: \sum_i \mathbb{E}_{q_i} \log p(y_{\cdot i} | \theta, b_i) - KL(q_i \| N(f_i, \tau_i^2)),

    and with q_i = N(m_i, s_i²), the posterior that variational inference found from the answers, only the KL depends on
    the network: it is the term above, less the entropy of q_i. q is not revised: answers of hundreds of networks
    outweigh any prior of an item. f and τ are in standard deviations of m.
    """

    def loss(outputs: jax.Array, targets: jax.Array) -> jax.Array:
        labels, m, s, weight = jnp.moveaxis(targets, -1, 0)
        entropy = optax.softmax_cross_entropy_with_integer_labels(outputs[:, :num_classes], labels.astype(jnp.int32))
        f, tau = predicted_difficulty(outputs, num_classes)
        return (entropy + weight * (jnp.log(tau) + ((m - f) ** 2 + s**2) / (2 * tau**2))).mean()

    return loss
