"""Items with soft labels, and a task without them: nothing that is learned from is also tested on."""

import dataclasses

import numpy as np

from irtjax.errors import InputError
from irtjax.tasks import Task
from irtjax.tasks.item_ids import letters
from irtjax.tasks.task import SPLITS, Split, select
from irtjax.types import Int


def without(task: Task, items: Split) -> tuple[Task, dict[str, int]]:
    """The task without the examples whose text is that of an item, whatever their label; `extra` is left out.

    Only letters and digits are compared, because spaces and punctuation differ between copies of a corpus.

    Args:
        task: of text.
        items: with texts.

    Returns:
        The task, and how many examples were removed from each split.

    Raises:
        InputError: texts are not known, or none of them is an example of the task, or a split has nothing left.
    """
    texts = {name: task.split(name).texts for name in SPLITS}
    known = {name: some for name, some in texts.items() if some is not None}
    if items.texts is None or len(known) < len(texts):
        raise InputError(f"{task.name}: examples have no texts, by which items could be found among them")
    of_items = {letters(text) for text in items.texts}
    kept = {name: np.array([letters(text) not in of_items for text in some]) for name, some in known.items()}
    if all(rows.all() for rows in kept.values()):
        raise InputError(
            f"none of the {len(items.labels):,} items is an example of {task.name}; are they of another task?"
        )
    for name, rows in kept.items():
        if not rows.any():
            raise InputError(f"all examples of the {name} split of {task.name} are among the items")
    train, validation, test = (select(task.split(name), kept[name]) for name in SPLITS)
    removed = {name: int((~rows).sum()) for name, rows in kept.items()}
    return dataclasses.replace(task, train=train, validation=validation, test=test, extra=None), removed


def unseen(further: Split, *others: Split) -> Split:
    """The examples of a split whose text is in no other split.

    Raises:
        InputError: texts are not known, or none is left.
    """
    if further.texts is None or any(other.texts is None for other in others):
        raise InputError("examples have no texts, by which copies could be found among them")
    known = {letters(text) for other in others if other.texts is not None for text in other.texts}
    rows = np.array([letters(text) not in known for text in further.texts])
    if not rows.any():
        raise InputError(f"all {rows.size:,} examples are among the soft items, or in a split that is tested on")
    return select(further, rows)


def take_out(task: Task, rows: Int[np.ndarray, " I"]) -> tuple[Task, Split]:
    """The task without some of its training examples, which may be all of them, and these."""
    left = np.setdiff1d(np.arange(len(task.train.labels)), rows)
    return dataclasses.replace(task, train=select(task.train, left), extra=None), select(task.train, rows)
