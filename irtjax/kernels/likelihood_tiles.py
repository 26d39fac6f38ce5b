"""The log-likelihood of the 1PL and 2PL and its gradients, as a kernel for GPUs: what lies between stays in registers.

XLA for GPUs writes residuals and log-likelihoods, float arrays of J × I, before it multiplies them with vectors. Here a
program of the GPU takes 128 items and some tiles of 16 subjects, one after the other, reads each response once, as a
byte, and keeps its sums over subjects in registers. Sums of programs (a 50th of the bytes of the responses) are added
by XLA, in the same order in every run.

With u = -1 for a right answer and 1 for a wrong one, and z = u x of the logit x,

    log p = -max(z, 0) - log d,     y - p = -u σ(z),     d = 1 + exp(-|z|),     σ(z) = exp(min(z, 0)) / d.

As 1 <= d <= 2, the product of up to 64 of them is finite, and its logarithm is taken once. So a response costs one
exponential and one reciprocal. Where it is missing, z is so low that both results are 0.

**What it should reach** on an H100, for the 2PL: a prediction by what ptxas makes of it, which nobody has measured. A
response costs 24 instructions (384 in a turn of the loop, in which a thread has 16), of which 10 are for the units of
integers, comparisons and selections, and 2 for those of special functions. 132 multiprocessors at 1.98 GHz issue 128,
64 and 16 of these a cycle, so 10^8 responses take 72, 60 and 48 µs, whichever is most; reading them, and writing and
reading the sums, 35 µs at 3.35 TB/s. A thread has 128 registers, so that four programs, with 8 kB on their way, fit
on a multiprocessor: enough for the memory's latency. So 72 to 85 µs: 2.4 to 2.8 times one read of the responses. What
holds it up is instructions, not memory: no float array is written.

`kernels.handwritten` says where it is used.
"""

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from irtjax.kernels import handwritten
from irtjax.types import AnyArray, Float

ROWS, COLUMNS = 16, 128  # subjects and items of a tile; a thread of 128 has 16 items of one subject
MOST_TURNS = 16  # tiles of a program: more make fewer sums to write, fewer occupy more of the GPU
ENOUGH = 2048  # programs, a few for each place that a GPU has for them
WARPS, STAGES = 4, 2
NEVER = -256.0  # a logit, in units of log 2, of what adds nothing
EXP2_BELOW = "{.reg .b32 t; mov.b32 t, $1; or.b32 t, t, 0x80000000; ex2.approx.ftz.f32 $0, t;}"  # exp2(-|z|)
LOG_2 = math.log(2)


def takes(theta: AnyArray | jax.ShapeDtypeStruct, responses: AnyArray | jax.ShapeDtypeStruct) -> bool:
    """Whether the kernel is for such arguments: of float32, and a byte for each response."""
    return theta.dtype == jnp.float32 and responses.dtype == jnp.int8 and handwritten.addressable(responses)


def small_problems() -> Iterator[tuple[Any, ...]]:
    """A small matrix with odd sides and missing responses, without slopes and with them."""
    rng = np.random.default_rng(0)
    responses = rng.integers(-1, 2, (75, 333)).astype(np.int8)
    theta, slope, intercept = (rng.normal(size=size).astype(np.float32) for size in (75, 333, 333))
    yield theta, None, intercept, responses
    yield theta, slope, intercept, responses


def value_and_sums(
    theta: AnyArray, slope: AnyArray | None, intercept: AnyArray, responses: AnyArray, *, interpret: bool = False
) -> tuple[Float[jax.Array, ""], Float[jax.Array, " J"], Float[jax.Array, "K I"]]:
    """As `kernels.likelihood.value_and_sums` on one device, the sums of items transposed.

    Args:
        theta: (J,) float32.
        slope: (I,), or None for 1.
        intercept: (I,).
        responses: (J, I) int8.
        interpret: whether to compute what the kernel would, without a GPU.
    """
    num_subjects, num_items = responses.shape
    down, across = -(-num_subjects // ROWS), -(-num_items // COLUMNS)
    turns = max(1, min(MOST_TURNS, down * across // ENOUGH, down))
    grid = across, -(-down // turns)
    rows, columns = grid[1] * turns * ROWS, across * COLUMNS

    def padded(leaf: AnyArray, size: int) -> jax.Array:
        return jnp.pad(leaf, (0, size - leaf.shape[0]))

    # in units of log 2, in which a GPU has exponentials
    lines = [padded(leaf / LOG_2, columns) for leaf in ((intercept,) if slope is None else (intercept, slope))]
    slopes = [] if slope is None else [padded(slope, columns)]
    arguments = padded(theta if slope is not None else theta / LOG_2, rows), *lines, *slopes, responses
    shapes = grid[::-1], (across, rows), (grid[1], 1 if slope is None else 2, columns)
    value, by_subject, by_item = pl.pallas_call(
        functools.partial(_tiles, turns=turns, shape=(num_subjects, num_items), interpret=interpret),
        grid=grid,
        out_shape=[_like(responses, shape) for shape in shapes],
        compiler_params=triton.CompilerParams(num_warps=WARPS, num_stages=STAGES),
        interpret=interpret,
        name="likelihood",
    )(*arguments)
    return value.sum() * LOG_2, by_subject.sum(axis=0)[:num_subjects], by_item.sum(axis=0)[:, :num_items]


def _like(responses: AnyArray, shape: tuple[int, ...]) -> jax.ShapeDtypeStruct:
    """A float32 array that differs along the same axes of a mesh of devices as the responses."""
    return jax.eval_shape(lambda y: jnp.broadcast_to(y[0, 0].astype(jnp.float32), shape), responses)


def _tiles(theta: Any, intercept: Any, *others: Any, turns: int, shape: tuple[int, int], interpret: bool) -> None:
    """A program of the GPU: the sums of 128 items and `turns` tiles of subjects.

    Args:
        theta: (rows,); without slopes in units of log 2.
        intercept: (columns,) in units of log 2.
        *others: with slopes these (columns,) in units of log 2, and as they are; the responses (J, I); the sums.
        turns: tiles.
        shape: J and I.
        interpret: whether instructions of a GPU are left out.
    """
    *slopes, responses, value, by_subject, by_item = others
    at, number = pl.program_id(0), pl.program_id(1)
    items = pl.ds(at * COLUMNS, COLUMNS)
    line = intercept[items][None, :]
    steep, slope = (leaf[items][None, :] for leaf in slopes) if slopes else (None, None)
    exp2_below = _instruction(EXP2_BELOW, lambda z: jnp.exp2(-jnp.abs(z)), interpret)
    reciprocal = _instruction("rcp.approx.ftz.f32 $0, $1;", lambda x: 1 / x, interpret)
    multiply_add = _instruction("fma.rn.f32 $0, $1, $2, $3;", lambda x, y, z: x * y + z, interpret)
    inside = at * COLUMNS + jnp.arange(COLUMNS) < shape[1]

    def tile(turn: jax.Array, sums: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        distance, product, *of_items = sums
        start = (number * turns + turn) * ROWS
        subjects = pl.ds(start, ROWS)
        there = (start + jnp.arange(ROWS) < shape[0])[:, None] & inside[None, :]
        answer = triton.load(responses.at[subjects, items], mask=there, other=-1).astype(jnp.uint8)
        ability = theta[subjects][:, None]
        x = ability + line if steep is None else multiply_add(ability, steep, line)
        right = answer.astype(jnp.int32) << 31  # the sign bit, where an answer is right
        z = jnp.where(answer > 1, NEVER, _with_sign(x, right))
        small = exp2_below(z)
        below = 1 + small
        residual = _with_sign(jnp.where(z < 0, small, 1.0) * reciprocal(below), right)  # p - y
        by_subject[at, subjects] = -(residual if slope is None else residual * slope).sum(axis=1)
        distance, product = distance + jnp.maximum(z, 0.0), product * below
        of_items[0] += residual
        if steep is not None:
            of_items[1] = multiply_add(ability, residual, of_items[1])
        return distance, product, *of_items

    zeros = jnp.zeros((ROWS, COLUMNS), jnp.float32)
    start = zeros, zeros + 1, *(zeros,) * (1 if steep is None else 2)
    distance, product, *of_items = jax.lax.fori_loop(0, turns, tile, start)
    for k, total in enumerate(of_items):
        by_item[number, k, items] = -total.sum(axis=0)
    value[number, at] = -(distance + jnp.log2(product)).sum()


def _with_sign(x: jax.Array, bit: jax.Array) -> jax.Array:
    """-x where the first bit is set, else x; other bits are 0."""
    kind = jnp.int32
    return jax.lax.bitcast_convert_type(jax.lax.bitcast_convert_type(x, kind) ^ bit, jnp.float32)


def _instruction(text: str, function: Callable[..., jax.Array], interpret: bool) -> Callable[..., jax.Array]:
    """One of the GPU's own on float32, where compilers would write two to six; or, interpreted, what it computes."""

    def of(*arguments: jax.Array) -> jax.Array:
        shape = jnp.broadcast_shapes(*(leaf.shape for leaf in arguments))
        (found,) = triton.elementwise_inline_asm(
            text,
            args=[jnp.broadcast_to(leaf, shape) for leaf in arguments],
            constraints=",".join(["=f"] + ["f"] * len(arguments)),
            pack=1,
            result_shape_dtypes=[jax.ShapeDtypeStruct(shape, jnp.float32)],
        )
        return found

    return function if interpret else of
