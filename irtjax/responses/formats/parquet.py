"""Parquet files of responses, from pandas or anything else."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet

from irtjax.errors import InputError
from irtjax.responses.formats.answers import CELLS, LONG_COLUMNS, gather, matrix_of
from irtjax.responses.matrix import MISSING, ResponseMatrix
from irtjax.storage.sources import one_line, shown

_WRONG = 2  # the code of what is no response


def read(path: Path) -> ResponseMatrix:
    """The matrix of a Parquet file, see `read_responses`."""
    table = _table(path)
    if table.columns.nlevels > 1 or table.index.nlevels > 1:
        raise InputError("columns or rows of several levels, expected one")
    names = table.columns.astype(str)
    if names.has_duplicates:
        raise InputError(f"two columns are called {shown(names[names.duplicated()][0])}")
    if set(LONG_COLUMNS) <= set(table.columns):
        subjects, items = (_texts(table[name], name) for name in LONG_COLUMNS[:2])
        coded = _codes(table[["response"]], subjects)[:, 0]
        rows = zip(subjects, items, coded.tolist(), strict=True)
        return gather((f"row {at}", *row) for at, row in enumerate(rows, start=1))
    table = _indexed_by_subject(table)
    subjects = _texts(table.index.to_series(), "subject ids")
    return matrix_of(_codes(table, subjects), subjects, list(table.columns.astype(str)))


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


def _texts(ids: pd.Series, what: str) -> list[str]:
    """Ids as text, none of which is null."""
    if ids.isna().any():
        raise InputError(f"row {int(np.argmax(ids.isna().to_numpy())) + 1} has no id among the {what}")
    kind = pd.api.types.infer_dtype(ids.astype(object))
    if kind not in ("string", "integer", "empty"):
        raise InputError(f"the {what} are of the kind {kind}, expected text or whole numbers")
    return [str(identity) for identity in ids]


def _codes(table: pd.DataFrame, subject_ids: list[str]) -> np.ndarray:
    """(J, I) int8 codes of a table, missing where it is null."""
    columns = [_column_codes(table[column]) for column in table]
    codes = np.stack(columns, axis=1) if columns else np.zeros(table.shape, np.int8)
    wrong = codes == _WRONG
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise InputError(
            f"row {row + 1} (subject {shown(subject_ids[row])}), column {shown(str(table.columns[column]))}: "
            f"{shown(table.iloc[row, column : column + 1].tolist()[0])} is not a response; use 0, 1 or null for missing"
        )
    return codes


def _column_codes(column: pd.Series) -> np.ndarray:
    if column.dtype.kind not in "biuf":
        return np.array([_code(value) for value in column], np.int8)
    numbers = column.to_numpy(float, na_value=np.nan)
    known = np.where(np.isin(numbers, [0, 1]), numbers, _WRONG)
    return np.where(np.isnan(numbers), MISSING, known).astype(np.int8)


def _code(value: Any) -> int:
    """The code of one cell of a column that is not of numbers."""
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and np.isnan(value)):
        return MISSING
    if isinstance(value, str):
        return CELLS.get(value.strip(), _WRONG)
    return int(value) if isinstance(value, int | float | Decimal) and value in (0, 1) else _WRONG
