"""Trainings under a strategy that have finished, kept in files: a comparison that is cut off goes on after them."""

from pathlib import Path

import numpy as np
import pandas as pd

from irtjax.errors import InputError
from irtjax.storage.archives import read_arrays
from irtjax.storage.files import whole_file

SIGNATURE = "signature"


def write_finished(folder: Path, signature: str, rows: pd.DataFrame) -> None:
    """Writes the rows of some seeds under one strategy; a kill at any moment leaves a whole file or none.

    Raises:
        InputError: it cannot be written.
    """
    seeds = rows.seed.unique()
    columns = {name: column.to_numpy() for name, column in rows.drop(columns="strategy").items()}
    with whole_file(folder / f"{rows.strategy.iloc[0]}_{seeds[0]}_{seeds.size}.npz") as path:
        np.savez(
            path,
            allow_pickle=False,
            strategy=rows.strategy.to_numpy(str),
            **columns,
            **{SIGNATURE: np.array(signature)},
        )


def read_finished(folder: Path, signature: str, columns: list[str]) -> pd.DataFrame:
    """The rows that are in a folder; none if it is empty or not there.

    Args:
        folder: of `write_finished`.
        signature: of all that the trainings depend on.
        columns: of the table.

    Raises:
        InputError: a file is damaged, or of trainings with another signature.
    """
    tables = [pd.DataFrame(columns=columns)]
    for path in sorted(folder.glob("*.npz")):
        try:
            arrays = read_arrays(path, [SIGNATURE, *columns])
        except InputError as error:
            raise InputError(f"{path}: a damaged checkpoint ({error}): remove it") from error
        if arrays.pop(SIGNATURE) != signature:
            raise InputError(f"{path} is of other trainings: choose another folder, or remove it")
        tables.append(pd.DataFrame(arrays)[columns])
    return pd.concat(tables[1:] or tables, ignore_index=True)
