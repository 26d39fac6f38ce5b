"""Sums over responses to items of one family, at a few abilities around the posterior of each subject.

Expectations under normal posteriors θ ~ N(m, L L') are sums over Q Gauss-Hermite nodes m + L z. Three in each dimension
are exact for polynomials of fifth degree: on a test of n items, where the variance is of order 1/n, they err by less
than the normal distribution does (`irtjax.integration.normal_expectations` has one node and a second derivative, at the
same order).

All passes walk blocks of items. Abilities (Q, J, D) are taken as rows of Q J.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.item_models.families import Families
from irtjax.item_models.protocol import Moments, PredictorParameters
from irtjax.kernels.precision import in_full_precision
from irtjax.types import AnyArray, Float, Shaped


class Cells(NamedTuple):
    """Responses in N blocks of B items.

    Attributes:
        values: (N, J, B), as the model encodes them; negative where missing.
        trials: (N, J, B) of each; None for one.
    """

    values: Shaped[AnyArray, "N J B"]
    trials: Shaped[AnyArray, "N J B"] | None


class _Block(NamedTuple):
    """A block of items at abilities: T and n of each subject, repeated for each of its nodes."""

    items: PredictorParameters
    statistics: AnyArray
    observed: AnyArray


@functools.partial(jax.jit, static_argnums=0)
@in_full_precision
def item_sums(
    model: Families,
    items: PredictorParameters,
    cells: Cells,
    theta: Float[AnyArray, "Q J D"],
    weights: Float[AnyArray, " Q"],
) -> tuple[Float[AnyArray, "I K"], Float[AnyArray, "I K K"]]:
    """Gradient of the expected log-likelihood in slopes, intercept and others of each item; expected information."""
    at, weight = _rows(theta), jnp.repeat(weights, theta.shape[1])[:, None]

    def of_block(block: _Block) -> tuple[AnyArray, AnyArray]:
        found = model.moments(block.items, at, asymptotes=True)
        observed = weight * block.observed
        by_x, *others = found.scores(found.residual(weight * block.statistics, observed))
        return _gradient(by_x, others, at), _information(found.weights(observed), at)

    return _joined(model, of_block, items, cells, theta)


@in_full_precision
def observed_information(
    model: Families,
    items: PredictorParameters,
    cells: Cells,
    theta: Float[AnyArray, "Q J D"],
    weights: Float[AnyArray, " Q"],
) -> tuple[Float[AnyArray, "I K K"]]:
    """Observed information of each item by itself (Louis 1982): what not knowing the abilities takes is off.

    NumPy arrays need no compilation.
    """
    xp = theta.__array_namespace__()
    at, weight = _rows(theta), xp.repeat(weights, theta.shape[1])[:, None]

    def of_block(block: _Block) -> tuple[AnyArray]:
        found = model.moments(block.items, at, asymptotes=True)
        residual = found.residual(block.statistics, block.observed)
        curvature = model.curvature(block.items, at, weight * residual)
        complete = [
            [one - curvature[:, :, k, n] for n, one in enumerate(row)]
            for k, row in enumerate(found.weights(weight * block.observed))
        ]
        by_x, *others = found.scores(residual)
        by_slopes = [ability[:, None] * by_x for ability in at.T]
        scores = xp.stack([*by_slopes, by_x, *others]).reshape(-1, *theta.shape[:2], by_x.shape[1])
        centred = scores - xp.einsum("q,kqjb->kjb", weights, scores)[:, None]
        missing = xp.einsum("kqjb,nqjb->bkn", weights[None, :, None, None] * centred, centred, optimize=True)
        return (_information(complete, at) - missing,)

    return _joined(model, of_block, items, cells, theta)  # type: ignore[return-value]


compiled_information = jax.jit(observed_information, static_argnums=0)


@functools.partial(jax.jit, static_argnums=0)
@in_full_precision
def slopes_of_subjects(
    model: Families, items: PredictorParameters, cells: Cells, theta: Float[AnyArray, "Q J D"]
) -> Float[AnyArray, "Q J D"]:
    """Derivatives of the log-likelihood of each subject in its abilities, at these."""
    at = _rows(theta)

    def add(total: AnyArray, block: _Block) -> AnyArray:
        found: Moments = model.moments(block.items, at, asymptotes=True)
        return total + found.scores(found.residual(block.statistics, block.observed))[0] @ block.items.slope

    return _total(model, add, items, cells, theta, jnp.zeros_like(at)).reshape(theta.shape)


@functools.partial(jax.jit, static_argnums=0)
@in_full_precision
def log_likelihoods(
    model: Families, items: PredictorParameters, cells: Cells, theta: Float[AnyArray, "Q J D"]
) -> Float[AnyArray, "Q J"]:
    """Log-likelihood of each subject at these abilities, without log h, in nats."""
    at = _rows(theta)

    def add(total: AnyArray, block: _Block) -> AnyArray:
        eta, log_normalizer = model.natural(block.items, at, asymptotes=True)
        return total + (block.statistics * eta).sum(axis=1) - (block.observed * log_normalizer).sum(axis=1)

    return _total(model, add, items, cells, theta, jnp.zeros_like(at[:, 0])).reshape(theta.shape[:2])


def _rows(theta: Float[AnyArray, "Q J D"]) -> Float[AnyArray, "QJ D"]:
    return theta.reshape(-1, theta.shape[2])


def _joined(
    model: Families,
    of_block: Callable[[_Block], tuple[AnyArray, ...]],
    items: PredictorParameters,
    cells: Cells,
    theta: AnyArray,
) -> tuple[Any, ...]:
    """What all blocks come to, their items one after the other."""

    def step(_: None, at: tuple[PredictorParameters, Cells]) -> tuple[None, Any]:
        return None, of_block(_block(model, *at, theta))

    blocks = _by_block(items, cells), cells
    if isinstance(theta, np.ndarray):
        parts = [step(None, jax.tree.map(lambda leaf, n=n: leaf[n], blocks))[1] for n in range(len(cells.values))]
        found = tuple(np.stack(leaves) for leaves in zip(*parts, strict=True))
    else:
        _, found = jax.lax.scan(step, None, blocks)
    return tuple(leaf.reshape(-1, *leaf.shape[2:]) for leaf in found)


def _total(
    model: Families,
    add: Callable[[AnyArray, _Block], AnyArray],
    items: PredictorParameters,
    cells: Cells,
    theta: AnyArray,
    zeros: AnyArray,
) -> AnyArray:
    """A sum over all blocks, for each subject at each node; of the shape of `zeros`."""

    def step(total: Any, at: tuple[PredictorParameters, Cells]) -> tuple[Any, None]:
        return add(total, _block(model, *at, theta)), None

    return jax.lax.scan(step, zeros, (_by_block(items, cells), cells))[0]


def _by_block(items: PredictorParameters, cells: Cells) -> PredictorParameters:
    number, _, size = cells.values.shape
    return PredictorParameters(*(leaf.reshape(number, size, *leaf.shape[1:]) for leaf in items))


def _block(model: Families, items: PredictorParameters, cells: Cells, theta: AnyArray) -> _Block:
    observed = (cells.values >= 0).astype(theta.dtype)
    if cells.trials is not None:
        observed = observed * cells.trials.astype(theta.dtype)
    statistics = model.statistics(cells.values).astype(theta.dtype)
    xp = theta.__array_namespace__()
    repeated = (xp.tile(leaf, (theta.shape[0], 1)) for leaf in (statistics, observed))
    return _Block(items, *repeated)


def _gradient(by_x: AnyArray, others: list[AnyArray], at: AnyArray) -> Float[AnyArray, "B K"]:
    one = jnp.ones_like(at[:, 0])
    return jnp.stack([*(ability @ by_x for ability in at.T), one @ by_x, *(one @ by for by in others)], axis=1)


def _information(weights: list[list[AnyArray]], at: AnyArray) -> Float[AnyArray, "B K K"]:
    """Of slopes, intercept and others, by weights (Q J, B) of pairs of predictor and others up to the diagonal."""
    xp = at.__array_namespace__()
    one = xp.ones_like(at[:, 0])
    linear, (of_x,), *rows = [*at.T, one], *weights
    own, size = len(linear), len(linear) + len(rows)
    entries = {(k, n): (linear[k] * linear[n]) @ of_x for k in range(own) for n in range(k + 1)}
    for k, (cross, *others) in enumerate(rows, own):
        entries |= {(k, n): by @ cross for n, by in enumerate(linear)}
        entries |= {(k, n): one @ weight for n, weight in enumerate(others, own)}
    lines = [[entries[max(k, n), min(k, n)] for n in range(size)] for k in range(size)]
    return xp.stack([xp.stack(line, axis=-1) for line in lines], axis=-2)
