"""Predictions of held-out grades where each subject answered few items: answer by answer, as `grades` has the cells."""

import jax
import numpy as np

from irtjax.fits.result import Fit
from irtjax.integration.encode import to_answers
from irtjax.integration.nodes import moments, place_nodes
from irtjax.integration.reach import reaching
from irtjax.integration.sparse_answers import SparseAnswers
from irtjax.integration.sparse_posteriors import joint_blocks
from irtjax.item_models.listing import model_of
from irtjax.responses.compressed_rows import rows_of
from irtjax.responses.scaled import Scale
from irtjax.responses.sparse import SparseResponses
from irtjax.types import Float, Int

TOGETHER = 2**22  # numbers of answers at nodes


def predicted_grades(found: Fit, asked: SparseResponses) -> Float[np.ndarray, "N C"]:
    """Of each category of the answers that are asked for, the ability integrated out over what the fit has of it.

    Args:
        found: a fit in one dimension of single answers to these items.
        asked: of the same subjects; how they were answered does not matter. All items have one scale.

    Returns:
        Probabilities, 0 of categories that the fit has not seen of an item.
    """
    responses: SparseResponses = found.responses
    model = model_of(found.item_models, np.array([scale.top for scale in responses.scales]))
    grid = reaching(found.ability, found.ability_se, found.one_population).nodes
    nodes = place_nodes(found.one_population, grid)
    with jax.enable_x64(True):
        answers = to_answers(responses.values, model)
        assert isinstance(answers, SparseAnswers)
        at_nodes = np.asarray(moments(model, found.parameters, nodes, asymptotes=True).mean)
    of_items = at_nodes.T.reshape(responses.num_items, -1, len(nodes))
    place = _places(responses.scales, asked.scales[0], 1 + of_items.shape[1])
    result = np.zeros((asked.num_answers, asked.scales[0].top + 1))
    size = max(1, TOGETHER // (of_items.shape[1] * len(nodes)))

    def of_block(rows: np.ndarray, joint: np.ndarray) -> None:
        weights = np.exp(joint - joint.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        starts, at = rows_of(asked.starts, rows)
        whose = np.repeat(np.arange(len(rows)), np.diff(starts))
        for first in range(0, len(at), size):
            part, own = at[first : first + size], weights[whose[first : first + size]]
            items = asked.items[part]
            above = np.einsum("nq,nsq->ns", own, of_items[items])
            lowest = np.maximum(1 - above.sum(axis=1, keepdims=True), 0.0)
            # what an item has no category for goes into a column beyond the last, which is left out
            whole = np.zeros((len(part), result.shape[1] + 1))
            np.put_along_axis(whole, place[items], np.concatenate([lowest, above], axis=1), axis=1)
            result[part] = whole[:, :-1]

    everyone = np.arange(responses.num_subjects)
    for _ in joint_blocks(found.parameters, answers, nodes, grid.log_weights, everyone, of_block):
        pass
    return result


def _places(scales: tuple[Scale, ...], whole: Scale, number: int) -> Int[np.ndarray, "I K"]:
    """Where each category of each item is on the whole scale; beyond its end where an item has no such category."""
    labels = list(whole.labels or ())
    places = np.full((len(scales), number), len(labels))
    for row, scale in zip(places, scales, strict=True):
        row[: len(scale.labels or ())] = [labels.index(label) for label in scale.labels or ()]
    return places
