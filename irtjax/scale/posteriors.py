"""Posteriors of the subjects of a test on nodes that they share: what is expected over them follows."""

from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np

from irtjax.integration.sparse_answers import sparse_answers
from irtjax.kernels.ability_nodes import line_nodes
from irtjax.scale.tested import ENTRIES, Tested
from irtjax.scoring.family_nodes import family_nodes
from irtjax.scoring.family_scores import AT_ENDS, FARTHEST_END, NEAREST_END, rescaled
from irtjax.types import Float

OF_ANSWER = 32  # numbers that are held of a response and its posterior


class Nodes(NamedTuple):
    """Q abilities that stand for the population, in logits, and the logarithms of their weights."""

    theta: Float[np.ndarray, " Q"]
    log_weights: Float[np.ndarray, " Q"]


def nodes_of(test: Tested) -> Nodes:
    """Nodes that resolve the posterior of every subject."""
    mean, sd = (float(x) for x in test.population)
    number = int(np.diff(test.single.starts).max(initial=1))
    if test.known is None:
        line = line_nodes(test.items, number, mean, sd)
        return Nodes(np.asarray(line.nodes), np.asarray(line.log_weights))
    end, most = NEAREST_END, np.zeros(len(test.top))
    np.maximum.at(most, test.single.items, test.times)
    with jax.enable_x64(True):
        centre, unit, items = rescaled(test.known._replace(parameters=test.items), test.population, in_population=True)
        while True:
            line = family_nodes(test.model, items, most, number, end)
            nodes = Nodes(centre + unit * np.asarray(line.nodes), np.asarray(line.log_weights))
            ends = max(part.weights[:, [0, -1]].max() for part in posteriors(test, nodes))
            if ends <= AT_ENDS or 2 * end > FARTHEST_END:
                return nodes
            end *= 2  # responses say that someone is there


class Posteriors(NamedTuple):
    """Of some subjects.

    Attributes:
        rows: which subjects.
        at: their responses.
        weights: (B, Q) of the nodes.
    """

    rows: slice
    at: slice
    weights: Float[np.ndarray, "B Q"]


def posteriors(test: Tested, nodes: Nodes) -> Iterator[Posteriors]:
    """Of all subjects, some at a time."""
    single = test.single
    trials = test.times.astype(int) if (test.times != 1).any() else None
    answers = sparse_answers(single.starts, single.items, test.codes, len(test.top), test.model, trials)
    natural = test.model.natural(test.items, nodes.theta[:, None], asymptotes=True)
    table = answers.table(*(np.asarray(leaf) for leaf in natural))
    for rows, at in some_subjects(test, len(nodes.theta), OF_ANSWER):
        height = answers.rows(rows).matrix() @ table + nodes.log_weights[None, :]
        weights = np.exp(height - height.max(axis=1, keepdims=True))
        yield Posteriors(rows, at, weights / weights.sum(axis=1, keepdims=True))


def some_subjects(test: Tested, entries: int, of_answer: int = 1) -> Iterator[tuple[slice, slice]]:
    """Subjects some at a time, and their responses: as many as take `ENTRIES` numbers.

    Args:
        test: of all subjects.
        entries: that a subject takes.
        of_answer: that each of its responses takes.
    """
    starts = test.single.starts
    ends = np.concatenate([[0], np.cumsum(entries + of_answer * np.diff(starts))])
    first = 0
    while first < test.num_subjects:
        last = max(first + 1, int(np.searchsorted(ends, ends[first] + ENTRIES, side="right")) - 1)
        yield slice(first, last), slice(int(starts[first]), int(starts[last]))
        first = last
