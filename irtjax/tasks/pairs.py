"""Pairs of sentences as one row of word pieces, without padding between them: a fifth less for an encoder to read."""

import dataclasses
from typing import Any

import numpy as np

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.tasks.task import PADDING, Task, TextFormat
from irtjax.tasks.text import least_padded


@checks_types
def packed(task: Task) -> Task:
    """The task with both sentences of an example in one row, for the network `bert`; others cannot read it.

    The word pieces of the second sentence have numbers that are V higher. A task of single sentences stays as it is.

    Raises:
        InputError: the task has no encoder.
    """
    format = task.format
    if not isinstance(format, TextFormat) or format.encoder is None:
        raise InputError(f"{task.name} was loaded without an encoder: name its folder, `pretrained`")
    if len(task.train.inputs) == 1:
        return task
    lengths = {name: sum((part != PADDING).sum(1) for part in task.split(name).inputs) for name in task.splits}
    longest = max(int(own.max()) for own in lengths.values())
    buckets = least_padded(lengths["train"], longest)
    words, width = format.encoder.config.words, buckets[-1][0]
    splits: dict[str, Any] = {
        name: task.split(name)._replace(inputs=(pack(tuple(task.split(name).inputs), words, width),))
        for name in task.splits
    }
    return dataclasses.replace(task, format=dataclasses.replace(format, buckets=buckets, packed=True), **splits)


def pack(inputs: tuple[np.ndarray, ...], words: int, width: int) -> np.ndarray:
    """Rows (N, L₁) and (N, L₂) as (N, width), padding at the end.

    What does not fit is cut off: of the first sentence as far as the second needs its place, but no more than to half
    the width.

    Args:
        inputs: numbers of the word pieces of both sentences.
        words: V, what is added to those of the second.
        width: of the rows.
    """
    first, second = inputs
    of_first, of_second = ((part != PADDING).sum(1) for part in inputs)
    of_first = np.minimum(of_first, np.maximum(width - of_second, width // 2))
    ends = np.minimum(of_first + of_second, width)
    rows = np.full((len(first), width), PADDING, np.min_scalar_type(2 * words - 1))
    place = np.arange(width)
    rows[place < of_first[:, None]] = first[np.arange(first.shape[1]) < of_first[:, None]]
    of_pair = second[np.arange(second.shape[1]) < (ends - of_first)[:, None]]
    rows[(place >= of_first[:, None]) & (place < ends[:, None])] = of_pair.astype(rows.dtype) + rows.dtype.type(words)
    return rows
