"""Items as text, with whatever else a table tells of them: what difficulties are predicted from."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.storage.sources import reading
from irtjax.storage.tables import read_rows, read_table
from irtjax.tasks.choices import ID_COLUMNS, TEXT_COLUMNS
from irtjax.tasks.extra_items import joined

MOST_SENTENCES = 2  # of an item, that an encoder reads


class ItemTexts(NamedTuple):
    """I items.

    Attributes:
        ids: (I,) strings.
        sentences: one list of I texts per text column, such as premises and hypotheses.
        table: (I,) rows of further columns, numbers or words.
    """

    ids: np.ndarray
    sentences: tuple[list[str], ...]
    table: pd.DataFrame

    def choose(self, rows: np.ndarray) -> "ItemTexts":
        """Some items, by their positions."""
        return ItemTexts(
            self.ids[rows], tuple([part[at] for at in rows] for part in self.sentences), self.table.iloc[rows]
        )

    def shown(self) -> np.ndarray:
        """(I,) texts as objects, sentences joined by ' / '."""
        return joined(self.sentences)


def read_item_texts(path: str | Path, texts: Sequence[str] = (), columns: Sequence[str] = ()) -> ItemTexts:
    """Reads a CSV file.

    Args:
        path: of the file; it has a column `item_id`, `phrase_id` or `pair_id`.
        texts: the columns of text, one or two; none for `text`, or `premise` and `hypothesis`.
        columns: further ones.

    Raises:
        InputError: names the file, and what it lacks: a column, the text of an item, or a value.
    """
    with reading(path) as file:
        rows = read_rows(file)
    words = pd.DataFrame(rows.cells, columns=rows.header, dtype=object)  # "None" may be the text of an item
    name = next((column for column in ID_COLUMNS if column in words), None)
    if name is None:
        raise InputError(f"{path}: no column of ids, expected one of {', '.join(ID_COLUMNS)}")
    if not texts:
        usual = [found for found in TEXT_COLUMNS.values() if set(found) <= set(words)]
        if not usual:
            raise InputError(f"{path}: no column text, nor premise and hypothesis: name those of text, `text_columns`")
        texts = usual[0]
    if len(texts) > MOST_SENTENCES:
        raise InputError(f"{len(texts)} columns of text, expected one or two: put others together")
    for column in (*texts, *columns):
        if column not in words:
            raise InputError(f"{path}: no column {column}")
    if words.empty:
        raise InputError(f"{path}: no items")
    table = read_table(path, name)
    ids = table[name].to_numpy(str)
    for column in texts:
        empty = np.flatnonzero(words[column].str.strip() == "")
        if empty.size:
            raise InputError(f"{path}: item {ids[empty[0]]}: no {column}; leave the item out")
    for column in columns:
        known = table[column].notna()
        if pd.api.types.is_numeric_dtype(table[column]):
            known &= np.isfinite(table[column])
        if not known.all():
            raise InputError(f"{path}: item {ids[~known][0]}: no {column}, or one that is not finite")
    return ItemTexts(ids, tuple(words[column].tolist() for column in texts), table[list(columns)])
