"""Difficulties of training items from the answers of the network that learns them, after each of its epochs.

Each epoch is a subject, as Lalor (2020, 8.2.3) proposes: what a network answers right from its first epoch on is easy,
what it never does is hard. No crowd is needed.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from irtjax.kernels.quadrature import rectangular
from irtjax.training.data import classify
from irtjax.training.loop import Learner, Plan
from irtjax.training.mixture import Mixture, Problem
from irtjax.types import Float, Int

ITERATIONS = 200  # of EM
LONGEST_STEP = 1.0  # of Newton's method, in logits
PRIOR_OF_LOG_SPREAD = 0.5  # standard deviation, around 0; after one epoch nothing else tells how far items are spread


class Answered(NamedTuple):
    """How a network answered its N training items after each of at most E epochs.

    Attributes:
        score: (N,) epochs after which the answer was right.
        right: (E,) items that were right after each epoch; 0 for those to come.
        epochs: scalar, how many there were.
    """

    score: Int[jax.Array, " N"]
    right: Float[jax.Array, " E"]
    epochs: Int[jax.Array, ""]


class OwnDifficulties(NamedTuple):
    """Posteriors of the difficulties of N items under a population N(0, spread²), by one network or by S, in logits.

    Their standard deviations are too small: epochs of one network are no independent subjects.

    Attributes:
        mean, sd: (N,) or (S, N) of the posterior of each.
        spread: scalar or (S,), the standard deviation of the population.
    """

    mean: Float[jax.Array, "..."]
    sd: Float[jax.Array, "..."]
    spread: Float[jax.Array, "..."]


def own_difficulties(answered: Answered) -> OwnDifficulties:
    r"""Posteriors of the items' difficulties under the Rasch model, by marginal maximum likelihood over the items.

    .. math:: P(x_{ei} = 1) = \sigma(\theta_e - b_i), \qquad b_i \sim N(0, a^2), \qquad \log a \sim N(0, 1/4)

    The items are a random sample here, and the epochs' abilities are estimated with a, by EM (Bock and Aitkin 1981)
    with one step of Newton's method in each iteration. The number of right answers is sufficient for an item, so that
    an iteration costs as much as E + 1 items, whatever N.

    Args:
        answered: what is known.
    """
    most = answered.right.size
    quadrature = rectangular()
    z = jnp.asarray(quadrature.nodes.T, jnp.float32)  # (1, Q)
    log_weights = jnp.asarray(quadrature.log_weights[None], jnp.float32)
    scores = jnp.arange(most + 1, dtype=jnp.float32)
    count = jnp.bincount(answered.score, length=most + 1).astype(jnp.float32)
    number = count.sum()
    told = (jnp.arange(most) < answered.epochs).astype(jnp.float32)[:, None]
    right = jnp.clip(answered.right, 0.5, number - 0.5)  # an ability is finite where all, or no, items are right

    def posterior(theta: jax.Array, a: jax.Array) -> jax.Array:
        """(E + 1, Q) weights of the nodes, for each score."""
        of_node = (told * jax.nn.softplus(theta[:, None] - a * z)).sum(0, keepdims=True)
        return jax.nn.softmax(log_weights - a * z * scores[:, None] - of_node, axis=1)

    def iteration(_: int, at: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        theta, log_a = at
        a = jnp.exp(log_a)
        weights = posterior(theta, a)
        of_node, right_by_z = count @ weights, (count * scores) @ (weights @ z[0])
        p = told * jax.nn.sigmoid(theta[:, None] - a * z)
        spread = told * p * (1 - p)
        ability_step = (right - p @ of_node) / jnp.maximum(spread @ of_node, 1e-6)
        slope = a * ((p @ (of_node * z[0])).sum() - right_by_z) - log_a / PRIOR_OF_LOG_SPREAD**2
        curvature = a**2 * (spread @ (of_node * z[0] ** 2)).sum() + 1 / PRIOR_OF_LOG_SPREAD**2
        step = jnp.clip(slope / curvature, -LONGEST_STEP, LONGEST_STEP)
        return theta + jnp.clip(ability_step, -LONGEST_STEP, LONGEST_STEP), log_a + step

    start = jnp.log(right / (number - right)), jnp.float32(0)
    theta, log_a = jax.lax.fori_loop(0, ITERATIONS, iteration, start)
    a = jnp.exp(log_a)
    weights = posterior(theta, a)
    mean = weights @ z[0]
    sd = jnp.sqrt((weights * (z - mean[:, None]) ** 2).sum(1))
    return OwnDifficulties((a * mean)[answered.score], (a * sd)[answered.score], a)


@dataclasses.dataclass(frozen=True)
class LearnsFromItself(Mixture):
    """A pass over the training items for each epoch, with targets from the network's own answers after those before.

    The stream has labels (N, 2), the class and λ; `irtjax.joint.model.joint_loss` sees (N, 4), with posteriors in
    standard deviations of the population: 0 and 1 before there are answers. In those of the posterior means, which are
    close together at first, the second part of the loss would be far the larger, and trainings would break down. The
    program leaves `OwnDifficulties` of all epochs.
    """

    def begin(self, problem: Problem, keys: jax.Array) -> tuple[Learner, Answered]:
        """Networks of some keys, which have answered nothing."""
        learners, _ = super().begin(problem, keys)
        count, items = keys.shape[0], problem.streams[0].labels.shape[0]
        blank = jnp.zeros((count, items), jnp.int32), jnp.zeros((count, self.trainer.max_epochs))
        return learners, Answered(*blank, jnp.zeros(count, jnp.int32))

    def plans(self, problem: Problem, learners: Learner, memory: Answered) -> tuple[Plan, ...]:
        """Of each network, with its own targets."""
        (plan,) = super().plans(problem, learners, memory)

        def targets(labels: jax.Array, answered: Answered) -> jax.Array:
            found = own_difficulties(answered)
            return jnp.stack([labels[:, 0], found.mean / found.spread, found.sd / found.spread, labels[:, 1]], axis=1)

        return (plan._replace(labels=jax.vmap(targets)(jnp.asarray(plan.labels), memory)),)

    def epoch(
        self, problem: Problem, learners: Learner, memory: Answered, active: jax.Array
    ) -> tuple[Learner, jax.Array, Answered]:
        """A pass, and the answers to all training items after it."""
        trained, accuracies, _ = super().epoch(problem, learners, memory, active)

        def answer(parameters: Any, epoch: jax.Array, answered: Answered, is_active: jax.Array) -> Answered:
            found = classify(self.network, parameters, problem.data.embeddings, problem.data.train)
            right = (found == problem.data.train.labels) & is_active
            by_epoch = answered.right.at[epoch].add(right.sum())
            return Answered(answered.score + right, by_epoch, answered.epochs + is_active)

        return trained, accuracies, jax.vmap(answer)(trained.parameters, learners.epoch, memory, active)

    def end(
        self, problem: Problem, learners: Learner, memory: Answered
    ) -> tuple[jax.Array, jax.Array, dict[str, Any], OwnDifficulties]:
        """As of a mixture, and the difficulties by all epochs."""
        found = super().end(problem, learners, memory)
        return (*found[:3], jax.vmap(own_difficulties)(memory))
