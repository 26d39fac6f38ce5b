"""Labels that people gave to items, one by one: of annotators who labelled few items each, or in a table of all."""

import csv
import warnings
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.responses.agreement import NO_ANSWER
from irtjax.storage.sources import csv_rows, reading
from irtjax.storage.tables import read_table
from irtjax.types import Bool, Int, Shaped

ITEMS, LABELS = ("item_id", "item"), ("label", "answer", "response")  # columns of a table with one row per label


class Annotations(NamedTuple):
    """N labels that R people gave to I items.

    Attributes:
        people: (N,) who labelled.
        items: (N,) what.
        labels: (N,) position in `names`, or the number of a class.
        num_people: R.
        item_ids: (I,) strings, unique.
        names: the labels that occur.
    """

    people: Int[np.ndarray, " N"]
    items: Int[np.ndarray, " N"]
    labels: Int[np.ndarray, " N"]
    num_people: int
    item_ids: Shaped[np.ndarray, " I"]
    names: Sequence[str] = ()

    def counts(self, num_classes: int, chosen: Bool[np.ndarray, " N"] | None = None) -> Int[np.ndarray, "I C"]:
        """How often each item was given each class, in all or in some of the labels."""
        cells = self.items.astype(np.int64) * num_classes + self.labels
        cells = cells if chosen is None else cells[chosen]
        return np.bincount(cells, minlength=len(self.item_ids) * num_classes).reshape(-1, num_classes)

    def as_classes(self, number_of: dict[str, int]) -> "Annotations":
        """With the numbers of classes in place of the names of labels, all of which have one."""
        numbers = np.array([number_of[name] for name in self.names], int)
        return self._replace(labels=numbers[self.labels], names=())


def of_codes(answers: Int[np.ndarray, "R I"], item_ids: Shaped[np.ndarray, " I"] | None = None) -> Annotations:
    """Of class numbers (R, I), -1 where one did not answer."""
    people, items = np.nonzero(answers >= 0)
    ids = np.arange(answers.shape[1]).astype(str) if item_ids is None else item_ids
    return Annotations(people, items, answers[people, items], len(answers), ids)


@checks_types
def read_annotations(path: str | Path) -> Annotations:
    """The labels in a CSV; cells that are empty or `na` are none.

    It has one row per label, with columns `item_id` and `label` (or `item`; `answer` or `response`), and the annotator
    in the first of the others; or one row per person, whose id is first, and one column per item.

    Raises:
        InputError: it cannot be read, lacks an id, or has two labels of a person for an item.
    """
    with reading(path) as file:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            header = [name.strip() for name in next(csv_rows(lines), (0, []))[1]]
        columns = _long(header)
        if columns is not None:
            return _of_rows(file, header, columns)
    table = read_table(path, text=True)
    cells = table.iloc[:, 1:].fillna("").map(lambda cell: str(cell).strip())
    codes, names = pd.factorize(cells.to_numpy().ravel())
    labels = np.where(_given(names)[codes], codes, -1).reshape(cells.shape)
    found = of_codes(labels, np.asarray(table.columns[1:], str))
    return _named(found, names)


def _long(header: Sequence[str]) -> tuple[str, str, str] | None:
    """The columns of annotator, item and label; None where a table has one column per item."""
    item, label = (next((name for name in names if name in header), None) for names in (ITEMS, LABELS))
    others = [name for name in header if name not in (item, label)]
    return None if item is None or label is None or not others else (others[0], item, label)


def _of_rows(path: Path, header: Sequence[str], columns: tuple[str, str, str]) -> Annotations:
    places = [header.index(name) for name in columns]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # of a row with more cells than the header
            table = pd.read_csv(
                path, header=0, names=list(header), index_col=False, dtype="category", na_filter=False,
                encoding="utf-8-sig", skipinitialspace=True,
            )  # fmt: skip
    except UnicodeDecodeError:
        raise
    except (ValueError, csv.Error, pd.errors.ParserWarning) as error:
        raise InputError(
            f"no table with columns {', '.join(columns)} ({str(error).strip().splitlines()[-1]})"
        ) from error
    people, items, labels = (_coded(table[header[at]]) for at in places)
    given = _given(labels[1])[labels[0]]
    for what, (codes, names) in ((columns[0], people), (columns[1], items)):
        if (empty := given & np.isin(names, [""])[codes]).any():
            raise InputError(f"row {int(np.argmax(empty)) + 1} has no {what}")
    of_people, of_items, of_labels = (codes[given] for codes, _ in (people, items, labels))
    if not given.any():
        raise InputError(f"there is no {columns[2]}")
    cells = of_people.astype(np.int64) * len(items[1]) + of_items
    order = np.argsort(cells, kind="stable")
    twice = np.flatnonzero(cells[order][1:] == cells[order][:-1])
    if twice.size:
        at = order[twice[0]]
        who, what = people[1][of_people[at]], items[1][of_items[at]]
        raise InputError(
            f"{columns[0]} {str(who)!r} labelled item {str(what)!r} more than once ({twice.size:,} such): leave one"
        )
    return _named(Annotations(of_people, of_items, of_labels, len(people[1]), items[1].astype(str)), labels[1])


def _coded(column: pd.Series) -> tuple[Int[np.ndarray, " N"], Shaped[np.ndarray, " K"]]:
    """Numbers of the texts of a column, without space around them, and these texts in order of their appearance."""
    texts = pd.Series(column.cat.categories.astype(str)).str.strip()
    names = pd.unique(texts.to_numpy(object)[pd.unique(column.cat.codes.to_numpy())])
    place = pd.Index(names).get_indexer(texts)
    return place[column.cat.codes.to_numpy()], np.asarray(names, object)


def _given(names: Collection[str]) -> Bool[np.ndarray, " K"]:
    return np.array([name not in NO_ANSWER for name in names], bool)


def _named(found: Annotations, names: Shaped[np.ndarray, " K"]) -> Annotations:
    """With the labels that occur alone."""
    used, labels = np.unique(found.labels, return_inverse=True)
    return found._replace(labels=labels, names=[str(names[at]) for at in used])
