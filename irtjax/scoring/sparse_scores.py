"""Abilities of subjects who answered few of the items, on items that are known: at a cost that goes with the answers.

Means are sums over nodes that subjects share (`irtjax.integration.sparse_posteriors`), as close together as the answers
of each tell and as far out as its posterior reaches. Modes, and means in several dimensions, go subject by subject over
the items that it answered, in rows of few different lengths.
"""

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from irtjax.integration.encode import to_answers
from irtjax.integration.sparse_answers import SparseAnswers
from irtjax.integration.sparse_e_step import threads
from irtjax.integration.sparse_posteriors import groups, in_order, joint_blocks, needed
from irtjax.kernels.ability import Ability, scale_of
from irtjax.kernels.ability_means import NOTHING, WIDE, nodes_for
from irtjax.kernels.ability_nodes import MOST_NODES, line_nodes
from irtjax.kernels.loops import SEARCHES, mapped
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.quadrature import STANDARD_NODES, rectangular
from irtjax.populations.normal import Population
from irtjax.responses.padded_rows import padded_rows
from irtjax.responses.sparse import SparseResponses
from irtjax.scoring.one_subject import by_method, num_points, require_one_dimension
from irtjax.types import Float, Int

FARTHEST = 2**10  # standard deviations of the population, within which posteriors are looked for


class Found(NamedTuple):
    """Of some subjects (B,): positions, means and standard deviations, and whose posterior reaches beyond the nodes."""

    rows: Int[np.ndarray, " B"]
    mean: Float[np.ndarray, " B"]
    sd: Float[np.ndarray, " B"]
    cut: Any


def abilities_by_answer(
    responses: SparseResponses, items: ItemParameters, method: str, population: Population
) -> Ability:
    """As `irtjax.scoring.abilities.abilities`: (J,) or (J, D), in float64, to rounding the same.

    Args:
        responses: right and wrong, to these items in their order.
        items: parameters.
        method: one of `irtjax.scoring.one_subject.METHODS`.
        population: of "eap" and "map".
    """
    require_one_dimension(method, items)
    dims = items.slope.shape[1]
    ability, error = (np.full((responses.num_subjects, dims), np.nan) for _ in range(2))
    if method == "eap" and dims == 1:
        found = _means(responses, items, *(float(np.squeeze(x)) for x in population))
    else:
        found = _subject_by_subject(responses, items, method, population)
    for rows, mean, sd, _ in found:
        ability[rows], error[rows] = mean.reshape(-1, dims), sd.reshape(-1, dims)
    return Ability(*(leaf[:, 0] if dims == 1 else leaf for leaf in (ability, error)))  # type: ignore[arg-type]


def _means(responses: SparseResponses, items: ItemParameters, mean: float, sd: float) -> Iterator[Found]:
    """Posterior means and standard deviations in one dimension."""
    answers = to_answers(responses.values)
    assert isinstance(answers, SparseAnswers)
    everyone, in_population = np.arange(responses.num_subjects), Population(np.array([mean]), np.array([sd]))
    steepest = float((np.abs(items.slope) * sd).max())
    if nodes_for(steepest) is None:  # as of the whole matrix: no nodes of equal distances are enough
        line = line_nodes(items, int(np.diff(responses.starts).max(initial=0)), mean, sd)
        yield from _on_nodes(items, answers, line.nodes, line.log_weights, everyone)
        return
    apart = needed(items, responses, sd)
    left, bound = everyone, WIDE
    while left.size:
        cut = []
        for places, number in groups(apart[left], bound, MOST_NODES):
            rows = left[places]
            if number == MOST_NODES:
                yield from _subject_by_subject(responses, items, "eap", in_population, rows)
                continue
            grid = rectangular(number, bound)
            for found in _on_nodes(items, answers, mean + sd * grid.nodes[:, 0], grid.log_weights, rows):
                yield found
                if bound < FARTHEST:
                    cut.append(found.rows[found.cut])
        left, bound = np.concatenate([*cut, np.zeros(0, int)]), 2 * bound


def _on_nodes(
    items: ItemParameters,
    answers: SparseAnswers,
    nodes: Float[np.ndarray, " Q"],
    log_weights: Float[np.ndarray, " Q"],
    rows: Int[np.ndarray, " N"],
) -> Iterator[Found]:
    def of_block(at: np.ndarray, joint: np.ndarray) -> Found:
        largest = joint.max(axis=1)
        cut = np.maximum(joint[:, 0], joint[:, -1]) > largest - NOTHING
        joint -= largest[:, None]
        np.exp(joint, out=joint)
        joint /= joint.sum(axis=1)[:, None]
        mean = joint @ nodes
        away = nodes[None, :] - mean[:, None]
        away *= away
        away *= joint
        return Found(at, mean, np.sqrt(away.sum(axis=1)), cut)

    yield from joint_blocks(items, answers, nodes[:, None], log_weights, rows, of_block)


def _subject_by_subject(
    responses: SparseResponses,
    items: ItemParameters,
    method: str,
    population: Population,
    subjects: Int[np.ndarray, " n"] | None = None,
) -> Iterator[Found]:
    number = nodes_for(float((np.abs(items.slope) * np.asarray(population.sd)).max())) or STANDARD_NODES
    with jax.enable_x64(True):
        parameters = jax.tree.map(jnp.asarray, items)
        normal = Population(*(jnp.asarray(np.squeeze(x), float) for x in population))
        scale = scale_of(parameters, None)

    def block(part: tuple[np.ndarray, np.ndarray, np.ndarray]) -> Found:
        rows, places, answers = part
        with jax.enable_x64(True):
            found = _rows(method, number, places, answers, parameters, normal, scale)
            ability, error = (np.asarray(leaf)[: len(rows)] for leaf in found)
        return Found(rows, ability, error, None)

    yield from in_order(block, padded_rows(responses, subjects), threads(responses.num_answers * number))


@functools.partial(jax.jit, static_argnums=(0, 1))
def _rows(
    method: str,
    num_nodes: int,
    places: jax.Array,
    answers: jax.Array,
    items: ItemParameters,
    population: Population,
    scale: tuple[jax.Array, jax.Array],
) -> Ability:
    one = by_method(method, num_nodes, population, scale)

    def of_row(row: tuple[jax.Array, jax.Array]) -> Ability:
        at, answered = row
        return one(answered, jax.tree.map(lambda leaf: leaf[at], items))

    each = places.shape[1] * num_points(method, num_nodes)
    return mapped(of_row, (places, answers), each, SEARCHES)
