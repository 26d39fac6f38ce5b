"""What is known of each subject or item, as the column of a table that a flag names."""

import os

import pandas as pd

from irtjax.errors import InputError
from irtjax.storage.tables import read_table


def column_of(given: str, flag: str = "groups", *, text: bool = False) -> pd.Series:
    """The column that a flag names, by the ids in the first column of the table.

    Args:
        given: TABLE.csv:COLUMN.
        flag: its name.
        text: whether its cells are text, whatever they look like.

    Raises:
        InputError: it names no file and column.
    """
    path, _, column = given.rpartition(":")
    if not path:
        raise InputError(f"--{flag}={given}: expected TABLE.csv:COLUMN, such as people.csv:gender")
    return _read(given, flag, path, [column], text=text)[column]


def columns_of(given: str, flag: str) -> pd.DataFrame:
    """The columns that a flag names, by the ids in the first column of the table.

    Args:
        given: TABLE.csv:COLUMN,COLUMN.
        flag: its name.

    Raises:
        InputError: it names no file and columns.
    """
    path, _, names = given.rpartition(":")
    if not path:
        raise InputError(f"--{flag}={given}: expected TABLE.csv:COLUMN,COLUMN, such as people.csv:age,gender")
    return _read(given, flag, path, list(dict.fromkeys(names.split(","))))


def _read(given: str, flag: str, path: str, chosen: list[str], *, text: bool = False) -> pd.DataFrame:
    """Columns of a table by the ids in its first one."""
    table = read_table(os.path.expanduser(path), 0, text=text)
    ids, columns = table.columns[0], table.columns[1:].tolist()
    for column in chosen:
        if column not in columns:
            raise InputError(f"--{flag}={given}: {path} has no column '{column}', but {', '.join(columns)}")
    return table.set_index(ids)[chosen]
