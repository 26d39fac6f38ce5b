"""Parquet files of responses, from pandas or anything else."""

import functools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet

from irtjax.errors import InputError, NotScoredError
from irtjax.responses.formats.answers import refuse_responses_as_ids
from irtjax.responses.formats.cells import is_null
from irtjax.responses.formats.collecting import AS_IT_COMES, How, InMemory
from irtjax.responses.formats.data_frames import (
    codes_of,
    given_in_long_columns,
    given_in_table,
    names_in,
    of_long_columns,
    of_table,
    texts,
)
from irtjax.responses.formats.given import Given
from irtjax.responses.formats.long_tables import LONG_COLUMNS, Names, beside, long_names
from irtjax.responses.matrix import MISSING, require_sound_ids
from irtjax.responses.stored import StoredResponses
from irtjax.responses.values import Responses
from irtjax.storage.memory import parquet_bytes, require_memory
from irtjax.storage.sources import naming, one_line, shown
from irtjax.types import Int

T = TypeVar("T")
ITEM_ID = LONG_COLUMNS[1]
LONG_WIDTHS = (len(LONG_COLUMNS), len(LONG_COLUMNS) + 1)  # without and with row numbers
ROWS_AT_ONCE = 2**16  # of a long table
COLUMNS_AT_ONCE = 256  # that pandas holds, each cell perhaps as a float


def read(path: Path, columns: Mapping[str, str] | None = None, how: How = AS_IT_COMES) -> InMemory:
    """The responses of a Parquet file, see `read_responses`."""
    names = _long_names(path, columns)
    if names is not None:
        names = names._replace(facet=None)
        return of_long_columns(_batches(path, names), names, how)
    if _is_by_item(path):
        return open_parquet(path).read()
    table = _guarded(lambda: _whole(path))
    return of_table(_indexed_by_subject(table), table.columns.map(str).tolist())


def _batches(path: Path, names: Names) -> Iterator[list[pyarrow.Array]]:
    """The columns of a long table, some rows at a time."""
    file = _guarded(lambda: _open(path))
    for name in names.known:
        if file.schema_arrow.names.count(name) > 1:
            raise InputError(f"two columns are called {shown(name)}")
    require_memory(parquet_bytes(path, file, names.known))
    batches = file.iter_batches(ROWS_AT_ONCE, columns=names.known, use_threads=False)
    while (batch := _guarded(lambda: next(batches, None))) is not None:
        _guarded(functools.partial(batch.validate, full=True))  # damaged text is found here, not when it is used
        yield [batch.column(name) for name in names.known]


def read_given(path: Path, columns: Mapping[str, str] | None = None) -> Given:
    """The responses of a Parquet file as they were given."""
    names = _long_names(path, columns, scored=False)
    if names is not None:
        return given_in_long_columns(_batches(path, names), names)
    table = _guarded(lambda: _whole(path))
    if _is_by_item(path):
        return given_in_table((table.set_index(ITEM_ID) if ITEM_ID in table else table).T)
    return given_in_table(_indexed_by_subject(table), table.columns.map(str).tolist())


def open_parquet(path: Path, columns: Mapping[str, str] | None = None, how: How = AS_IT_COMES) -> Responses:
    """The responses of a Parquet file, of which only the ids are read; a long table is read as a whole."""
    if _long_names(path, columns) is not None:
        return read(path, columns, how)
    source = RowsOfItems(path) if _is_by_item(path) else RowsOfSubjects(path)
    for ids, what in ((source.subject_ids, "subject"), (source.item_ids, "item")):
        require_sound_ids(ids, what)
    return StoredResponses(source, np.array(source.subject_ids), np.array(source.item_ids))


class RowsOfSubjects:
    """A file with one row per subject and one column per item; a portion is read column by column, into memory.

    Attributes:
        name: the file.
        shape: J and I.
        by_item: False.
        subject_ids: J texts.
        item_ids: I texts.
    """

    by_item = False

    def __init__(self, path: Path) -> None:
        self.name, self._path = str(path), path
        self._file = _guarded(lambda: _open(path))  # once: of thousands of columns it takes longer than to read some
        schema = _guarded(lambda: self._file.schema_arrow)
        self._subject_columns = _index(schema) or schema.names[:1]
        self._items = [name for name in schema.names if name not in self._subject_columns]
        if not self._items:
            raise InputError("responses have no items")
        self.item_ids = texts(pd.Series(self._items), "item ids")
        self.subject_ids = self._table([]).index.to_series().pipe(texts, "subject ids")
        self.shape = len(self.subject_ids), len(self.item_ids)

    def read(self, rows: range, columns: range) -> Int[np.ndarray, "_ _"]:
        """Some of it."""
        chosen = self._items[columns.start : columns.stop]
        result = np.empty((len(rows), len(chosen)), np.int8)
        with naming(self.name):
            for at in range(0, len(chosen), COLUMNS_AT_ONCE):
                part = self._table(chosen[at : at + COLUMNS_AT_ONCE])
                result[:, at : at + COLUMNS_AT_ONCE] = codes_of(part, self.subject_ids)[rows.start : rows.stop]
        return result

    def _table(self, items: list[str]) -> pd.DataFrame:
        columns = [*self._subject_columns, *items]
        require_memory(parquet_bytes(self._path, self._file, columns))
        table = _guarded(lambda: _checked(self._file.read(columns=columns, use_pandas_metadata=True)))
        return _indexed_by_subject(table)


class RowsOfItems:
    """A file with one row per item, named by the first column or the index `item_id`, and one column per subject.

    Row groups are read one at a time, so that it may be larger than the memory.

    Attributes:
        name: the file.
        shape: J and I.
        by_item: True.
        subject_ids: J texts.
        item_ids: I texts.
    """

    by_item = True

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._file = file = _guarded(lambda: _open(path))
        names = [name for name in file.schema_arrow.names if name != ITEM_ID]
        self.subject_ids = texts(pd.Series(names), "subject ids")
        require_memory(parquet_bytes(path, file, [ITEM_ID]))
        ids = _guarded(lambda: _checked(file.read(columns=[ITEM_ID]), ignore_metadata=True))
        self.item_ids = texts(ids[ITEM_ID], "item ids")
        groups = [file.metadata.row_group(at).num_rows for at in range(file.metadata.num_row_groups)]
        self._starts = np.concatenate([[0], np.cumsum(groups)]).astype(int)
        self.shape = len(self.subject_ids), len(self.item_ids)
        self._last: tuple[int, np.ndarray] | None = None

    def read(self, rows: range, columns: range) -> Int[np.ndarray, "_ _"]:
        """A part of it."""
        result = np.empty((len(rows), len(columns)), np.int8)
        first = int(np.searchsorted(self._starts, columns.start, side="right")) - 1
        for group in range(first, len(self._starts) - 1):
            begin, end = max(columns.start, self._starts[group]), min(columns.stop, self._starts[group + 1])
            if begin >= end:
                break
            part = self._group(group)[rows.start : rows.stop, begin - self._starts[group] : end - self._starts[group]]
            result[:, begin - columns.start : end - columns.start] = part
        return result

    def _group(self, number: int) -> Int[np.ndarray, "J n"]:
        if self._last is None or self._last[0] != number:
            with naming(self.name):
                self._last = number, _guarded(lambda: self._decoded(number))
        return self._last[1]

    def _decoded(self, number: int) -> np.ndarray:
        require_memory(parquet_bytes(Path(self.name), self._file, group=number))
        table = self._file.read_row_group(number, columns=self.subject_ids)
        table.validate(full=True)
        result = np.empty((table.num_columns, table.num_rows), np.int8)
        for row, column in enumerate(table.columns):
            if not (pyarrow.types.is_integer(column.type) or pyarrow.types.is_boolean(column.type)):
                raise NotScoredError(
                    f"column {shown(self.subject_ids[row])} of type {column.type}, expected integers 0, 1 or null"
                )
            result[row] = column.cast(pyarrow.int8()).fill_null(MISSING).to_numpy()
        return result


def _open(path: Path, categories: list[str] | None = None) -> pyarrow.parquet.ParquetFile:
    with path.open("rb"):  # by its path alone, a folder or an address would be read too
        return pyarrow.parquet.ParquetFile(path, read_dictionary=categories, pre_buffer=False)


def _index(schema: pyarrow.Schema) -> list[str]:
    """The columns that pandas had as an index."""

    def names() -> list[str]:
        kept = (schema.pandas_metadata or {}).get("index_columns", [])  # which is JSON, perhaps damaged
        return [name for name in kept if isinstance(name, str)]

    return _guarded(names)


def _is_by_item(path: Path) -> bool:
    schema = _guarded(lambda: _open(path).schema_arrow)
    return ITEM_ID in schema.names[:1] + _index(schema)


def _long_names(path: Path, columns: Mapping[str, str] | None, scored: bool = True) -> Names | None:
    """The columns of a file with one row per response; None if it is another."""
    header = _guarded(lambda: _open(path).schema_arrow.names)
    names = long_names(header, columns)
    if names is not None or (not columns and len(header) - len(beside(header, columns)) not in LONG_WIDTHS):
        return names
    return names_in(_guarded(lambda: _whole(path, header)), columns, scored)


def _whole(path: Path, categories: list[str] | None = None) -> pd.DataFrame:
    file = _open(path, categories)
    require_memory(parquet_bytes(path, file))
    return _checked(file.read())


def _checked(table: pyarrow.Table, **options: bool) -> pd.DataFrame:
    table.validate(full=True)  # damaged text is found here, not when it is used
    return table.to_pandas(**options)


def _guarded(action: Callable[[], T]) -> T:
    try:
        return action()
    except InputError:
        raise
    except Exception as error:  # whatever pyarrow, its decoders and pandas raise on damaged files
        raise InputError(f"not a Parquet file ({one_line(error)})") from error


def _as_cell(value: Any) -> str:
    """A cell as CSV would have it."""
    return "" if is_null(value) else str(value)


def _indexed_by_subject(table: pd.DataFrame) -> pd.DataFrame:
    """The table with subject ids as its index: the index that it has, or else the first column."""
    if isinstance(table.index, pd.RangeIndex) and table.index.name is None:
        if not table.columns.size:
            return table
        refuse_responses_as_ids(str(table.columns[0]), map(_as_cell, table.iloc[:, 0]))
        return table.set_index(table.columns[0])
    if table.index.name is None and table.index.dtype.kind in "iu":  # ids, or what a filter left of row numbers?
        raise InputError("the rows have numbers without a name: name the index if these are subject ids, or reset it")
    return table
