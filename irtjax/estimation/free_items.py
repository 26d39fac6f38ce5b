"""Items with parameters of their own in each group: a column of responses for each, where the others are missing."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from irtjax.errors import InputError
from irtjax.estimation.grouping import ALL, FREE, Membership
from irtjax.responses.matrix import MISSING, ResponseMatrix
from irtjax.responses.scaled import ScaledResponses
from irtjax.responses.sparse import SparseResponses
from irtjax.responses.values import on_scales
from irtjax.types import Int, Shaped

FreeByGroup = Mapping[str, str] | Sequence[str]


class FreeItems(NamedTuple):
    """Responses with a column for each group at some items.

    Attributes:
        responses: of the same kind; ids of these columns are as in "item_07 (women)".
        membership: the groups, with the columns.
        source: (I') number of the item that each column is of.
        group: (I') name of the group, empty where all groups have the item in common.
    """

    responses: Any
    membership: Membership
    source: Int[np.ndarray, " columns"]
    group: Shaped[np.ndarray, " columns"]


def as_kinds(free: FreeByGroup, item_ids: Shaped[np.ndarray, " I"]) -> dict[int, str]:
    """What is free, by the number of the item.

    Args:
        free: by item id "all", "difficulty" or "slope"; or ids, of items of which all is free.
        item_ids: that there are.

    Raises:
        InputError: an item that is not there, or something else.
    """
    given = dict(free) if isinstance(free, Mapping) else dict.fromkeys([free] if isinstance(free, str) else free, ALL)
    places = {str(item): at for at, item in enumerate(item_ids)}
    for item, kind in given.items():
        if str(item) not in places:
            raise InputError(f"`free_by_group`: no item '{item}'")
        if kind not in FREE:
            raise InputError(f"`free_by_group`: {kind!r} of item '{item}', expected one of {', '.join(FREE)}")
    return {places[str(item)]: kind for item, kind in given.items()}


def with_free_items(responses: Any, found: Membership, kinds: Mapping[int, str]) -> FreeItems:
    """Splits items.

    Args:
        responses: right/wrong or others, in memory.
        found: the groups.
        kinds: what is free of which item (`as_kinds`).

    Raises:
        InputError: all items are free, so that nothing links the groups; a name of a column is there already; an item
            that one group alone answered; or, where something of it stays the same, that a group answered alike, or by
            other categories than another.
    """
    ids = responses.item_ids.astype(str)
    if len(kinds) == len(ids):
        raise InputError("`free_by_group`: all items are free, and nothing puts the groups on one scale: keep some")
    _require_tied(responses, found, kinds)
    source: list[int] = []
    group: list[int] = []
    copies = []
    for item in range(len(ids)):
        if item not in kinds:
            source, group = [*source, item], [*group, -1]
            continue
        given = answers_by_group(responses, found, item)
        answered = [at for at, name in enumerate(found.names) if str(name) in given]
        copies.append((kinds[item], np.arange(len(source), len(source) + len(answered))))
        source, group = source + [item] * len(answered), group + answered
    columns, of_group = np.array(source), np.array(group)
    names = np.array([ids[i] if g < 0 else f"{ids[i]} ({found.names[g]})" for i, g in zip(source, group, strict=True)])
    if len(np.unique(names)) < len(names):
        raise InputError(f"`free_by_group`: items are called {names[of_group >= 0][0]!r} already")
    labels = np.array(["" if g < 0 else found.names[g] for g in group])
    found = found._replace(copies=tuple(copies))
    if isinstance(responses, SparseResponses):
        return FreeItems(_by_the_answer(responses, found, columns, of_group, names), found, columns, labels)
    mine = (of_group < 0) | (found.member[:, None] == of_group)
    values = np.asarray(responses.values)[:, columns]
    values = np.where(mine, values, np.asarray(MISSING, values.dtype))
    split: Any
    if isinstance(responses, ScaledResponses):
        split = dataclasses.replace(
            responses,
            values=values,
            item_ids=names,
            scales=tuple(responses.scales[i] for i in columns),
            trials=None if responses.trials is None else np.asarray(responses.trials)[:, columns],
        )
    else:
        split = ResponseMatrix(values, responses.subject_ids, names)
    return FreeItems(split, found, columns, labels)


def _by_the_answer(
    responses: SparseResponses,
    found: Membership,
    columns: Int[np.ndarray, " columns"],
    of_group: Int[np.ndarray, " columns"],
    names: Shaped[np.ndarray, " columns"],
) -> SparseResponses:
    """The same answers, to the columns of their subjects' groups; these are in the order of the items."""
    place = np.zeros((responses.num_items, len(found.names)), np.int32)
    for column, (item, group) in enumerate(zip(columns, of_group, strict=True)):
        place[item, slice(None) if group < 0 else group] = column
    return SparseResponses(
        responses.starts,
        place[responses.items, found.member[responses.subjects]],
        responses.answers,
        responses.subject_ids,
        names,
        None if responses.scales is None else tuple(responses.scales[i] for i in columns),
        responses.trials,
        responses.averaged,
    )


def _require_tied(responses: Any, found: Membership, kinds: Mapping[int, str]) -> None:
    """Refuses what could be free or the same in name only.

    Raises:
        InputError: names the item.
    """
    for item, kind in kinds.items():
        given = answers_by_group(responses, found, item)
        name = f"`free_by_group`: item '{responses.item_ids[item]}'"
        if len(given) < 2:
            raise InputError(f"{name} was answered by one group alone: there is nothing to be free")
        alike = next((group for group, values in given.items() if len(values) < 2), None)
        if kind != ALL and alike is not None:
            raise InputError(
                f"{name}: all of '{alike}' answered alike, so that nothing of it can stay the same; free {ALL}"
            )
        categories = on_scales(responses) and responses.scales[item].labels is not None
        if kind != ALL and categories and len({tuple(values) for values in given.values()}) > 1:
            raise InputError(f"{name}: its groups used different categories, which cannot stay the same; free {ALL}")


def answers_by_group(responses: Any, found: Membership, item: int) -> dict[str, Shaped[np.ndarray, " n"]]:
    """The different answers to an item, by the name of each group that answered it."""
    if isinstance(responses, SparseResponses):
        there = np.flatnonzero(responses.items == item)
        member, answers = found.member[responses.subjects[there]], responses.answers[there]
    else:
        column = np.asarray(responses.values)[:, item]
        member, answers = found.member[column >= 0], column[column >= 0]
    groups = {str(name): np.unique(answers[member == at]) for at, name in enumerate(found.names)}
    return {name: values for name, values in groups.items() if len(values)}
