"""Response matrices side by side: more items of the same subjects, or more subjects."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.responses.matrix import MISSING, ResponseMatrix


def concatenate_items(parts: Sequence[ResponseMatrix]) -> ResponseMatrix:
    """One matrix of all items that the same subjects answered, in the order given.

    Raises:
        InputError: the parts have different subjects.
    """
    first = parts[0]
    if any(not np.array_equal(first.subject_ids, part.subject_ids) for part in parts[1:]):
        raise InputError("response matrices to join along items have different subjects")
    return ResponseMatrix(
        values=np.concatenate([part.values for part in parts], axis=1),
        subject_ids=first.subject_ids,
        item_ids=np.concatenate([part.item_ids for part in parts]),
    )


def concatenate_subjects(parts: Mapping[str, ResponseMatrix]) -> ResponseMatrix:
    """One matrix of the subjects of several sources, on every item that any of them answered, in the order given.

    Args:
        parts: by the name of the source. Where the same subject id is in two of them, all ids become `name/id`:
            sources may count their subjects in the same way.

    Raises:
        InputError: there are no parts, or one has no item in common with those before it: nothing would join their
            scales.
    """
    if not parts:
        raise InputError("no response matrices to join")
    items = pd.Index([])
    for name, part in parts.items():
        known = pd.Index(part.item_ids)
        if len(items) and not known.isin(items).any():
            raise InputError(f"{name} has no item in common with the others: nothing joins their scales")
        items = items.append(known.difference(items, sort=False))
    values = np.full((sum(part.num_subjects for part in parts.values()), len(items)), MISSING, np.int8)
    ids, row = [], 0
    for part in parts.values():
        values[row : row + part.num_subjects, items.get_indexer(part.item_ids)] = part.values
        row += part.num_subjects
        ids.append(part.subject_ids)
    if len(np.unique(np.concatenate(ids))) < row:
        ids = [np.array([f"{name}/{subject}" for subject in part]) for name, part in zip(parts, ids, strict=True)]
    return ResponseMatrix(values, np.concatenate(ids), items.to_numpy(str))


def join(parts: Mapping[str, ResponseMatrix]) -> ResponseMatrix:
    """One matrix of all subjects and items of several sources, joined by both ids; missing where no source has it.

    Args:
        parts: by the name of the source. Ids keep the order in which they first appear.

    Raises:
        InputError: there are no parts, or two have different answers of one subject to one item.
    """
    if not parts:
        raise InputError("no response matrices to join")
    subjects, items = (
        pd.Index(np.concatenate([getattr(part, ids) for part in parts.values()])).unique()
        for ids in ("subject_ids", "item_ids")
    )
    values = np.full((len(subjects), len(items)), MISSING, np.int8)
    for name, part in parts.items():
        place = np.ix_(subjects.get_indexer(part.subject_ids), items.get_indexer(part.item_ids))
        known = values[place]
        differ = (known != MISSING) & (part.values != MISSING) & (known != part.values)
        if differ.any():
            j, i = np.argwhere(differ)[0]
            raise InputError(
                f"{name}: the answer of subject '{part.subject_ids[j]}' to item '{part.item_ids[i]}' is "
                f"{part.values[j, i]}, and {known[j, i]} in another source (1 of {differ.sum():,} such): keep one"
            )
        values[place] = np.where(part.values == MISSING, known, part.values)
    return ResponseMatrix(values, subjects.to_numpy(str), items.to_numpy(str))
