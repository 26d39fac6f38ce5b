"""Do answers link all subjects and items? Blocks that no subject and no item has in common."""

from typing import NamedTuple

import numpy as np

from irtjax.types import Int, Shaped

AT_A_TIME = 2**24  # cells


class Block(NamedTuple):
    """Subjects and items that a chain of answers links, and no others: their numbers."""

    subjects: Int[np.ndarray, " j"]
    items: Int[np.ndarray, " i"]


def linked_blocks(values: Shaped[np.ndarray, "J I"]) -> list[Block]:
    """The blocks, the largest first; subjects and items without an answer are in none.

    Each is found by going from items to who answered them and back until nothing is added: two or three passes over
    the matrix where all are linked, and a part of one where an item was answered by all.

    Args:
        values: below 0 where an answer is missing.
    """
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
