"""Tables of pandas as response matrices: one row per response, or one column per item."""

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.responses.formats.answers import CELLS, LONG_COLUMNS, gather, matrix_of
from irtjax.responses.matrix import MISSING, ResponseMatrix
from irtjax.storage.sources import shown

_WRONG = 2  # the code of what is no response


def of_long_table(table: pd.DataFrame) -> ResponseMatrix:
    """The responses of a table with the columns subject_id, item_id and response.

    Raises:
        InputError: names the row and column of what is no id or no response, or a response that is there twice.
    """
    _check_levels(table)
    subjects, items = (texts(table[name], name) for name in LONG_COLUMNS[:2])
    coded = codes_of(table[["response"]], subjects)[:, 0]
    rows = zip(subjects, items, coded.tolist(), strict=True)
    return gather((f"row {at}", *row) for at, row in enumerate(rows, start=1))


def of_table(table: pd.DataFrame) -> ResponseMatrix:
    """The responses of a table of subjects, which its index names, by items.

    Raises:
        InputError: names the row and column of what is no id or no response.
    """
    _check_levels(table)
    subjects = texts(table.index.to_series(), "subject ids")
    return matrix_of(codes_of(table, subjects), subjects, texts(table.columns.to_series(), "item ids"))


def _check_levels(table: pd.DataFrame) -> None:
    if table.columns.nlevels > 1 or table.index.nlevels > 1:
        raise InputError("columns or rows of several levels, expected one")
    if table.columns.has_duplicates:
        raise InputError(f"two columns are called {shown(str(table.columns[table.columns.duplicated()][0]))}")


def texts(ids: pd.Series, what: str) -> list[str]:
    """Ids as text, none of which is null."""
    if ids.isna().any():
        raise InputError(f"row {int(np.argmax(ids.isna().to_numpy())) + 1} has no id among the {what}")
    kind = pd.api.types.infer_dtype(ids.astype(object))
    if kind not in ("string", "integer", "mixed-integer", "empty"):
        raise InputError(f"the {what} are of the kind {kind}, expected text or whole numbers")
    return [str(identity) for identity in ids]


def codes_of(table: pd.DataFrame, subject_ids: list[str]) -> np.ndarray:
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
    if isinstance(column.dtype, pd.SparseDtype):
        column = column.sparse.to_dense()
    if column.dtype.kind not in "biuf":
        return np.array([_code(value) for value in column], np.int8)
    numbers = column.to_numpy(float, na_value=np.nan)
    known = np.where(np.isin(numbers, [0, 1]), numbers, _WRONG)
    return np.where(np.isnan(numbers), MISSING, known).astype(np.int8)


def _code(value: Any) -> int:
    """The code of one cell of a column that is not of numbers."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and np.isnan(value)):
        return MISSING
    if isinstance(value, str):
        return CELLS.get(value.strip(), _WRONG)
    return int(value) if isinstance(value, int | float | Decimal) and value in (0, 1) else _WRONG
