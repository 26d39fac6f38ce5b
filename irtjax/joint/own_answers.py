"""Difficulties of training items from the answers of the network that learns them, after each of its epochs.

Each epoch is a subject, as Lalor (2020, 8.2.3) proposes: what a network answers right from its first epoch on is easy,
what it never does is hard. No crowd is needed.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.kernels.precision import in_full_precision
from irtjax.kernels.quadrature import of_test
from irtjax.training.data import classify
from irtjax.training.loop import Learner, Plan
from irtjax.training.mixture import Mixture, Problem
from irtjax.types import Float, Int

MOST_ITERATIONS = 1000  # of EM
TOLERANCE = 1e-5  # of the last change of an ability and of log a
MOST_SPREAD = 20.0  # logits; items that are never forgotten have none that is finite
LONGEST_STEP = 1.0  # of Newton's method, in logits
PRIOR_OF_LOG_SPREAD = 0.5  # standard deviation, around 0; after one epoch nothing else tells how far items are spread


class Answered(NamedTuple):
    """How a network answered its N training items after each of at most E epochs.

    Attributes:
        score: (N,) epochs after which the answer was right.
        right: (E,) items that were right after each epoch; 0 for those to come.
    """

    score: Int[jax.Array, " N"]
    right: Float[jax.Array, " E"]


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


@in_full_precision
def own_difficulties(answered: Answered) -> OwnDifficulties:
    r"""Posteriors of the items' difficulties under the Rasch model, by marginal maximum likelihood over the items.

    .. math:: P(x_{ei} = 1) = \sigma(\theta_e - b_i), \qquad b_i \sim N(0, a^2), \qquad \log a \sim N(0, 1/4)

    The items are a random sample here, and the epochs' abilities are estimated with a, by EM (Bock and Aitkin 1981)
    with one step of Newton's method in each iteration. The number of epochs with a right answer is sufficient for an
    item, so that an iteration costs as much as E + 1 items, whatever N. Epochs after which all items are right, or
    none, tell no item from another: their abilities would be infinite, and they are left out. a is 20 logits at most:
    where every item stays right once it is, nothing bounds it, while difficulties in units of a hardly change.

    Args:
        answered: what is known.
    """
    most = answered.right.size
    quadrature = of_test(most)
    z = jnp.asarray(quadrature.nodes.T, jnp.float32)  # (1, Q)
    log_weights = jnp.asarray(quadrature.log_weights[None], jnp.float32)
    all_right = answered.right == answered.score.size
    told = (~all_right & (answered.right > 0)).astype(jnp.float32)
    score = answered.score - all_right.sum()
    scores = jnp.arange(most + 1, dtype=jnp.float32)
    count = jnp.bincount(score, length=most + 1).astype(jnp.float32)

    def curves(theta: jax.Array, a: jax.Array) -> jax.Array:
        return theta[:, None] - a * z  # (E, Q)

    def posterior(theta: jax.Array, a: jax.Array) -> jax.Array:
        """(E + 1, Q) weights of the nodes, for each score."""
        of_node = told @ jax.nn.softplus(curves(theta, a))
        return jax.nn.softmax(log_weights - a * z * scores[:, None] - of_node[None], axis=1)

    def iteration(state: Any) -> Any:
        number, theta, log_a, _ = state
        a = jnp.exp(log_a)
        weights = posterior(theta, a)
        of_node, right_by_z = count @ weights, (count * scores) @ (weights @ z[0])
        p = told[:, None] * jax.nn.sigmoid(curves(theta, a))
        spread = p * (1 - p)
        theta_step = (told * answered.right - p @ of_node) / jnp.maximum(spread @ of_node, 1e-6)
        slope = a * ((p @ (of_node * z[0])).sum() - right_by_z) - log_a / PRIOR_OF_LOG_SPREAD**2
        curvature = a**2 * (spread @ (of_node * z[0] ** 2)).sum() + 1 / PRIOR_OF_LOG_SPREAD**2
        steps = jnp.clip(jnp.append(theta_step, slope / curvature), -LONGEST_STEP, LONGEST_STEP)
        moved = theta + steps[:-1], jnp.minimum(log_a + steps[-1], np.log(MOST_SPREAD))
        change = jnp.maximum(jnp.abs(moved[0] - theta).max(), jnp.abs(moved[1] - log_a))
        return number + 1, *moved, change

    def goes_on(state: Any) -> jax.Array:
        return (state[0] < MOST_ITERATIONS) & (state[-1] > TOLERANCE)

    share = jnp.where(told > 0, answered.right / answered.score.size, 0.5)
    start = jnp.int32(0), jnp.log(share / (1 - share)), jnp.float32(0), jnp.float32(jnp.inf)
    _, theta, log_a, _ = jax.lax.while_loop(goes_on, iteration, start)
    a = jnp.exp(log_a)
    weights = posterior(theta, a)
    mean = weights @ z[0]
    sd = jnp.sqrt((weights * (z - mean[:, None]) ** 2).sum(1))
    return OwnDifficulties((a * mean)[score], (a * sd)[score], a)


@dataclasses.dataclass(frozen=True)
class LearnsFromItself(Mixture):
    """A pass over the training items for each epoch, with targets from the network's own answers after those before.

    There is one stream. It has labels (N, 2), the class and λ; `irtjax.joint.model.joint_loss` sees (N, 4), with
    posteriors in standard deviations of the population: 0 and 1 before there are answers. In those of the posterior
    means, which are close together at first, the second part of the loss would be far the larger, and trainings would
    break down. The program leaves `OwnDifficulties` of all epochs.
    """

    def begin(self, problem: Problem, keys: jax.Array) -> tuple[Learner, Answered]:
        """Networks of some keys, which have answered nothing."""
        learners, _ = super().begin(problem, keys)
        count, items = keys.shape[0], problem.streams[0].labels.shape[0]
        return learners, Answered(jnp.zeros((count, items), jnp.int32), jnp.zeros((count, self.trainer.max_epochs)))

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
            return Answered(answered.score + right, answered.right.at[epoch].add(right.sum()))

        return trained, accuracies, jax.vmap(answer)(trained.parameters, learners.epoch, memory, active)

    def end(
        self, problem: Problem, learners: Learner, memory: Answered
    ) -> tuple[jax.Array, jax.Array, dict[str, Any], OwnDifficulties]:
        """As of a mixture, and the difficulties by all epochs."""
        found = super().end(problem, learners, memory)
        return (*found[:3], jax.vmap(own_difficulties)(memory))
