"""Posteriors of abilities given items, exact to about 1e-5 however narrow they are.

One grid of nodes for all subjects comes first, on which sums over items are matrix products, in float64. A subject
whose posterior is too narrow for it gets nodes of its own, which close in on the posterior until their spacing resolves
it (`irtjax.kernels.quadrature.rectangular` says why that is exact). The first grid is fine enough for slopes up to
100 in one dimension, and up to 10 in two. A steeper item is a step between two nodes: in one dimension that moves the
log-likelihood of a subject by about half a spacing over the width of its posterior.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.item_models.binary import BINARY
from irtjax.kernels.loops import mapped
from irtjax.kernels.models import ItemParameters, probabilities
from irtjax.kernels.quadrature import BOUND, rectangular
from irtjax.responses.matrix import MISSING
from irtjax.types import AnyArray, Float, Int

SHARED_NODES = {1: 1201, 2: 61, 3: 21}  # per dimension, for all subjects; 9 in more dimensions
OWN_NODES = {1: 121, 2: 25, 3: 13}  # per dimension, around one posterior; 9 in more dimensions
NEAR_NODES = {1: 25, 2: 25, 3: 13}  # around one posterior whose mean and width are nearly known
RESOLVED = 0.8  # spacings of nodes in the smallest standard deviation of a posterior
MOST_PASSES = 12
LEAST_PROBABILITY = 1e-300  # a probability that can be divided by
BLOCK_ITEMS = 256
BLOCK_NODES = 2**22  # nodes of all subjects that are held at a time

Function = Callable[[jax.Array, jax.Array], tuple[jax.Array, ...]]


class Posteriors(NamedTuple):
    """Posteriors of some subjects, as weights of nodes.

    Attributes:
        rows: (J,) positions of the subjects in the matrix.
        nodes: (Q, D), shared, or (J, Q, D), of each subject.
        weights: (J, Q), which sum to 1.
        log_likelihood: (J,) marginal, in nats.
        mean: (J, D).
        covariance: (J, D, D).
    """

    rows: np.ndarray
    nodes: np.ndarray
    weights: np.ndarray
    log_likelihood: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray

    def choose(self, chosen: np.ndarray | slice) -> "Posteriors":
        """Those of some of the subjects, by a mask or a slice."""
        nodes = self.nodes if self.nodes.ndim == 2 else self.nodes[chosen]
        others = (leaf[chosen] for leaf in (self.weights, self.log_likelihood, self.mean, self.covariance))
        return Posteriors(self.rows[chosen], nodes, *others)


def posteriors(
    items: ItemParameters,
    values: Int[np.ndarray, "J I"],
    mean: Float[np.ndarray, " D"],
    sd: Float[np.ndarray, " D"],
    near: tuple[Float[np.ndarray, "J D"], Float[np.ndarray, "J D"]] | None = None,
) -> Iterator[Posteriors]:
    """The posteriors of all subjects, in parts.

    Args:
        items: of I items in D dimensions.
        values: 1 right, 0 wrong, -1 missing.
        mean: of the population.
        sd: of the population, whose dimensions are independent.
        near: about the means of the posteriors, and about their standard deviations, where these are known.
    """
    blocks, dims = in_blocks(items), len(mean)
    if near is not None:
        centre, width = near
        frame, number = width[:, :, None] * np.eye(dims), NEAR_NODES.get(dims, 9)
        yield from close_in(np.arange(len(values)), values, blocks, mean, sd, centre, frame, number)
        return
    number_shared = SHARED_NODES.get(dims, 9)
    shared = rectangular(number_shared, dims=dims)
    step = max(1, BLOCK_NODES // len(shared.nodes))
    for at in range(0, len(values), step):
        rows = np.arange(at, min(at + step, len(values)))
        nodes = mean + sd * shared.nodes
        log_joint = _padded_call(_log_likelihoods, values[rows], blocks, nodes) + shared.log_weights
        frame = np.broadcast_to(np.diag(sd), (rows.size, dims, dims))
        centre = np.broadcast_to(mean, (rows.size, dims))
        found, frame, resolved = moments(
            rows, nodes, shared.nodes, log_joint, centre, frame, 2 * BOUND / (number_shared - 1)
        )
        if resolved.any():
            yield found.choose(resolved)
        if not resolved.all():
            wide = found.choose(~resolved)
            number = OWN_NODES.get(dims, 9)
            yield from close_in(wide.rows, values, blocks, mean, sd, wide.mean, frame[~resolved], number)


def close_in(
    rows: np.ndarray,
    values: np.ndarray,
    blocks: ItemParameters,
    mean: np.ndarray,
    sd: np.ndarray,
    centre: np.ndarray,
    frame: np.ndarray,
    number: int,
) -> Iterator[Posteriors]:
    """Posteriors on nodes of their own: centre + frame z, on a grid of z, `number` wide, that closes in on them."""
    dims = len(mean)
    spacing = 2 * BOUND / (number - 1)
    z = rectangular(number, dims=dims).nodes
    z = z[(z**2).sum(axis=1) <= BOUND**2 * (1 + 1e-9)]
    step = max(1, BLOCK_NODES // (len(z) * dims))
    for at in range(0, rows.size, step):
        part = slice(at, at + step)
        left = rows[part], centre[part], frame[part]
        for number_of_pass in range(MOST_PASSES):
            at_rows, at_centre, at_frame = left
            nodes = at_centre[:, None, :] + np.einsum("jkl,ql->jqk", at_frame, z)
            log_volume = np.linalg.slogdet(at_frame)[1] + dims * np.log(spacing)
            log_density = -0.5 * (((nodes - mean) / sd) ** 2).sum(axis=2) - np.log(sd * np.sqrt(2 * np.pi)).sum()
            log_joint = _padded_call(_log_likelihoods_at_importance_nodes, values[at_rows], blocks, nodes)
            log_joint = log_joint + log_density + log_volume[:, None]
            found, next_frame, resolved = moments(at_rows, nodes, z, log_joint, at_centre, at_frame, spacing)
            if number_of_pass == MOST_PASSES - 1:
                resolved[:] = True
            if resolved.any():
                yield found.choose(resolved)
            if resolved.all():
                break
            left = found.rows[~resolved], found.mean[~resolved], next_frame[~resolved]


def moments(
    rows: np.ndarray,
    nodes: np.ndarray,
    z: np.ndarray,
    log_joint: np.ndarray,
    centre: np.ndarray,
    frame: np.ndarray,
    spacing: float,
) -> tuple[Posteriors, np.ndarray, np.ndarray]:
    """Posteriors on nodes centre + frame z; the next frame (J, D, D), and which posteriors the spacing resolves."""
    largest = log_joint.max(axis=1)
    weights = np.exp(log_joint - largest[:, None])
    total = weights.sum(axis=1)
    weights /= total[:, None]
    dims = z.shape[1]
    mean_z = weights @ z
    square = (weights @ (z[:, :, None] * z[:, None, :]).reshape(len(z), -1)).reshape(-1, dims, dims)
    covariance_z = square - mean_z[:, :, None] * mean_z[:, None, :]
    least = np.linalg.eigvalsh(covariance_z)[:, 0]
    # a posterior between two nodes may be anywhere there, and as wide
    unseen = np.where(least < (spacing / 2) ** 2, spacing**2 / 4, 0.0)
    next_frame = frame @ np.linalg.cholesky(covariance_z + unseen[:, None, None] * np.eye(dims))
    found = Posteriors(
        rows=rows,
        nodes=nodes,
        weights=weights,
        log_likelihood=largest + np.log(total),
        mean=centre + np.einsum("jkl,jl->jk", frame, mean_z),
        covariance=frame @ covariance_z @ frame.transpose(0, 2, 1),
    )
    return found, next_frame, least >= (RESOLVED * spacing) ** 2


def expectations(function: Function, found: Posteriors, items: ItemParameters) -> tuple[np.ndarray, ...]:
    """Posterior means (J, I) of functions of the probabilities of right and wrong answers.

    Args:
        function: of p and 1 - p, each (Q, I), to a tuple of arrays of that shape; a function of a module, which is
            compiled once.
        found: posteriors of J subjects.
        items: of I items.
    """
    blocks, num_items = in_blocks(items), len(items.intercept)
    program = _expectations if found.nodes.ndim == 2 else _expectations_at_importance_nodes
    results = _padded_call(functools.partial(program, function), found.weights, blocks, found.nodes)
    return tuple(result[:, :num_items] for result in results)


def in_blocks(items: ItemParameters) -> ItemParameters:
    """Items in blocks (N, B, …), the last one filled with items that no one answers."""
    number = len(items.intercept)
    block = min(BLOCK_ITEMS, -(-number // 64) * 64)
    more = -number % block

    def filled(leaf: AnyArray, value: float) -> np.ndarray:
        leaf = np.asarray(leaf, np.float64)
        leaf = np.concatenate([leaf, np.full((more, *leaf.shape[1:]), value)])
        return leaf.reshape(-1, block, *leaf.shape[1:])

    return ItemParameters(*map(filled, items, (0.0, 0.0, -np.inf, np.inf)))


def _padded_call(program: Callable, rows: np.ndarray, blocks: ItemParameters, nodes: np.ndarray) -> Any:
    """Calls a program of rows of subjects, whose number is filled up, so that few shapes are compiled."""
    num_rows = len(rows)
    more = max(8, 1 << (num_rows - 1).bit_length()) - num_rows if num_rows <= 1024 else -num_rows % 1024
    if rows.dtype.kind == "i":
        width = blocks.intercept.size - rows.shape[1]
        rows = np.pad(rows.astype(np.int8, copy=False), ((0, more), (0, width)), constant_values=MISSING)
        rows = rows.reshape(len(rows), *blocks.intercept.shape)
    else:
        rows = np.pad(rows, ((0, more), (0, 0)))
    if nodes.ndim == 3:
        nodes = np.concatenate([nodes, np.broadcast_to(nodes[:1], (more, *nodes.shape[1:]))])
    with jax.enable_x64(True):
        result = program(rows, blocks, nodes)
        return jax.tree.map(lambda leaf: np.asarray(leaf)[:num_rows], result)


@jax.jit
def _log_likelihoods(values: jax.Array, blocks: ItemParameters, nodes: jax.Array) -> jax.Array:
    """Log-likelihood (J, Q) of responses (J, N, B) at nodes (Q, D)."""

    def add(total: jax.Array, block: tuple[ItemParameters, jax.Array]) -> tuple[jax.Array, None]:
        items, y = block
        eta, log_normalizer = BINARY.natural(items, nodes, asymptotes=True)
        return total + BINARY.statistics(y) @ eta.T - (y >= 0).astype(eta.dtype) @ log_normalizer.T, None

    zeros = jnp.zeros((values.shape[0], nodes.shape[0]), nodes.dtype)
    return jax.lax.scan(add, zeros, (blocks, values.transpose(1, 0, 2)))[0]


@jax.jit
def _log_likelihoods_at_importance_nodes(values: jax.Array, blocks: ItemParameters, nodes: jax.Array) -> jax.Array:
    """The same at nodes (J, Q, D) of each subject."""
    each = nodes.shape[1] * blocks.intercept.size
    return mapped(lambda one: _log_likelihoods(one[0][None], blocks, one[1])[0], (values, nodes), each)


@functools.partial(jax.jit, static_argnums=0)
def _expectations(
    function: Function, weights: jax.Array, blocks: ItemParameters, nodes: jax.Array
) -> tuple[jax.Array, ...]:
    """Means (J, I) of functions of probabilities over nodes (Q, D) with weights (J, Q)."""

    def of_block(items: ItemParameters) -> tuple[jax.Array, ...]:
        p, q = probabilities(items, nodes)
        return tuple(
            weights @ value for value in function(jnp.maximum(p, LEAST_PROBABILITY), jnp.maximum(q, LEAST_PROBABILITY))
        )

    means = jax.lax.map(of_block, blocks)
    return tuple(mean.transpose(1, 0, 2).reshape(weights.shape[0], -1) for mean in means)


@functools.partial(jax.jit, static_argnums=0)
def _expectations_at_importance_nodes(
    function: Function, weights: jax.Array, blocks: ItemParameters, nodes: jax.Array
) -> tuple[jax.Array, ...]:
    """The same over nodes (J, Q, D) of each subject."""

    def of_subject(one: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, ...]:
        return tuple(mean[0] for mean in _expectations(function, one[0][None], blocks, one[1]))

    return mapped(of_subject, (weights, nodes), nodes.shape[1] * blocks.intercept.size)
