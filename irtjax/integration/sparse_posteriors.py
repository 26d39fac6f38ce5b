"""Posteriors of abilities of subjects who answered few of the items, answer by answer.

A subject needs nodes as close together as its own answers tell it, not as those of the subject who answered most. So
subjects are sorted by the nodes that they need, and each group has a grid of its own, on which log-likelihoods are sums
over answers of rows of a table (`sparse_answers`). With nodes h apart the trapezoidal rule integrates a normal
posterior of standard deviation s with an error of about 2 exp(-2π² s²/h²), and a logistic curve of slope a with one of
exp(-2π²/(a h)) (Trefethen and Weideman 2014): both are less than rounding here.
"""

import collections
import itertools
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import numpy as np

from irtjax.integration.encode import to_answers
from irtjax.integration.nodes import natural
from irtjax.integration.posteriors import OWN_NODES, SHARED_NODES, Posteriors, close_in, in_blocks, moments, posteriors
from irtjax.integration.sparse_answers import SparseAnswers
from irtjax.integration.sparse_e_step import WEIGHTS, threads
from irtjax.integration.sparse_grid import BLAS
from irtjax.item_models.protocol import Items
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.quadrature import BOUND, Quadrature, rectangular, spacing
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.sparse_values import SparseValues
from irtjax.types import Float, Int

WIDTHS = 0.75  # nodes at most so many of the smallest standard deviation apart that a posterior can have
STEEPEST = 0.6  # slope of a curve times the distance of nodes, at most
FINER = 2**0.5  # one group's nodes are so many times as close together as those of the next
CLOSING = 512  # subjects that get nodes of their own at a time


class Group(NamedTuple):
    """Subjects who share nodes.

    Attributes:
        rows: (N,) positions.
        number: of nodes in each dimension.
    """

    rows: Int[np.ndarray, " N"]
    number: int


def needed(items: ItemParameters, responses: SparseResponses, sd: float) -> Float[np.ndarray, " J"]:
    """How far apart nodes may be for each subject, in standard deviations of the population, D = 1.

    No answer to an item of slope a has more Fisher information than a²/4.
    """
    steepness = sd * np.abs(np.asarray(items.slope, float)[:, 0])
    information = 1 + np.bincount(responses.subjects, (steepness**2 / 4)[responses.items], responses.num_subjects)
    steepest = np.maximum.reduceat(np.append(steepness[responses.items], 0), responses.starts[:-1])
    steepest[np.diff(responses.starts) == 0] = 0
    return np.minimum(WIDTHS * information**-0.5, STEEPEST / np.maximum(steepest, STEEPEST))


def groups(apart: Float[np.ndarray, " J"], bound: float, most: int) -> Iterator[Group]:
    """Subjects by the nodes that they need, within `bound` standard deviations of the mean of the population.

    Those who need more than `most` get so many.
    """
    level = np.ceil(np.log(np.maximum(1 / apart, 1)) / np.log(FINER) - 1e-9).astype(int)
    for one in np.unique(level):
        number = 2 * int(np.ceil(bound * FINER**one)) + 1
        rows = np.flatnonzero(level == one) if number < most else np.flatnonzero(level >= one)
        yield Group(rows, min(number, most))
        if number >= most:
            return


def posteriors_of(
    items: ItemParameters,
    values: Int[np.ndarray, "J I"] | SparseValues,
    mean: Float[np.ndarray, " D"],
    sd: Float[np.ndarray, " D"],
) -> Iterator[Posteriors]:
    """As `irtjax.integration.posteriors.posteriors`; of sparse responses by the answer, within the same bounds."""
    if not isinstance(values, SparseValues):
        yield from posteriors(items, values, mean, sd)
        return
    responses, dims, answers = values.responses, len(mean), to_answers(values)
    assert isinstance(answers, SparseAnswers)
    most = SHARED_NODES.get(dims, 9)
    if dims == 1:
        found = groups(needed(items, responses, float(sd[0])), BOUND, most)
    else:
        found = iter([Group(np.arange(responses.num_subjects), most)])
    for rows, number in found:
        grid = _trapezoidal(number) if dims == 1 else rectangular(number, dims=dims)
        nodes = mean + sd * grid.nodes

        def of_block(
            at: np.ndarray, joint: np.ndarray, nodes: np.ndarray = nodes, grid: Quadrature = grid, number: int = number
        ) -> tuple[Posteriors, np.ndarray, np.ndarray]:
            centre, frame = (np.broadcast_to(one, (len(at), *one.shape)) for one in (mean, np.diag(sd)))
            return moments(at, nodes, grid.nodes, joint, centre, frame, spacing(number))

        for block, next_frame, resolved in joint_blocks(items, answers, nodes, grid.log_weights, rows, of_block):
            if resolved.all() or (dims == 1 and number < most):
                yield block
                continue
            if resolved.any():
                yield block.choose(resolved)
            wide = block.choose(~resolved)
            yield from _closing_in(items, responses, mean, sd, wide.rows, wide.mean, next_frame[~resolved])


def _trapezoidal(number: int) -> Quadrature:
    """With half a weight at the ends, where the density is not yet 0: else nodes as far apart would tell."""
    grid = rectangular(number)
    log_weights = grid.log_weights.copy()
    log_weights[[0, -1]] -= np.log(2)
    return Quadrature(grid.nodes, log_weights)


def joint_blocks(
    items: Items,
    answers: SparseAnswers,
    nodes: Float[np.ndarray, "Q D"],
    log_weights: Float[np.ndarray, " Q"],
    rows: Int[np.ndarray, " N"],
    of_block: Callable[[np.ndarray, np.ndarray], Any],
) -> Iterator[Any]:
    """What a function makes of the log of likelihood times weights (B, Q) of subjects, block after block in order.

    Args:
        items: parameters, of the model of the answers.
        answers: of all subjects.
        nodes: that these subjects share.
        log_weights: of the population.
        rows: the subjects.
        of_block: of their positions (B,) and the logarithms; it runs on a thread of its own.
    """
    with jax.enable_x64(True):
        at_nodes = natural(answers.model, items, nodes)
    table = answers.table(np.asarray(at_nodes.eta), np.asarray(at_nodes.log_normalizer))
    whole = len(rows) == answers.num_subjects
    size = max(64, WEIGHTS // len(nodes))

    def block(first: int) -> Any:
        at = slice(first, min(first + size, len(rows)))
        part = answers.rows(at if whole else rows[at])
        return of_block(rows[at], part.matrix() @ table + log_weights[None, :])

    yield from in_order(block, range(0, len(rows), size), threads(len(rows) * len(nodes)))


def in_order(task: Callable[[Any], Any], parts: Iterable[Any], at_once: int) -> Iterator[Any]:
    """Results of a task for each part, in their order, a few of them ahead of the caller, on threads."""
    if at_once == 1:
        yield from map(task, parts)
        return
    coming: collections.deque[Future] = collections.deque()
    left = iter(parts)
    with BLAS.limit(limits=1, user_api="blas"), ThreadPoolExecutor(at_once) as pool:
        for part in itertools.islice(left, at_once):
            coming.append(pool.submit(task, part))
        while coming:
            done = coming.popleft().result()
            for part in itertools.islice(left, 1):
                coming.append(pool.submit(task, part))
            yield done


def _closing_in(
    items: ItemParameters,
    responses: SparseResponses,
    mean: np.ndarray,
    sd: np.ndarray,
    rows: np.ndarray,
    centre: np.ndarray,
    frame: np.ndarray,
) -> Iterator[Posteriors]:
    """Nodes around the posterior of each, a few subjects at a time with the items that any of them answered."""
    for first in range(0, len(rows), CLOSING):
        some = rows[first : first + CLOSING]
        own = responses.choose_subjects(some)
        chosen = np.unique(own.items)
        values = own.choose_items(chosen).values[:, :]
        blocks = in_blocks(ItemParameters(*(np.asarray(leaf)[chosen] for leaf in items)))
        places, part = np.arange(len(some)), slice(first, first + CLOSING)
        number = OWN_NODES.get(len(mean), 9)
        for found in close_in(places, values, blocks, mean, sd, centre[part], frame[part], number):
            yield found._replace(rows=some[found.rows])
