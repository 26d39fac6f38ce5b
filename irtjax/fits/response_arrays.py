"""The responses of a fit as arrays of its archive, and back: bits of a matrix, compressed rows, scales."""

from typing import Any

import numpy as np

from irtjax.errors import InputError
from irtjax.responses.matrix import MISSING, ResponseMatrix
from irtjax.responses.scaled import Scale, ScaledResponses
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.stored import DiscardedResponses, StoredResponses, Totals
from irtjax.responses.values import Responses, on_scales
from irtjax.storage.archives import Arrays
from irtjax.types import Int, UInt

PACKED = 2**24  # responses at a time


def to_arrays(responses: Responses | ScaledResponses) -> Arrays:
    """Right and wrong answers a bit each, others as they are; of those that are read from files the totals."""
    if isinstance(responses, SparseResponses):
        return _of_rows(responses)
    if isinstance(responses, ScaledResponses):
        arrays = {"values": responses.values}
        return arrays if responses.trials is None else arrays | {"trials": responses.trials}
    if isinstance(responses, StoredResponses):  # too large a copy
        return {f"totals.{part}": leaf for part, leaf in responses.values.totals._asdict().items()}
    values = np.asarray(responses.values)
    arrays = {"right": _packed(values, 1)}
    return arrays if values.min() != MISSING else arrays | {"observed": ~_packed(values, MISSING)}


def to_record(responses: Responses | ScaledResponses) -> dict[str, Any]:
    """Ids, and where responses have scales the labels of each scale once, and which one each item has."""
    found: dict[str, Any] = {"subject_ids": responses.subject_ids.tolist(), "item_ids": responses.item_ids.tolist()}
    if not on_scales(responses):
        return found
    scales = responses.scales
    labels = list(dict.fromkeys(scale.labels for scale in scales))
    found |= {"scales": labels, "scale_of_items": [labels.index(scale.labels) for scale in scales]}
    if any(not scale.is_own for scale in scales):
        found["units_of_items"] = [(scale.origin, scale.unit) for scale in scales]
    return found


def from_arrays(arrays: Arrays, record: dict[str, Any]) -> Responses | ScaledResponses:
    """The responses of a fit; of those that it read from files, the totals.

    Raises:
        InputError: rows that do not go together; other exceptions where something is missing.
    """
    ids = np.array(record["subject_ids"]), np.array(record["item_ids"])
    shape = len(ids[0]), len(ids[1])
    if "rows.items" in arrays:
        return _from_rows(arrays, *ids, _scales(record))
    if (scales := _scales(record)) is not None:
        return ScaledResponses(arrays["values"], *ids, scales, arrays.get("trials"))
    if "right" not in arrays:
        totals = Totals(*(arrays[f"totals.{part}"] for part in Totals._fields))
        return StoredResponses(DiscardedResponses(shape), *ids, totals)
    values = np.unpackbits(arrays["right"], count=shape[0] * shape[1]).astype(np.int8)
    if "observed" in arrays:
        values[np.unpackbits(arrays["observed"], count=values.size) == 0] = MISSING
    return ResponseMatrix(values.reshape(shape), record["subject_ids"], record["item_ids"])


def _scales(record: dict[str, Any]) -> tuple[Scale, ...] | None:
    if "scales" not in record:
        return None
    if "units_of_items" in record:
        return tuple(Scale(None, *units) for units in record["units_of_items"])
    scales = [Scale(None if labels is None else tuple(labels)) for labels in record["scales"]]
    return tuple(scales[number] for number in record["scale_of_items"])


def _packed(values: Int[np.ndarray, "J I"], code: int) -> UInt[np.ndarray, " bytes"]:
    """One bit for each response, whether it has a code; some rows at a time: a mask of all would be another matrix."""
    step = 8 * max(1, PACKED // (8 * values.shape[1]))  # whole bytes
    return np.concatenate([np.packbits(values[at : at + step] == code) for at in range(0, len(values), step)])


def _of_rows(responses: SparseResponses) -> Arrays:
    """How many items each subject answered, which, and how, in as few bytes as their sizes need."""
    lengths = np.diff(responses.starts)
    arrays = {
        "rows.lengths": lengths.astype(np.min_scalar_type(int(lengths.max()))),
        "rows.items": responses.items.astype(np.min_scalar_type(responses.num_items - 1)),
    }
    if responses.scales is None:
        return arrays | {"rows.right": np.packbits(responses.answers.astype(bool))}
    arrays["rows.answers"] = responses.answers
    return arrays if responses.trials is None else arrays | {"rows.trials": responses.trials}


def _from_rows(
    arrays: Arrays, subject_ids: np.ndarray, item_ids: np.ndarray, scales: tuple[Scale, ...] | None
) -> SparseResponses:
    """The answers of compressed rows.

    Raises:
        InputError: they are not those of so many subjects to so many items, each at most once.
    """
    lengths, items = arrays["rows.lengths"], arrays["rows.items"]
    for name, of in (("lengths", lengths), ("items", items)):
        if of.dtype.kind != "u" or of.ndim != 1:
            raise InputError(f"damaged: {name} of rows of type {of.dtype} and shape {of.shape}")
    starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    items = items.astype(np.int64)
    of_answers = [arrays["rows.right"]] if scales is None else [arrays["rows.answers"]]
    of_answers += [arrays["rows.trials"]] if "rows.trials" in arrays else []
    expected = -(-len(items) // 8) if scales is None else len(items)
    if (
        len(lengths) != len(subject_ids)
        or starts[-1] != len(items)
        or any(of.shape != (expected,) for of in of_answers)
    ):
        raise InputError(f"damaged: {len(items):,} answers and {len(subject_ids):,} subjects do not go together")
    falling = items[1:] <= items[:-1]
    falling[starts[1:-1][(starts[1:-1] > 0) & (starts[1:-1] < len(items))] - 1] = False
    if falling.any() or (len(items) and items.max() >= len(item_ids)):
        raise InputError(f"damaged: answers are not to {len(item_ids):,} items, or to one of them twice")
    answers = np.unpackbits(of_answers[0], count=len(items)) if scales is None else of_answers[0]
    return SparseResponses(starts, items, answers, subject_ids, item_ids, scales, arrays.get("rows.trials"))
