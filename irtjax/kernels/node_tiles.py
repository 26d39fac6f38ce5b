"""The two maps of an E-step over right and wrong answers, as kernels for GPUs: numbers of answers stay in registers.

XLA for GPUs writes what is multiplied, eight bytes for each of a response's two numbers, before it calls a library for
products of matrices. Here a program of the GPU reads tiles of responses, a byte each, and makes the numbers where the
tensor cores take them. `at_nodes` goes from responses to log-likelihoods, one program for 32 subjects and up to 64
nodes, item after item. `of_items` goes back from posteriors to items, one program for 64 items, up to 64 nodes and some
tiles of subjects; XLA adds the sums of programs, in the same order in every run.

**What it should reach** on an H100: a prediction by what ptxas makes of it, which nobody has measured. Products of
float64 are instructions of 8 × 8 × 4 on the tensor cores. A warp has 64 of them in a turn of `at_nodes` and 128 in one
of `of_items`, and twice as many where responses are missing. A thread has 96 to 168 registers, and none are spilled. If
they reach half of the 67 TFLOP/s that larger instructions do, each map of 10^6 subjects, 100 items and 61 nodes takes
1 ms with missing responses, as nodes are filled up to 64 and items to 128. Reading the responses takes 0.03 ms. What
holds it up is products, not memory.
"""

import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from irtjax.kernels import handwritten
from irtjax.types import AnyArray, Float

SUBJECTS, NODES, LEAST = 32, 64, 16  # of a tile; fewest that a product takes
ITEMS_OF_TURN, ITEMS = 32, 64  # that `at_nodes` takes in a turn, and a program of `of_items` has
ENOUGH = 264  # programs of `of_items`: two for each multiprocessor
FEWEST_TURNS = 4  # each of its programs writes its sums
OPTIONS = {"num_warps": 4, "num_stages": 2}


def takes(values: AnyArray, numbers: AnyArray) -> bool:
    """Whether the kernels are for such arguments: a byte for each response, and float64."""
    return values.dtype == jnp.int8 and numbers.dtype == jnp.float64 and handwritten.addressable(values, numbers)


def small_problems() -> Iterator[tuple[Any, ...]]:
    """Responses, tables and posteriors with odd sides."""
    rng = np.random.default_rng(0)
    values = rng.integers(-1, 2, (75, 101)).astype(np.int8)
    yield values, *rng.normal(size=(2, 61, 101)), rng.random((75, 61))


def both_maps(values: AnyArray, eta: AnyArray, log_normalizer: AnyArray, weights: AnyArray) -> Any:
    """Both maps of a small problem by the kernels, as it is and with wrong answers where any are missing."""
    return [
        (at_nodes(some, eta, log_normalizer, complete=complete), of_items(weights, some, complete=complete))
        for some, complete in ((values, False), (jnp.maximum(values, 0), True))
    ]


def both_by_xla(values: AnyArray, eta: AnyArray, log_normalizer: AnyArray, weights: AnyArray) -> Any:
    """The same by products of matrices."""
    right, observed = (values == 1).astype(eta.dtype), (values >= 0).astype(eta.dtype)
    at = right @ eta.T
    expected = weights.T @ right
    return [
        (at - observed @ log_normalizer.T, (expected, weights.T @ observed)),
        (at - log_normalizer.sum(axis=1)[None, :], (expected, weights.sum(axis=0)[:, None])),
    ]


def at_nodes(
    values: AnyArray, eta: AnyArray, log_normalizer: AnyArray, *, complete: bool, interpret: bool = False
) -> Float[jax.Array, "J Q"]:
    """Σ_i [right_ji η_qi - observed_ji A_qi].

    Args:
        values: (J, I) int8; 1 right, 0 wrong, negative missing.
        eta: (Q, I) float64.
        log_normalizer: (Q, I) A.
        complete: whether all were observed, so that sums of A are those of all items.
        interpret: whether to compute what the kernel would, without a GPU.
    """
    num_subjects, num_nodes = len(values), len(eta)
    nodes = _nodes(num_nodes)
    found = pl.pallas_call(
        functools.partial(_at_nodes, shape=(*values.shape, num_nodes), nodes=nodes),
        grid=(-(-num_subjects // SUBJECTS), -(-num_nodes // nodes)),
        out_shape=jax.ShapeDtypeStruct((num_subjects, num_nodes), eta.dtype),
        compiler_params=triton.CompilerParams(**OPTIONS),
        interpret=interpret,
        name="at_nodes",
    )(values, eta, *(() if complete else (log_normalizer,)))
    return found - log_normalizer.sum(axis=1)[None, :] if complete else found


def _at_nodes(values: Any, *tables_and_sums: Any, shape: tuple[int, int, int], nodes: int) -> None:
    """A program of the GPU: the log-likelihoods of 32 subjects at some nodes."""
    *tables, sums = tables_and_sums
    num_subjects, num_items, num_nodes = shape
    subjects, of_subjects = _part(0, SUBJECTS, num_subjects)
    at, of_nodes = _part(1, nodes, num_nodes)

    def add(turn: jax.Array, total: jax.Array) -> jax.Array:
        items, of_items = _from(turn * ITEMS_OF_TURN, ITEMS_OF_TURN, num_items)
        answer = triton.load(values.at[subjects, items], mask=of_subjects[:, None] & of_items[None, :], other=-1)
        there = of_nodes[:, None] & of_items[None, :]
        for sign, counted, table in zip((1, -1), (answer == 1, answer >= 0), tables, strict=False):
            number = jnp.where(counted, float(sign), 0.0).astype(total.dtype)
            total += triton.dot(number, triton.load(table.at[at, items], mask=there, other=0.0), trans_b=True)
        return total

    turns = -(-num_items // ITEMS_OF_TURN)
    total = jax.lax.fori_loop(0, turns, add, jnp.zeros((SUBJECTS, nodes), sums.dtype))
    triton.store(sums.at[subjects, at], total, mask=of_subjects[:, None] & of_nodes[None, :])


def of_items(
    weights: AnyArray, values: AnyArray, *, complete: bool, interpret: bool = False
) -> tuple[Float[jax.Array, "Q I"], Float[jax.Array, "Q _"]]:
    """Right answers that are expected at each node, Σ_j weight_jq right_ji, and answers.

    Args:
        weights: (J, Q) float64, posteriors.
        values: (J, I) int8; 1 right, 0 wrong, negative missing.
        complete: whether all were observed, so that all items have the same number of answers.
        interpret: whether to compute what the kernel would, without a GPU.
    """
    (num_subjects, num_items), num_nodes = values.shape, weights.shape[1]
    nodes = _nodes(num_nodes)
    across, deep, tiles = -(-num_items // ITEMS), -(-num_nodes // nodes), -(-num_subjects // SUBJECTS)
    turns = max(FEWEST_TURNS, tiles * across * deep // ENOUGH)
    parts = -(-tiles // turns)
    like = jax.ShapeDtypeStruct((parts, num_nodes, num_items), weights.dtype)
    right, *observed = pl.pallas_call(
        functools.partial(_of_items, shape=(num_subjects, num_items, num_nodes), nodes=nodes, turns=turns),
        grid=(across, deep, parts),
        out_shape=[like] if complete else [like, like],
        compiler_params=triton.CompilerParams(**OPTIONS),
        interpret=interpret,
        name="of_items",
    )(weights, values)
    return right.sum(axis=0), weights.sum(axis=0)[:, None] if complete else observed[0].sum(axis=0)


def _of_items(weights: Any, values: Any, *sums: Any, shape: tuple[int, int, int], nodes: int, turns: int) -> None:
    """A program of the GPU: what `turns` tiles of subjects expect at some nodes of 64 items."""
    num_subjects, num_items, num_nodes = shape
    items, of_items = _part(0, ITEMS, num_items)
    at, of_nodes = _part(1, nodes, num_nodes)
    part = pl.program_id(2)

    def add(turn: jax.Array, totals: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        subjects, of_subjects = _from((part * turns + turn) * SUBJECTS, SUBJECTS, num_subjects)
        answer = triton.load(values.at[subjects, items], mask=of_subjects[:, None] & of_items[None, :], other=-1)
        weight = triton.load(weights.at[subjects, at], mask=of_subjects[:, None] & of_nodes[None, :], other=0.0)
        return tuple(
            total + triton.dot(weight, counted.astype(total.dtype), trans_a=True)
            for total, counted in zip(totals, (answer == 1, answer >= 0), strict=False)
        )

    zeros = (jnp.zeros((nodes, ITEMS), weights.dtype),) * len(sums)
    for one, total in zip(sums, jax.lax.fori_loop(0, turns, add, zeros), strict=True):
        triton.store(one.at[part, at, items], total, mask=of_nodes[:, None] & of_items[None, :])


def _nodes(number: int) -> int:
    """Nodes of a program: a power of 2."""
    return int(np.clip(1 << (number - 1).bit_length(), LEAST, NODES))


def _part(axis: int, size: int, number: int) -> tuple[Any, jax.Array]:
    """The places that a program has along an axis of the grid, and which of them are there."""
    return _from(pl.program_id(axis) * size, size, number)


def _from(start: jax.Array, size: int, number: int) -> tuple[Any, jax.Array]:
    return pl.ds(start, size), start + jnp.arange(size) < number
