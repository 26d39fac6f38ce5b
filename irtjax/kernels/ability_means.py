"""The mean of the posterior of an ability (EAP), by nodes that are laid where the posterior is, or by shared ones."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from irtjax.kernels.ability import Ability, log_posterior, on_scale, rescaled, scale_of
from irtjax.kernels.ability_modes import ability_mode
from irtjax.kernels.elimination import inverse
from irtjax.kernels.loops import at_once
from irtjax.kernels.models import ItemParameters, log_probabilities
from irtjax.kernels.precision import in_full_precision
from irtjax.kernels.quadrature import STANDARD_NODES, of_posterior_mean
from irtjax.populations.normal import STANDARD, Population
from irtjax.types import AnyArray, Float, Int

WIDE = 8.0  # standard deviations of the population in which a posterior is looked for at first
NOTHING = 30.0  # nats below the highest at which a density does not count
EDGE = 2.0  # slope times the distance of nodes
MAX_STEPS = 100  # of intervals tried
PASSES = 3  # of nodes around a posterior
LEAST_VARIANCE = 1e-12  # of a posterior, in variances of the population
MOST_OWN_NODES = 961
BLOCK_SUBJECTS = 1024  # of shared nodes
BLOCK_ITEMS = 256


@in_full_precision
def ability_eap(
    responses: Int[AnyArray, " I"],
    items: ItemParameters,
    population: Population = STANDARD,
    num_nodes: int = STANDARD_NODES,
) -> Ability:
    """Expected a posteriori ability of one subject (Bock and Mislevy 1982), and its posterior standard deviation.

    In one dimension the posterior is integrated over equally spaced nodes, laid anew until they hold all of it and at
    least a third of them fall within it. In more, over nodes around its mode, which are laid anew by the mean and
    the covariance that they find (Naylor and Smith 1982).

    Args:
        responses: (I,) integers; 1 right, 0 wrong, negative missing.
        items: parameters of the I items.
        population: the same for each dimension.
        num_nodes: for D = 1; `nodes_for` says how many steep curves need, and where shared nodes are needed instead.
    """
    dims, dtype = items.slope.shape[1], items.slope.dtype
    centre, unit = scale_of(items, population)
    objective, slope_and_information = log_posterior(responses, rescaled(items, centre, unit), True)
    if dims == 1:
        z, error = _mean_on_a_line(lambda nodes: objective(nodes[:, None]), num_nodes, dtype)
        return on_scale(z[None], error[None], centre, unit)
    nodes = jnp.asarray(of_posterior_mean(dims).nodes, dtype)
    z = (ability_mode(responses, items, population).ability - centre) / unit
    covariance = inverse(slope_and_information(z)[1])
    for _ in range(PASSES):
        around = z[None, :] + nodes @ jnp.linalg.cholesky(covariance + LEAST_VARIANCE * jnp.eye(dims, dtype=dtype)).T
        weights = jax.nn.softmax(objective(around))
        z = weights @ around
        away = around - z[None, :]
        covariance = (weights[:, None] * away).T @ away
    return on_scale(z, jnp.sqrt(jnp.diagonal(covariance)), centre, unit)


class _LineSearch(NamedTuple):
    """An interval, the moments of the density by nodes in it, whether it will do, and the number of steps."""

    centre: jax.Array
    half: jax.Array
    mean: jax.Array
    sd: jax.Array
    done: jax.Array
    steps: jax.Array


def nodes_for(steepest: float) -> int | None:
    """Nodes for `ability_eap` where curves have slopes up to `steepest`, in standard deviations of the population.

    Where the answers leave the ability open between steep curves, the posterior has edges as steep as they are. The
    trapezoidal rule integrates a logistic curve of slope a with a relative error of about exp(-2π²/(a h)) (Trefethen
    and Weideman 2014): here 1e-4, up to slopes of 120.

    Returns:
        Their number; None if a posterior may be so wide beside its edges that nodes of equal distance are too many:
        `shared_eap` has others.
    """
    needed = 2 * WIDE * steepest / EDGE
    return next((n for n in (STANDARD_NODES, 241, MOST_OWN_NODES) if needed < n), None)


@in_full_precision
def shared_eap(
    responses: Int[AnyArray, "J I"],
    items: ItemParameters,
    nodes: Float[AnyArray, " Q"],
    log_weights: Float[AnyArray, " Q"],
) -> Ability:
    """Expected a posteriori abilities of J subjects (Bock and Mislevy 1982), by nodes that all of them share, D = 1.

    Args:
        responses: (J, I) integers; 1 right, 0 wrong, negative missing.
        items: parameters of the I items.
        nodes: (Q,) that resolve every posterior (`irtjax.kernels.ability_nodes.line_nodes`).
        log_weights: (Q,) of the population.

    Returns:
        Posterior means (J,) and standard deviations (J,).
    """
    num_subjects, num_items = responses.shape
    block = min(BLOCK_ITEMS, max(num_items, 1))
    more = -num_items % block
    blocks = jax.tree.map(
        lambda leaf: jnp.pad(leaf, ((0, more), *((0, 0),) * (leaf.ndim - 1))).reshape(-1, block, *leaf.shape[1:]), items
    )

    def of_some(rows: jax.Array) -> Ability:
        def add(total: jax.Array, part: tuple[ItemParameters, jax.Array]) -> tuple[jax.Array, None]:
            of_items, answers = part
            log_p, log_q, _ = log_probabilities(of_items, nodes[:, None])
            right, wrong = ((answers == y).astype(log_p.dtype) for y in (1, 0))
            return total + right @ log_p.T + wrong @ log_q.T, None

        rows = jnp.pad(rows, ((0, 0), (0, more)), constant_values=-1)
        answers = rows.reshape(len(rows), -1, block).transpose(1, 0, 2)
        start = jnp.broadcast_to(log_weights[None, :], (len(rows), log_weights.size))
        weights = jax.nn.softmax(jax.lax.scan(add, start, (blocks, answers))[0], axis=1)
        mean = weights @ nodes
        return Ability(mean, jnp.sqrt((weights * (nodes[None, :] - mean[:, None]) ** 2).sum(axis=1)))

    size = min(at_once(BLOCK_SUBJECTS, max(block, nodes.size)), num_subjects)
    filled = jnp.pad(responses, ((0, -num_subjects % size), (0, 0)), constant_values=-1)
    found = jax.lax.map(of_some, filled.reshape(-1, size, num_items))
    return jax.tree.map(lambda leaf: leaf.reshape(-1)[:num_subjects], found)


def _mean_on_a_line(
    objective: Callable[[jax.Array], jax.Array], num_nodes: int, dtype: jnp.dtype
) -> tuple[jax.Array, jax.Array]:
    """Mean and standard deviation of a density exp(objective) that falls at least as fast as a normal one of sd 1."""
    line, places = jnp.linspace(-1, 1, num_nodes, dtype=dtype), jnp.arange(num_nodes)

    def step(search: _LineSearch) -> _LineSearch:
        centre, half, *_, count = search
        nodes = centre + half * line
        value = objective(nodes)
        inside = value > value.max() - NOTHING
        weights = jax.nn.softmax(value)
        mean = weights @ nodes
        sd = jnp.sqrt(weights @ (nodes - mean) ** 2)
        first, last = jnp.where(inside, places, num_nodes).min(), jnp.where(inside, places, -1).max()
        cut = (first == 0) | (last == num_nodes - 1)
        low, high = nodes[jnp.maximum(first - 1, 0)], nodes[jnp.minimum(last + 1, num_nodes - 1)]
        centre = jnp.where(cut, nodes[jnp.argmax(value)], (low + high) / 2)
        half = jnp.where(cut, 2 * half, (high - low) / 2)
        done = ~cut & (last - first >= num_nodes // 3)
        return _LineSearch(centre, half, mean, sd, done, count + 1)

    zero = jnp.zeros((), dtype)
    start = _LineSearch(zero, jnp.asarray(WIDE, dtype), zero, zero, jnp.asarray(False), jnp.zeros((), jnp.int32))
    end = jax.lax.while_loop(lambda search: ~search.done & (search.steps < MAX_STEPS), step, start)
    return end.mean, end.sd
