"""Response matrices from what users have in memory: tables, arrays, lists."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
import pandas as pd
import pyarrow
import scipy.sparse

from irtjax import processes
from irtjax.errors import InputError, NotScoredError
from irtjax.responses.formats import open_responses, read_given, read_responses
from irtjax.responses.formats.collecting import How, InMemory
from irtjax.responses.formats.data_frames import (
    given_in_long_table,
    given_in_table,
    names_in,
    of_long_table,
    of_table,
)
from irtjax.responses.formats.given import Given, of_array, of_scipy, of_sparse
from irtjax.responses.formats.long_tables import LONG_COLUMNS, long_names
from irtjax.responses.formats.shards import holds_shards
from irtjax.responses.masks import as_array
from irtjax.responses.matrix import ResponseMatrix
from irtjax.responses.sparse import SparseResponses, of_matrix
from irtjax.responses.stored import StoredResponses
from irtjax.responses.values import Responses
from irtjax.storage.frames import as_frame, is_table

SUBJECT_ID, ITEM_ID = LONG_COLUMNS[:2]


def as_responses(
    data: Any, item_ids: Sequence[str] | None = None, columns: Mapping[str, str] | None = None
) -> ResponseMatrix:
    """The response matrix of whatever holds scored responses.

    * A `ResponseMatrix`, which is returned as it is; `StoredResponses` and `SparseResponses`, all of which are read.
    * A path: a file or a folder in any format of `read_responses`.
    * A table of pandas, or of a package whose tables have `to_pandas` (Polars, PyArrow), or `columns` and
      `__arrow_c_stream__`. Long, with columns `subject_id`, `item_id` and `response`, or others as of `read_responses`;
      or wide, with one column per item. Subjects of a wide table are named by its column `subject_id`, else by its
      index, else (where the index only counts) by a first column of text. With a column or an index called `item_id`,
      its rows are the items.
    * A sparse array of SciPy, each entry of which is an answer (`SparseResponses.from_scipy`).
    * A two-dimensional array or a list of rows, subjects × items. Its subjects are called subject_1, subject_2, …, its
      items item_1, item_2, ….

    Right is 1 or True, wrong is 0 or False. Missing is NaN, None, NA or masked, and -1 in arrays of integers.

    Args:
        data: as above.
        item_ids: of the columns of an array or a list.
        columns: of a long table or the path of one, as of `read_responses`.

    Raises:
        InputError: `data` is nothing of that kind, or a cell, named by row and column, is no response.
    """
    if isinstance(data, ResponseMatrix | StoredResponses | SparseResponses):
        return data.read()
    if isinstance(data, str | os.PathLike):
        return read_responses(os.path.expanduser(data), columns=columns, sparse=False)
    if (table := _as_frame(data, columns)) is not None:
        return _of_frame(table, columns, How(sparse=False)).read()  # type: ignore[return-value]
    _refuse_columns(data, columns)
    if scipy.sparse.issparse(data):
        return SparseResponses.from_scipy(data, item_ids=item_ids).read()  # type: ignore[return-value]
    return _of_array(data, item_ids)


def as_responses_or_stored(
    data: Any,
    mesh: jax.sharding.Mesh | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    sparse: bool | None = None,
    repeats: str | None = None,
    **choice: Any,
) -> Responses:
    """As `as_responses`, but what should stay in its files does, and single answers stay single.

    The former are `StoredResponses`, folders of shards, and the paths of other files if a mesh spans several processes,
    of which none is to read the whole.

    Args:
        data: as of `as_responses`.
        mesh: of the devices that are to work.
        columns: of a long table, as of `read_responses`.
        sparse: whether to hold single answers, as of `read_responses`.
        repeats: as of `read_responses`.
        **choice: of a path, also the `metric` and the `filter` of `read_responses`.
    """
    if isinstance(data, StoredResponses | SparseResponses):
        return data
    if isinstance(data, str | os.PathLike):
        path = os.path.expanduser(data)
        read = open_responses if holds_shards(path) or processes.spans(mesh) else read_responses
        return read(path, columns=columns, sparse=sparse, repeats=repeats, **choice)
    if scipy.sparse.issparse(data):
        _refuse_columns(data, columns)
        return SparseResponses.from_scipy(data, repeats=repeats or "refuse")
    if (table := _as_frame(data, columns)) is not None:
        found = _of_frame(table, columns, How(sparse, repeats))
    else:
        found = as_responses(data, columns=columns)
    return of_matrix(found) if sparse and isinstance(found, ResponseMatrix) else found


def _as_frame(data: Any, columns: Mapping[str, str] | None) -> pd.DataFrame | None:
    """A table as one of pandas, None of anything else. Texts of a long table of Arrow become categories: no copies."""
    if isinstance(data, pyarrow.Table):
        names = long_names(data.column_names, columns)
        if names is not None and len(set(data.column_names)) == data.num_columns:
            return data.select(names.known).to_pandas(strings_to_categorical=True, ignore_metadata=True)
    found = as_frame(data, "responses")
    return found if isinstance(found, pd.DataFrame) else None


def as_matrix_or_sparse(
    data: Any, item_ids: Sequence[str] | None = None, columns: Mapping[str, str] | None = None
) -> ResponseMatrix | SparseResponses:
    """As `as_responses`, but what is held by the answer, or read so, stays so.

    Raises:
        NotScoredError: responses have scales of their own.
    """
    names_items = isinstance(data, ResponseMatrix | StoredResponses | SparseResponses | str | os.PathLike)
    if not names_items and not is_table(data):
        return as_responses(data, item_ids, columns)
    found = as_responses_or_stored(data, columns=columns)
    if not isinstance(found, SparseResponses):
        return found.read()
    if found.scales is not None:
        raise NotScoredError("responses with scales of their own, expected right and wrong answers")
    return found


def as_given(data: Any, columns: Mapping[str, str] | None = None, **choice: Any) -> Given:
    """The responses of whatever holds some, as they were given: grades, texts, counts, repeated answers.

    Args:
        data: as of `as_responses`, with any cells; or `Given` itself.
        columns: of a long table or the path of one, as of `read_responses`; also those of `trials` and of a `facet`.
        **choice: `metric` and `filter` of the path of a log, as of `read_responses`.

    Raises:
        InputError: `data` is nothing of that kind, or has no responses.
    """
    if isinstance(data, Given):
        return data
    if isinstance(data, ResponseMatrix | StoredResponses):
        data = data.read()
        return of_array(data.values, data.subject_ids.tolist(), data.item_ids.tolist())
    if isinstance(data, SparseResponses) and data.scales is None:
        return of_sparse(data)
    if scipy.sparse.issparse(data):
        _refuse_columns(data, columns)
        return of_scipy(data)
    if isinstance(data, str | os.PathLike):
        return read_given(os.path.expanduser(data), columns=columns, **choice)
    if (table := _as_frame(data, columns)) is None:
        _refuse_columns(data, columns)
        return of_array(*_array_and_ids(data, None))
    if (names := names_in(table, columns, scored=False)) is not None:
        return given_in_long_table(table, names)
    return given_in_table(_by_subject(table), table.columns.map(str).tolist())


def _of_frame(table: pd.DataFrame, columns: Mapping[str, str] | None, how: How) -> InMemory:
    if (names := names_in(table, columns)) is not None:
        return of_long_table(table, names, how)
    return of_table(_by_subject(table), table.columns.map(str).tolist())


def _by_subject(table: pd.DataFrame) -> pd.DataFrame:
    """A table with one column per item, and the subjects as its index."""
    if SUBJECT_ID in table.columns:
        table = table.set_index(SUBJECT_ID)
    elif ITEM_ID in table.columns:
        table = table.set_index(ITEM_ID).T
    elif table.index.name == ITEM_ID:
        table = table.T
    elif isinstance(table.index, pd.RangeIndex) and table.shape[1] and _is_text(table.iloc[:, 0]):
        table = table.set_index(table.columns[0])
    return table


def _is_text(column: pd.Series) -> bool:
    """Whether there are texts in a column, and none of them could be a response."""
    texts = column[column.map(lambda cell: isinstance(cell, str))]
    return len(texts) > 0 and bool(pd.to_numeric(texts, errors="coerce").isna().all())


def _refuse_columns(data: Any, columns: Mapping[str, str] | None) -> None:
    if columns:
        raise InputError(f"responses of type {type(data).__name__} have no columns with names: leave out `columns`")


def _of_array(data: Any, item_ids: Sequence[str] | None) -> ResponseMatrix:
    array, subjects, items = _array_and_ids(data, item_ids)
    if array.dtype.kind in "biu":
        return ResponseMatrix(array, subjects, items)
    return of_table(pd.DataFrame(array, index=subjects, columns=items))


def _array_and_ids(data: Any, item_ids: Sequence[str] | None) -> tuple[np.ndarray, list[str], list[str]]:
    """An array of subjects by items, and names of both."""
    array = as_array(data)
    if array.dtype.kind in "US" and not isinstance(data, np.ndarray):  # numbers and NaN among texts stay what they are
        array = np.asarray(data, object)
    if array.ndim != 2:
        raise InputError(
            f"responses of type {type(data).__name__} with shape {array.shape}: expected a table, a path, or rows of "
            "subjects × columns of items"
        )
    if item_ids is not None and len(item_ids) != array.shape[1]:
        raise InputError(
            f"responses to {array.shape[1]} items, expected all {len(item_ids)}: an array does not name them"
        )
    subjects = [f"subject_{j}" for j in range(1, array.shape[0] + 1)]
    items = [f"item_{i}" for i in range(1, array.shape[1] + 1)] if item_ids is None else list(item_ids)
    return array, subjects, items
