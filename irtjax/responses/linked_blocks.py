"""Do answers link all subjects and items? Blocks that no subject and no item has in common."""

from typing import NamedTuple

import numpy as np
import scipy.sparse

from irtjax.responses.sparse_values import SparseValues
from irtjax.types import Int, Shaped

AT_A_TIME = 2**24  # cells


class Block(NamedTuple):
    """Subjects and items that a chain of answers links, and no others: their numbers."""

    subjects: Int[np.ndarray, " j"]
    items: Int[np.ndarray, " i"]


def linked_blocks(values: Shaped[np.ndarray, "J I"] | SparseValues) -> list[Block]:
    """The blocks, the largest first; subjects and items without an answer are in none.

    Each is found by going from items to who answered them and back until nothing is added: two or three passes over
    the matrix where all are linked, and a part of one where an item was answered by all.

    Args:
        values: below 0 where an answer is missing.
    """
    if isinstance(values, SparseValues):
        return _by_the_answer(values)
    values = np.asarray(values)
    num_subjects, num_items = values.shape
    size = max(1, AT_A_TIME // num_items)
    parts = [slice(at, at + size) for at in range(0, num_subjects, size)]
    answered = sum((values[part] >= 0).sum(axis=0) for part in parts)
    if answered.max() == num_subjects:
        return [Block(np.arange(num_subjects), np.flatnonzero(answered))]
    left, of_subject = answered > 0, np.full(num_subjects, -1)
    found: list[Block] = []
    while left.any():
        items = np.zeros(num_items, bool)
        items[int(np.argmax(np.where(left, answered, 0)))] = True
        while True:
            reached = items.copy()
            for part in parts:
                new = (of_subject[part] < 0) & (values[part][:, items] >= 0).any(axis=1)
                of_subject[part][new] = len(found)
                reached |= (values[part][new] >= 0).any(axis=0)
            if (reached == items).all():
                break
            items = reached
        found.append(Block(np.flatnonzero(of_subject == len(found)), np.flatnonzero(items)))
        left &= ~items
    return sorted(found, key=lambda block: -len(block.subjects))


def _by_the_answer(values: SparseValues) -> list[Block]:
    from scipy.sparse.csgraph import connected_components  # takes a while to import, and few need it

    own, (num_subjects, num_items) = values.responses, values.shape
    size = num_subjects + num_items
    ends = np.concatenate([own.starts, np.full(num_items, own.starts[-1])])
    links = scipy.sparse.csr_array((np.ones(own.num_answers, np.int8), num_subjects + own.items, ends), (size, size))
    number, label = connected_components(links, directed=False)
    subjects, items = label[:num_subjects], label[num_subjects:]
    sizes = np.bincount(subjects, minlength=number), np.bincount(items, minlength=number)
    found = np.flatnonzero((sizes[0] > 0) & (sizes[1] > 0))  # others have no answer
    found = found[np.argsort(-sizes[0][found], kind="stable")]
    of_subjects, of_items = (np.argsort(labels, kind="stable") for labels in (subjects, items))
    ends_of = [np.cumsum(one) for one in sizes]
    return [
        Block(
            *(
                np.sort(order[end[block] - one[block] : end[block]])
                for order, end, one in zip((of_subjects, of_items), ends_of, sizes, strict=True)
            )
        )
        for block in found
    ]
