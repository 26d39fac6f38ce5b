"""The E-step over single answers: block after block of subjects, whose posteriors fit into the cache, on every core.

On a CPU the two maps are products of a sparse array with a dense one, which SciPy makes without holding the
interpreter's lock. So threads share the blocks, each with sums of its own, which are added in their order: the result
does not depend on which thread was faster. XLA's scatter takes one row after the other there, some five times as long.
On an accelerator they are sums over segments of gathered rows.
"""

import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.integration.curves import Curves
from irtjax.integration.sparse_answers import SparseAnswers
from irtjax.integration.sparse_grid import BLAS, rounded
from irtjax.types import AnyArray, Bool, Float, Int

WEIGHTS = 2**20  # posteriors over nodes that a thread holds: 8 MB
FEWEST = 2**22  # posteriors from which on threads are worth it


def threads(work: int) -> int:
    """How many share so many posterior weights."""
    return (
        1
        if work < FEWEST
        else len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1
    )


def shared_out(task: Callable[[range], Any], number: int, at_once: int) -> list[Any]:
    """What a task comes to for every `at_once`-th of so many blocks, each on a thread of its own."""
    parts = [range(first, number, at_once) for first in range(min(at_once, number))]
    with BLAS.limit(limits=1, user_api="blas"):
        if len(parts) == 1:
            return [task(parts[0])]
        with ThreadPoolExecutor(len(parts)) as pool:
            return list(pool.map(task, parts))


def everywhere(curves: Curves, answers: SparseAnswers, keep: bool) -> tuple[Any, ...]:
    """As `e_step`, where every subject may be at every node of one tile, whose curves these are.

    Returns:
        Statistics and trials that are expected at each node, (Q, M) and (Q, I); log-likelihoods (J,), moments (J, P),
        and the posteriors (J, Q) if they are kept.
    """
    eta, log_normalizer, log_weights, powers = map(np.asarray, curves)
    table, (num_nodes, size) = answers.table(eta, log_normalizer), powers.shape
    num_subjects = answers.num_subjects
    block = max(64, WEIGHTS // num_nodes)
    log_likelihoods, moments = np.empty(num_subjects), np.empty((num_subjects, size))
    kept = np.empty((num_subjects, num_nodes)) if keep else None
    on_host = jax.default_backend() == "cpu"

    def some(blocks: range) -> Float[np.ndarray, "C Q"]:
        of_cells = np.zeros(table.shape)
        for number in blocks:
            at = slice(number * block, min((number + 1) * block, num_subjects))
            part = answers.rows(at)
            of_block = (_of_block if on_host else _of_block_on_device)(
                table, part, np.asarray(part.weighed(log_weights))
            )
            log_likelihoods[at], posterior, of_these = of_block
            moments[at] = posterior @ powers
            of_cells += of_these
            if kept is not None:
                kept[at] = posterior
        return of_cells

    at_once = threads(num_subjects * num_nodes) if on_host else 1
    of_cells = sum(shared_out(some, -(-num_subjects // block), at_once))
    return *answers.expected(of_cells), log_likelihoods, moments, kept


def _of_block(
    table: Float[np.ndarray, "C Q"], answers: SparseAnswers, weighed: Float[np.ndarray, "_ Q"]
) -> tuple[Float[np.ndarray, " J"], Float[np.ndarray, "J Q"], Float[np.ndarray, "C Q"]]:
    """Log-likelihoods and posteriors of some subjects, and what these expect of each cell."""
    cells = answers.matrix()
    joint = cells @ table
    joint += weighed
    largest = joint.max(axis=1)
    joint -= largest[:, None]
    np.exp(joint, out=joint)
    total = joint.sum(axis=1)
    joint /= total[:, None]
    return largest + np.log(total), joint, cells.T @ joint


def _of_block_on_device(
    table: Float[np.ndarray, "C Q"], answers: SparseAnswers, weighed: Float[np.ndarray, "_ Q"]
) -> tuple[np.ndarray, ...]:
    """As `_of_block`, by an accelerator; entries are filled up, so that blocks of one size share a program."""
    more = rounded(len(answers.columns)) - len(answers.columns)
    columns = np.pad(answers.columns, (0, more), constant_values=len(table))
    subjects = np.pad(answers.subjects(), (0, more), constant_values=answers.num_subjects)
    entries = None if answers.entries is None else np.pad(answers.entries, (0, more))
    found = gathered(table, columns, subjects, entries, weighed, answers.num_subjects)
    return tuple(map(np.asarray, found))


@functools.partial(jax.jit, static_argnums=5)
def gathered(
    table: AnyArray, columns: AnyArray, subjects: AnyArray, entries: AnyArray | None, weighed: AnyArray, number: int
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Log-likelihoods (J,), posteriors (J, Q) and expected cells (C, Q) as sums over segments of gathered rows.

    Args:
        table: (C, Q) what cells add at nodes.
        columns: (N,) the cell of each answer; C in places without one.
        subjects: (N,) whose it is, in increasing order; J in places without one.
        entries: (N,) how often it counts; None for once.
        weighed: (J, Q) or (1, Q) logarithms of the weights of nodes.
        number: J.
    """

    def times(rows: jax.Array) -> jax.Array:
        return rows if entries is None else rows * jnp.asarray(entries)[:, None]

    rows = times(jnp.asarray(table).at[columns].get(mode="fill", fill_value=0.0))
    joint = weighed + jax.ops.segment_sum(rows, subjects, number, indices_are_sorted=True)
    log_likelihoods = jax.nn.logsumexp(joint, axis=1)
    posterior = jnp.exp(joint - log_likelihoods[:, None])
    of_answers = times(posterior.at[subjects].get(mode="fill", fill_value=0.0))
    return log_likelihoods, posterior, jnp.zeros_like(table).at[columns].add(of_answers, mode="drop")


def in_tiles(
    curves: Curves,
    answers: SparseAnswers,
    rows: Int[np.ndarray, "N B"],
    tile: Int[np.ndarray, " N"],
    rim: Bool[np.ndarray, "N B"],
) -> tuple[Any, ...]:
    """As `e_step`, in blocks of subjects that may be in a tile; posteriors (N, B, S) are kept in any case.

    Returns:
        Statistics and trials that are expected at each place, (T, S, M) and (T, S, I); log-likelihoods (J,), moments
        (J, P), posteriors (N, B, S), and the share of all posteriors at the rim.
    """
    eta, log_normalizer, log_weights, powers = map(np.asarray, curves)
    num_subjects, num_places = answers.num_subjects, powers.shape[1]
    filled = np.flatnonzero((rows < num_subjects).any(axis=1))
    values = np.full((*rows.shape, num_places), -np.inf)
    tables = {int(t): answers.table(eta[t], log_normalizer[t]) for t in np.unique(tile[filled])}
    cells = {}

    def joint(blocks: range) -> None:
        for number in filled[blocks.start : blocks.stop : blocks.step]:
            there = rows[number] < num_subjects
            part = answers.rows(rows[number][there])
            cells[number] = part.matrix()
            t = int(tile[number])
            values[number, there] = cells[number] @ tables[t] + part.weighed(log_weights[t])

    at_once = threads(values.size)
    shared_out(joint, len(filled), at_once)
    flat, size = rows.ravel(), num_subjects + 1  # the last of which is for places without a subject
    largest = np.full(size, -np.inf)
    np.maximum.at(largest, flat, values.max(axis=2).ravel())
    largest[-1] = 0.0
    weights = np.exp(values - largest[rows][:, :, None])
    parts = weights.sum(axis=2)
    total = np.bincount(flat, parts.ravel(), size)
    total[-1] = 1.0
    share = np.where(rows < num_subjects, 1 / total[rows], 0.0)
    weights *= share[:, :, None]
    moments = np.zeros((size, powers.shape[2]))
    np.add.at(moments, rows, weights @ powers[tile])
    statistics = np.zeros(eta.shape)
    observed = np.zeros(log_normalizer.shape)
    for t in tables:
        of_tile = filled[tile[filled] == t]

        def some(blocks: range, of_tile: Any = of_tile, t: int = t) -> Float[np.ndarray, "C S"]:
            of_cells = np.zeros(tables[t].shape)
            for number in of_tile[blocks.start : blocks.stop : blocks.step]:
                of_cells += cells[number].T @ weights[number, rows[number] < num_subjects]
            return of_cells

        statistics[t], observed[t] = answers.expected(sum(shared_out(some, len(of_tile), at_once)))
    log_likelihoods = largest[:-1] + np.log(total[:-1])
    return statistics, observed, log_likelihoods, moments[:-1], weights, (parts * share)[rim].sum()
