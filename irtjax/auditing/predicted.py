"""What models predict for examples, in the forms that there are: classes, logits, probabilities."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from irtjax.errors import InputError
from irtjax.responses.matrix import MISSING
from irtjax.types import Float, Int, Shaped

SUM = 1e-3  # by which probabilities may miss 1: some were stored in half precision


class Predicted(NamedTuple):
    """Predictions of M models for N examples.

    Attributes:
        classes: (M, N) the likeliest class; -1 where there is no prediction.
        labels: (N,) the class that each example is labelled with.
        confidence: (M, N) probability of the label, NaN where there is no prediction; None of classes alone.
        num_classes: C; of classes alone, one more than the largest that occurs.
    """

    classes: Int[np.ndarray, "M N"]
    labels: Int[np.ndarray, " N"]
    confidence: Float[np.ndarray, "M N"] | None
    num_classes: int

    @property
    def right(self) -> Int[np.ndarray, "M N"]:
        """1 where the prediction is the label, 0 where not, -1 where there is none; int8."""
        return np.where(self.classes < 0, MISSING, self.classes == self.labels).astype(np.int8)


def read_predictions(predictions: Any, labels: Shaped[np.ndarray, " N"] | Sequence[int]) -> Predicted:
    """Predictions in one form. They are read a model at a time: probabilities of all classes are not kept.

    Args:
        predictions: of M models for N examples: classes (M, N), or logits or probabilities (M, N, C), or a list of M
            such arrays. Negative classes and NaN stand for no prediction, as of models that were trained on an example.
            Numbers of a model are probabilities where they are from 0 to 1 and sum to 1, else logits.
        labels: (N,) classes, from 0.

    Raises:
        InputError: models with other shapes than the first; labels of another number, or outside the classes;
            predictions that are not classes.
    """
    given = np.asarray(labels)
    if given.ndim != 1 or not given.size or given.dtype.kind not in "iufb" or not (given >= 0).all():
        raise InputError("`labels`: expected (N,) classes, integers from 0")
    gold = given.astype(int)
    if (gold != given).any():
        raise InputError(f"`labels`: the label of example {np.flatnonzero(gold != given)[0]} is not an integer")
    models = list(predictions) if isinstance(predictions, Iterable) else [predictions]
    if not models:
        raise InputError("`predictions` of no models")
    classes, confidence, shape = [], [], np.shape(models[0])
    for number, model in enumerate(models):
        values = np.asarray(model)
        if values.ndim not in (1, 2) or values.shape != shape or values.dtype.kind not in "iufb":
            raise InputError(
                f"`predictions` of model {number} have the shape {values.shape}, those of the first {shape}: expected "
                "(N,) classes or (N, C) logits or probabilities of each model, all alike"
            )
        if len(values) != len(gold):
            raise InputError(
                f"`predictions` of model {number} are for {len(values):,} examples, `labels` {len(gold):,}"
            )
        found = _classes(number, values) if values.ndim == 1 else _likeliest(values)
        classes.append(found.astype(np.int32))
        if values.ndim == 2:
            confidence.append(_confidence(number, values, gold))
    of_all = np.stack(classes)
    num_classes = shape[1] if len(shape) == 2 else int(max(of_all.max(), gold.max())) + 1
    if (gold >= num_classes).any():
        at = int(np.argmax(gold))
        raise InputError(f"`labels`: example {at} has class {gold[at]}, `predictions` have 0 to {num_classes - 1}")
    return Predicted(of_all, gold, np.stack(confidence) if confidence else None, num_classes)


def _classes(number: int, values: Shaped[np.ndarray, " N"]) -> Int[np.ndarray, " N"]:
    """Classes as integers, -1 for none.

    Raises:
        InputError: something between two classes.
    """
    known = ~(np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, bool))
    found = np.where(known, values, -1).astype(int)
    between = np.flatnonzero(known & (found != values))
    if between.size:
        raise InputError(
            f"`predictions` of model {number}: example {between[0]} has {values[between[0]]}, expected a class; give "
            "probabilities as (N, C), those of two classes too"
        )
    return np.maximum(found, -1)


def _likeliest(values: Shaped[np.ndarray, "N C"]) -> Int[np.ndarray, " N"]:
    return np.where(np.isnan(values).any(axis=1), -1, values.argmax(axis=1))


def _confidence(
    number: int, values: Shaped[np.ndarray, "N C"], labels: Int[np.ndarray, " N"]
) -> Float[np.ndarray, " N"]:
    """Probability of the label; NaN without a prediction. A label outside of the classes is refused later."""
    known = ~np.isnan(values).any(axis=1)
    if np.isposinf(values[known]).any():
        raise InputError(f"`predictions` of model {number} have a logit of inf")
    some = values[known].astype(np.float64)
    are_probabilities = some.size and some.min() >= 0 and (np.abs(some.sum(axis=1) - 1) < SUM).all()
    found = np.full(len(values), np.nan, np.float32)
    at = np.minimum(labels[known], values.shape[1] - 1)
    found[known] = (some if are_probabilities else softmax(some, axis=1))[np.arange(len(some)), at]
    return found
