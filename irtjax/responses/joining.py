"""Response matrices side by side: more items of the same subjects, or more subjects."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.responses.compressed_rows import sorted_answers
from irtjax.responses.formats.cells import joined
from irtjax.responses.formats.collecting import InMemory
from irtjax.responses.formats.given import Given
from irtjax.responses.matrix import MISSING, ResponseMatrix
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.sparse import SparseResponses, is_sparse, of_matrix


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


def beside(*parts: ScaledResponses) -> ScaledResponses:
    """One test out of the items of several, answered by the same subjects.

    Raises:
        InputError: the subjects are others, or in another order.
    """
    first = parts[0]
    if any(not np.array_equal(part.subject_ids, first.subject_ids) for part in parts):
        raise InputError("tests side by side need the same subjects in the same order")
    trials = [np.ones(part.values.shape, np.int32) if part.trials is None else part.trials for part in parts]
    return ScaledResponses(
        np.concatenate([part.values for part in parts], axis=1),
        first.subject_ids,
        np.concatenate([part.item_ids for part in parts]),
        sum((part.scales for part in parts), ()),
        None if all(part.trials is None for part in parts) else np.concatenate(trials, axis=1),
    )


def concatenate_subjects(parts: Mapping[str, InMemory], sparse: bool | None = False) -> InMemory:
    """All subjects of several sources, on every item that any of them answered, in the order given.

    Args:
        parts: by the name of the source. Where the same subject id is in two of them, all ids become `name/id`:
            sources may count their subjects in the same way.
        sparse: whether single answers are held, and not a matrix; None where `is_sparse` says so. Sources that are held
            so are joined without a matrix.

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
    ids = [part.subject_ids for part in parts.values()]
    number = sum(map(len, ids))
    if len(np.unique(np.concatenate(ids))) < number:
        ids = [np.array([f"{name}/{subject}" for subject in part]) for name, part in zip(parts, ids, strict=True)]
    answered = sum(int(part.counts(axis=1)[1].sum()) for part in parts.values())
    if sparse is None:
        sparse = is_sparse(answered, number, len(items))
    join_them = _answers_of_subjects if sparse else _cells_of_subjects
    return join_them(list(parts.values()), np.concatenate(ids), items)


def _cells_of_subjects(parts: Sequence[InMemory], subject_ids: np.ndarray, items: pd.Index) -> ResponseMatrix:
    values, row = np.full((len(subject_ids), len(items)), MISSING, np.int8), 0
    for part in parts:
        values[row : row + part.num_subjects, items.get_indexer(part.item_ids)] = part.read().values
        row += part.num_subjects
    return ResponseMatrix(values, subject_ids, items.to_numpy(str))


def _answers_of_subjects(parts: Sequence[InMemory], subject_ids: np.ndarray, items: pd.Index) -> SparseResponses:
    columns, row = [], 0
    for part in parts:
        own = part if isinstance(part, SparseResponses) else of_matrix(part)
        place = items.get_indexer(part.item_ids).astype(np.int32)
        columns.append((own.subjects + np.int32(row), place[own.items], own.answers))
        row += part.num_subjects
    subjects, item, answers = map(np.concatenate, zip(*columns, strict=True))
    del columns
    rows = sorted_answers(subjects, item, answers, (len(subject_ids), len(items)))
    return SparseResponses(*rows, subject_ids, items.to_numpy(str))


def concatenate_given(parts: Mapping[str, Given]) -> Given:
    """The responses of several sources as they were given, by subjects; items as in `concatenate_subjects`.

    Args:
        parts: by the name of the source; ids of subjects as in `concatenate_subjects`.

    Raises:
        InputError: one has no item in common with those before it; or one has counts, or judges, and another has not.
    """
    items: dict[str, int] = {}
    for name, part in parts.items():
        if items and not items.keys() & set(part.item_ids):
            raise InputError(f"{name} has no item in common with the others: nothing joins their scales")
        for item in part.item_ids:
            items.setdefault(item, len(items))
    first = next(iter(parts.values()))
    for field in ("trials", "facet"):
        if len({getattr(part, field) is None for part in parts.values()}) > 1:
            raise InputError(f"some of the sources have a column of the {field} of each response, and others have none")
    starts = np.cumsum([0, *(len(part.subject_ids) for part in parts.values())])
    every = [subject for part in parts.values() for subject in part.subject_ids]
    if len(set(every)) < len(every):
        every = [f"{name}/{subject}" for name, part in parts.items() for subject in part.subject_ids]
    facets = list(dict.fromkeys(one for part in parts.values() for one in part.facet_ids))
    places = [np.array([items[item] for item in part.item_ids], np.int32) for part in parts.values()]
    return Given(
        every,
        list(items),
        np.concatenate([part.subjects + np.int32(start) for part, start in zip(parts.values(), starts, strict=False)]),
        np.concatenate([place[part.items] for part, place in zip(parts.values(), places, strict=True)]),
        joined([part.cells for part in parts.values()]),
        None if first.trials is None else np.concatenate([part.trials for part in parts.values()]),  # type: ignore[misc]
        None
        if first.facet is None
        else np.concatenate(
            [np.array([facets.index(r) for r in part.facet_ids], np.int32)[part.facet] for part in parts.values()]
        ),
        facets,
    )


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
