"""Parquet files of responses, from pandas or anything else."""

from pathlib import Path

import pandas as pd
import pyarrow.parquet

from irtjax.errors import InputError
from irtjax.responses.formats.answers import LONG_COLUMNS
from irtjax.responses.formats.data_frames import of_long_table, of_table
from irtjax.responses.matrix import ResponseMatrix
from irtjax.storage.sources import one_line


def read(path: Path) -> ResponseMatrix:
    """The matrix of a Parquet file, see `read_responses`."""
    table = _table(path)
    if set(LONG_COLUMNS) <= set(table.columns):
        return of_long_table(table)
    return of_table(_indexed_by_subject(table))


def _table(path: Path) -> pd.DataFrame:
    try:
        with path.open("rb") as file:  # by its path, a folder or an address would be read too
            table = pyarrow.parquet.ParquetFile(file).read()
        table.validate(full=True)  # damaged text is found here, not when it is used
        return table.to_pandas()
    except Exception as error:  # whatever pyarrow, its decoders and pandas raise on damaged files
        raise InputError(f"not a Parquet file ({one_line(error)})") from error


def _indexed_by_subject(table: pd.DataFrame) -> pd.DataFrame:
    """The table with subject ids as its index: the index that it has, or else the first column."""
    if isinstance(table.index, pd.RangeIndex) and table.index.name is None:
        return table.set_index(table.columns[0]) if table.columns.size else table
    if table.index.name is None and table.index.dtype.kind in "iu":  # ids, or what a filter left of row numbers?
        raise InputError("the rows have numbers without a name: name the index if these are subject ids, or reset it")
    return table
