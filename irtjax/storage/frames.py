"""Tables of other packages (Polars, Arrow) as those of pandas, with the ids of their rows in the index."""

from typing import Any

import pandas as pd

from irtjax.errors import InputError
from irtjax.storage.sources import one_line


def is_table(data: Any) -> bool:
    """Whether it is a table of pandas, or becomes one: by itself, or by what tables of Arrow are exchanged by."""
    # of single columns there are streams too
    streams = hasattr(data, "__arrow_c_stream__") and hasattr(data, "columns")
    return isinstance(data, pd.DataFrame) or hasattr(data, "to_pandas") or streams


def as_frame(data: Any, what: str, ids: str | None = None) -> Any:
    """A table as one of pandas; anything else as it is.

    Args:
        data: a table, or anything else.
        what: it is, for errors.
        ids: the column that becomes the index, where there is one of that name.

    Raises:
        InputError: a table becomes none of pandas.
    """
    if not isinstance(data, pd.DataFrame) and is_table(data):
        try:
            data = data.to_pandas() if hasattr(data, "to_pandas") else _of_arrow(data)
        except Exception as error:  # whatever the package raises, as where it needs another one for that
            kind, why = type(data).__name__, one_line(error)
            raise InputError(f"{what} of type {kind} become no table of pandas ({why}): convert them first") from error
    there = ids is not None and isinstance(data, pd.DataFrame) and ids in data
    return data.set_index(ids) if there else data


def _of_arrow(data: Any) -> pd.DataFrame:
    import pyarrow  # where a table is of another package

    return pyarrow.table(data).to_pandas()
