"""Which group each subject is in, as the column of a table that a flag names."""

import os

import pandas as pd

from irtjax.errors import InputError
from irtjax.storage.tables import read_table


def groups_of_subjects(given: str) -> pd.Series:
    """The column that --groups names, by subject id.

    Args:
        given: TABLE.csv:COLUMN.

    Raises:
        InputError: it names no file and column.
    """
    path, _, column = given.rpartition(":")
    if not path:
        raise InputError(f"--groups={given}: expected TABLE.csv:COLUMN, such as people.csv:gender")
    table = read_table(os.path.expanduser(path), 0)
    ids, columns = table.columns[0], table.columns[1:].tolist()
    if column not in columns:
        raise InputError(f"--groups={given}: {path} has no column '{column}', but {', '.join(columns)}")
    return table.set_index(ids)[column]
