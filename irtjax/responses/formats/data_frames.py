"""Tables of pandas as response matrices: one row per response, or one column per item."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow

from irtjax.errors import InputError, NotScoredError
from irtjax.responses.formats.answers import CELLS
from irtjax.responses.formats.cells import Cells, coded, is_null, objects
from irtjax.responses.formats.collecting import AS_IT_COMES, How, InMemory, Part, as_held, collect, numbered
from irtjax.responses.formats.given import Given, of_cells, refuse_counts, rule_of
from irtjax.responses.formats.given_rows import Rows, of_rows
from irtjax.responses.formats.long_tables import (
    LONG_COLUMNS,
    UNNAMED,
    Column,
    Names,
    beside,
    guessed_names,
    how_to_name,
    long_names,
)
from irtjax.responses.matrix import MISSING, ResponseMatrix, matrix_of
from irtjax.storage.sources import shown

STANDARD = Names(*LONG_COLUMNS)
AT_ONCE = 2**20  # rows of a long table
_WRONG = 2  # the code of what is no response


def are_scored(column: pd.Series) -> bool:
    """Whether every cell of a column is right, wrong or missing."""
    return bool((_column_codes(column) != _WRONG).all())


def names_in(table: pd.DataFrame, columns: Mapping[str, str] | None = None, scored: bool = True) -> Names | None:
    """The columns of a table with one row per response; None if it is another.

    Args:
        table: which of its rows is which only the columns say, where that is not known from their names.
        columns: see `long_names`.
        scored: whether responses are right or wrong; else grades, counts or shares.

    Raises:
        InputError: see `long_names`; or columns were named, and the others cannot be told.
    """
    header = [str(name) for name in table.columns]
    if (names := long_names(header, columns)) is not None:
        return names
    others = beside(header, columns)
    unnamed = bool(header) and header[0] in UNNAMED
    numbered = table.index.nlevels == 1 and table.index.name is None and table.index.dtype.kind in "iu"
    names = None
    if len(header) - unnamed - len(others) == len(LONG_COLUMNS) and numbered and header == table.columns.tolist():
        are_responses = are_scored if scored else rule_of(others)
        parts = [(name, table.iloc[:, at]) for at, name in enumerate(header)]
        seen = [
            Column(name, are_responses(cells), cells.dtype.kind in "iu", bool(cells.duplicated().any()))
            for name, cells in parts
        ]
        names = guessed_names(seen, others)
    if names is None and columns:
        raise (NotScoredError if scored else InputError)(how_to_name(header))
    return names


def of_long_table(table: pd.DataFrame, names: Names = STANDARD, how: How = AS_IT_COMES) -> InMemory:
    """The responses of a table with a column of subjects, one of items and one of responses.

    Raises:
        InputError: names the row and column of what is no id or no response, or a response that is there twice.
    """
    _check_levels(table)
    names = names._replace(facet=None)
    return of_long_columns(_slices(table, names), names, how)


def _slices(table: pd.DataFrame, names: Names) -> Iterator[list[pd.Series]]:
    """Columns of a table, some rows at a time; none is copied."""
    for at in range(0, len(table), AT_ONCE):
        yield [table[name].iloc[at : at + AT_ONCE] for name in names.known]


def of_long_columns(
    parts: Iterable[Sequence[pd.Series | pyarrow.Array]], names: Names = STANDARD, how: How = AS_IT_COMES
) -> InMemory:
    """The responses of a table with one row per response, some rows at a time.

    Args:
        parts: of each the columns of subjects, of items, of responses and, if there are any, of trials.
        names: of these columns.
        how: they are held.

    Raises:
        InputError: as `of_long_table`.
    """
    return as_held(collect(_parts(parts, names), lambda at: f"row {at + 1}", how.repeats), how.sparse)


def _parts(parts: Iterable[Sequence[pd.Series | pyarrow.Array]], names: Names) -> Iterator[Part]:
    first = 0
    for part in parts:
        subjects, items = (_numbered(*of, first) for of in zip(part, names[:2], strict=False))
        responses, *trials = (column if isinstance(column, pd.Series) else column.to_pandas() for column in part[2:])
        codes = _column_codes(responses)
        if (wrong := codes == _WRONG).any():
            at = int(np.argmax(wrong))
            place = f"row {first + at + 1} (subject {shown(subjects[at].as_py())})"
            raise _not_scored(place, names.response, responses.iloc[at : at + 1].tolist()[0])
        for column in trials:
            for at in np.flatnonzero(~column.duplicated().to_numpy()).tolist():
                refuse_counts(f"row {first + at + 1}", column.iloc[at : at + 1].tolist()[0])
        yield Part(subjects, items, codes)
        first += len(codes)


def _numbered(column: pd.Series | pyarrow.Array, what: str, first: int) -> pyarrow.DictionaryArray:
    """Ids by their positions among the different ones.

    Args:
        column: of ids.
        what: its name.
        first: the number of rows before these.

    Raises:
        InputError: names the row that has no id; or they are neither texts nor whole numbers.
    """
    null = column.isna().to_numpy() if isinstance(column, pd.Series) else column.is_null().to_numpy(False)
    if null.any():
        raise InputError(f"row {first + int(np.argmax(null)) + 1} has no id among the {what}")
    if isinstance(column, pyarrow.Array):
        numbers = column if pyarrow.types.is_dictionary(column.type) else column.dictionary_encode()
        kind = numbers.dictionary.type
        if pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind):
            return numbers
        at, ids = numbers.indices.to_numpy(), numbers.dictionary.to_pandas()
    else:
        if column.dtype == object and pd.api.types.infer_dtype(column) != "string":  # 1 and True would be one id
            column = pd.Series(texts(column, what), dtype=object)
        at, ids = pd.factorize(column)
    return numbered(at.astype(np.int32), texts(pd.Series(ids), what), what)


def of_table(table: pd.DataFrame, header: Sequence[str] = ()) -> ResponseMatrix:
    """The responses of a table of subjects, which its index names, by items.

    Args:
        table: (J, I).
        header: of a table that may have one row per response, which an error in the first row then says.

    Raises:
        InputError: names the row and column of what is no id or no response.
    """
    _check_levels(table)
    subjects = texts(table.index.to_series(), "subject ids")
    return matrix_of(codes_of(table, subjects, header), subjects, texts(table.columns.to_series(), "item ids"))


def given_in_long_table(table: pd.DataFrame, names: Names = STANDARD) -> Given:
    """The responses of a table with one row per response, as they were given.

    Raises:
        InputError: names the row of what is no id.
    """
    _check_levels(table)
    return given_in_long_columns(_slices(table, names), names)


def given_in_long_columns(parts: Iterable[Sequence[pd.Series | pyarrow.Array]], names: Names = STANDARD) -> Given:
    """The responses of a table with one row per response, some rows at a time, as they were given.

    Args:
        parts: of each the columns of `names.known`.
        names: of these columns.

    Raises:
        InputError: as `given_in_long_table`.
    """
    return of_rows(_given_parts(parts, names), lambda at: f"row {at + 1}")


def _given_parts(parts: Iterable[Sequence[pd.Series | pyarrow.Array]], names: Names) -> Iterator[Rows]:
    first = 0
    for part in parts:
        subjects, items = (_numbered(*of, first) for of in zip(part, names[:2], strict=False))
        rest = iter([_cells(column) for column in part[2:]])
        of_roles: list[Any] = [None if name is None else next(rest) for name in names[2:]]
        yield Rows(subjects, items, *of_roles)
        first += len(subjects)


def _cells(column: pd.Series | pyarrow.Array) -> Cells:
    """The cells of a column, each different one once."""
    if isinstance(column, pyarrow.Array):
        if pyarrow.types.is_string(column.type) or pyarrow.types.is_large_string(column.type):
            texts_of = column.dictionary_encode(null_encoding="encode")
            return Cells(objects(texts_of.dictionary.to_pylist()), texts_of.indices.to_numpy())
        column = column.to_pandas()
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
        at, different = pd.factorize(column.to_numpy(), use_na_sentinel=False)
        return Cells(objects(different.tolist()), at.astype(np.int32))
    return coded(column.tolist())


def given_in_table(table: pd.DataFrame, header: Sequence[str] = ()) -> Given:
    """The responses of a table of subjects, which its index names, by items, as they were given.

    Raises:
        InputError: names the row and column of what is no id.
    """
    _check_levels(table)
    subjects = texts(table.index.to_series(), "subject ids")
    items = texts(table.columns.to_series(), "item ids")
    columns = [table[name] for name in table]
    if all(isinstance(column.dtype, np.dtype) and column.dtype.kind in "iuf" for column in columns):
        return of_cells(table.to_numpy(float), subjects, items, header)
    return of_cells(list(zip(*(column.tolist() for column in columns), strict=True)), subjects, items, header)


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


def codes_of(table: pd.DataFrame, subject_ids: list[str], header: Sequence[str] = ()) -> np.ndarray:
    """(J, I) int8 codes of a table, missing where it is null."""
    columns = [_column_codes(table[column]) for column in table]
    codes = np.stack(columns, axis=1) if columns else np.zeros(table.shape, np.int8)
    wrong = codes == _WRONG
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        place, value = f"row {row + 1} (subject {shown(subject_ids[row])})", table.iloc[row, column : column + 1]
        advice = f"; {how_to_name(header)}" if header and not row else ""
        raise _not_scored(place, str(table.columns[column]), value.tolist()[0], advice)
    return codes


def _not_scored(place: str, column: str, value: Any, advice: str = "") -> NotScoredError:
    return NotScoredError(
        f"{place}, column {shown(column)}: {shown(value)} is not a response; use 0, 1 or null for missing{advice}"
    )


def _column_codes(column: pd.Series) -> np.ndarray:
    if isinstance(column.dtype, pd.SparseDtype):
        column = column.sparse.to_dense()
    if column.dtype.kind not in "biuf":
        try:
            at, values = pd.factorize(column)
        except TypeError:  # lists, which have no hash
            return np.array([_code(value) for value in column], np.int8)
        return np.array([*map(_code, values), MISSING], np.int8)[at]  # of null -1, the last
    numbers = column.to_numpy(float, na_value=np.nan)
    known = np.where(np.isin(numbers, [0, 1]), numbers, _WRONG)
    return np.where(np.isnan(numbers), MISSING, known).astype(np.int8)


def _code(value: Any) -> int:
    """The code of one cell of a column that is not of numbers."""
    if isinstance(value, np.generic):
        value = value.item()
    if is_null(value):
        return MISSING
    if isinstance(value, str):
        return CELLS.get(value.strip(), _WRONG)
    return int(value) if isinstance(value, int | float | Decimal) and value in (0, 1) else _WRONG
