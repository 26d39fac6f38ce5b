"""Responses, encoded as a model has them, as the maps over nodes read them: dense on the device, or by the answer."""

import jax
import numpy as np

from irtjax.integration.nodes import Answers
from irtjax.integration.sparse_answers import SparseAnswers, sparse_answers
from irtjax.item_models.binary import BINARY
from irtjax.item_models.protocol import ItemModel
from irtjax.responses.matrix import MISSING
from irtjax.responses.sparse_values import SparseValues
from irtjax.responses.values import Values
from irtjax.types import Float, Int, Shaped

AnyAnswers = Answers | SparseAnswers


def to_answers(
    values: Shaped[np.ndarray, "J I"] | Values,
    model: ItemModel = BINARY,
    trials: Int[np.ndarray, "..."] | None = None,
    member: Int[np.ndarray, " J"] | None = None,
    predictors: Float[np.ndarray, "J C"] | None = None,
) -> AnyAnswers:
    """Encoded responses of J subjects to I items.

    Args:
        values: as the model encodes them; negative where missing.
        model: what they say of ability.
        trials: (J, I) of each, or (N,) of each answer of sparse ones; None for one.
        member: of each subject, the number of its group.
        predictors: of each subject's mean ability.
    """
    groups = None if member is None else member[:, None]
    if isinstance(values, SparseValues):
        own = values.responses
        return sparse_answers(
            own.starts, own.items, own.answers, own.num_items, model, trials, member=groups, predictors=predictors
        )
    cells = np.asarray(values)
    complete = bool((cells != MISSING).all())
    return jax.device_put(Answers(cells, model, complete, trials, member=groups, predictors=predictors))
