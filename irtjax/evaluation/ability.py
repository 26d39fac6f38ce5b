"""The ability of a subject in the course of an adaptive test, by the items asked so far."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from irtjax.evaluation.bank_tables import Tables, mode_nearby
from irtjax.evaluation.choice import highest
from irtjax.kernels.ability import Ability
from irtjax.kernels.ability_means import ability_eap
from irtjax.kernels.ability_modes import ability_mode
from irtjax.kernels.models import ItemParameters, log_probabilities
from irtjax.kernels.precision import in_full_precision
from irtjax.populations.normal import Population
from irtjax.types import AnyArray, Float, Int

FLAT = 1e-4  # nats that tell a maximum from rounding


def on_line(
    method: str,
    tables: Tables,
    population: Population,
    log_prior: Float[AnyArray, " Q"],
    log_posterior: Float[AnyArray, " Q"],
    items: Int[AnyArray, " K"],
    answers: Int[AnyArray, " K"],
) -> Ability:
    """Ability and standard error, D = 1: moments of the posterior, or the maximum next to the best of the nodes.

    Args:
        method: "eap"; "map"; or "ml", which is the EAP where the likelihood is as high at an end of the nodes.
        tables: of the bank.
        population: the density that the nodes have weights of.
        log_prior: (Q,) of the nodes.
        log_posterior: (Q,) of the nodes, normalised.
        items: (K,) that were asked.
        answers: (K,) 1 right, 0 wrong, negative none.

    Returns:
        Scalars. The standard error is the posterior standard deviation, or from the expected information at the mode
        [plus 1/σ²], as in `irtjax.kernels.ability_modes`.
    """
    nodes, expected = tables.nodes, Ability(*moments(log_posterior, tables.nodes))
    if method == "eap":
        return expected
    curves = jax.tree.map(lambda leaf: leaf[items], tables.curves)
    if method == "map":
        best, precision = highest(log_posterior), jnp.asarray(population.sd) ** -2.0
        return Ability(*mode_nearby(curves, answers, nodes[best], _gap(tables, best), population.mean, precision))
    log_likelihood = log_posterior - log_prior
    best = highest(log_likelihood)
    likely = Ability(*mode_nearby(curves, answers, nodes[best], _gap(tables, best)))
    # of steep curves the likelihood is flat, not rising, to where nothing holds it back
    inside = log_likelihood.max() > jnp.maximum(log_likelihood[0], log_likelihood[-1]) + FLAT
    return jax.tree.map(lambda a, b: jnp.where(inside, a, b), likely, expected)


def _gap(tables: Tables, place: jax.Array) -> jax.Array:
    """Distance of a node from the farther one of its neighbours."""
    nodes = tables.nodes
    if not tables.edges.size:
        return nodes[1] - nodes[0]
    gaps = jnp.diff(nodes)
    return jnp.maximum(gaps[jnp.maximum(place - 1, 0)], gaps[jnp.minimum(place, gaps.size - 1)])


def in_space(method: str, asked: ItemParameters, population: Population, answers: Int[AnyArray, " K"]) -> Ability:
    """Ability and standard error (D,), by the kernels; "ml" is the MAP where it is not finite.

    Args:
        method: "eap", "map" or "ml".
        asked: parameters of the K items that were asked.
        population: the same for each dimension.
        answers: (K,) to them: 1 right, 0 wrong, negative none.
    """
    if method == "eap":
        return ability_eap(answers, asked, population)
    mode = ability_mode(answers, asked, population)
    if method == "map":
        return mode
    likely = ability_mode(answers, asked)
    known = jnp.isfinite(likely.ability).all() & jnp.isfinite(likely.standard_error).all()
    return jax.tree.map(lambda a, b: jnp.where(known, a, b), likely, mode)


@in_full_precision
def precision_at(
    ability: Float[AnyArray, " D"], asked: ItemParameters, population: Population, answers: Int[AnyArray, " K"]
) -> Float[jax.Array, "D D"]:
    """Information of the items that were asked, at an ability, and of the population."""
    log_p, log_q, by_logit = (x[0] for x in log_probabilities(asked, ability[None, :]))
    weight = jnp.where(answers >= 0, jnp.exp(2 * by_logit - log_p - log_q), 0)
    prior = jnp.eye(ability.size, dtype=ability.dtype) * jnp.asarray(population.sd) ** -2.0
    return jnp.einsum("i,ik,il->kl", weight, asked.slope, asked.slope) + prior


class Unseen(NamedTuple):
    """What the items without an answer add to the number right at each node of ability, (Q,) each.

    Attributes:
        expected: Σ P.
        noise: Σ P (1 - P).
    """

    expected: jax.Array
    noise: jax.Array

    def without(
        self, right: Float[AnyArray, "K Q"], wrong: Float[AnyArray, "K Q"], number: Int[AnyArray, ""]
    ) -> "Unseen":
        """After some items were answered, of P and 1 - P (0 for no answer), when `number` are left.

        Differences of sums are rounded, and a sum of probabilities is never below 0 or above their number.
        """
        return Unseen(
            expected=jnp.clip(self.expected - right.sum(axis=0), 0, number),
            noise=jnp.maximum(self.noise - (right * wrong).sum(axis=0), 0),
        )


@in_full_precision
def share_right(
    log_posterior: Float[AnyArray, " Q"], right: Int[AnyArray, ""], unseen: Unseen, num_items: int
) -> tuple[jax.Array, jax.Array]:
    """Posterior mean and standard deviation of the share right over the whole bank; NaN without nodes.

    Given the ability, unseen answers are independent: the share T = (right + Σ_unseen Y_i)/I has the mean
    (right + Σ P_i)/I and the variance Σ P_i (1 - P_i)/I², both over the unseen items.

    Args:
        log_posterior: (Q,) of the nodes, normalised.
        right: number of right answers so far.
        unseen: of the other items.
        num_items: I.
    """
    mean, sd = moments(log_posterior, unseen.expected)
    noise = (jnp.exp(log_posterior) * unseen.noise).sum()
    return (jnp.asarray(right) + mean) / num_items, jnp.sqrt(sd**2 + noise) / num_items


@in_full_precision
def moments(log_posterior: Float[AnyArray, " Q"], values: Float[AnyArray, " Q"]) -> tuple[jax.Array, jax.Array]:
    """Posterior mean and standard deviation of a function of the ability, given at the nodes; NaN without nodes.

    The mean is that of the differences from the value at the highest node, so that it is as exact far from 0, and lies
    between the least and the largest value.
    """
    if not values.size:
        nothing = jnp.full((), jnp.nan, values.dtype)
        return nothing, nothing
    weights = jnp.exp(log_posterior)
    weights /= weights.sum()
    origin = values[highest(log_posterior)]
    # sums of products, which XLA fuses on a CPU, in place of products of vectors
    mean = origin + (weights * (values - origin)).sum()
    mean = jnp.clip(mean, values.min(), values.max())  # rounding may lead out
    return mean, jnp.sqrt((weights * (values - mean) ** 2).sum())
