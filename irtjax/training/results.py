"""What networks leave when they have finished: a row of each of several columns, in memory or in files."""

import functools
import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from irtjax.errors import InputError
from irtjax.storage.files import whole_file, writable_directory

Columns = dict[str, jax.ShapeDtypeStruct]  # what one network leaves, by name

TRAINED: Columns = {
    "epochs": jax.ShapeDtypeStruct((), np.int32),
    "best_epochs": jax.ShapeDtypeStruct((), np.int32),
    "best_accuracies": jax.ShapeDtypeStruct((), np.float32),
}
FINISHED = "finished.json"


def blank(columns: Columns, count: int) -> dict[str, np.ndarray]:
    """Zeros for so many networks."""
    return {name: np.zeros((count, *column.shape), column.dtype) for name, column in (columns | TRAINED).items()}


class Results:
    """The rows of some networks; in a folder, files that outlive a kill.

    Attributes:
        columns: arrays with a leading axis of the networks; meaningless where a network has not finished.
        finished: which have.

    Args:
        columns: what each network leaves, beside `TRAINED`.
        count: networks.
        folder: for the files, with what an earlier run left there; None for memory.

    Raises:
        InputError: what it left is damaged, of another shape, or gone in part.
    """

    def __init__(self, columns: Columns, count: int, folder: Path | None = None) -> None:
        self._folder = folder
        self.finished = np.zeros(count, bool)
        self.columns: dict[str, np.ndarray] = {}
        if folder is None:
            self.columns = blank(columns, count)
            return
        writable_directory(folder)
        begun = (folder / FINISHED).exists()  # written last
        for name, column in (columns | TRAINED).items():
            path, shape = folder / f"{name}.npy", (count, *column.shape)
            if not begun:
                with whole_file(path) as partial:
                    _make(partial, column.dtype, shape)
            _read(path, shape, column.dtype, folder)  # opened to write, a short file would grow
            self.columns[name] = np.load(path, mmap_mode="r+", allow_pickle=False)
        if begun:
            self.finished[_checked(self.columns, folder)] = True
        else:
            self.flush()

    def put(self, rows: np.ndarray, values: Mapping[str, np.ndarray]) -> None:
        """The rows of networks that have finished; those that had before stay as they are, with their checksums."""
        fresh = ~self.finished[rows]
        for name, column in self.columns.items():
            column[rows[fresh]] = np.asarray(values[name])[fresh]
        self.finished[rows] = True

    def flush(self) -> None:
        """Writes rows that are kept in files to the disk, and a checksum of each."""
        if self._folder is None:
            return
        for column in self.columns.values():
            if isinstance(column, np.memmap):
                column.flush()
        checksums = {row: _checksum(self.columns, row) for row in np.flatnonzero(self.finished).tolist()}
        with whole_file(self._folder / FINISHED) as partial:
            partial.write_text(json.dumps(checksums) + "\n")


def read_finished(folder: Path, columns: Columns, count: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Which of the networks of a folder have finished, and the columns of all of them, to be read only.

    Raises:
        InputError: they are damaged, of another shape, or gone in part.
    """
    if not (folder / FINISHED).exists():
        return np.zeros(0, int), {}
    found = {
        name: _read(folder / f"{name}.npy", (count, *column.shape), column.dtype, folder)
        for name, column in (columns | TRAINED).items()
    }
    return _checked(found, folder), found


def _make(path: Path, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    """A file of zeros that has its place on the disk: to write into a hole on a full disk ends the process."""
    np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape).flush()
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)


def _read(path: Path, shape: tuple[int, ...], dtype: Any, folder: Path) -> np.ndarray:
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path}: results of networks in training are gone or damaged: remove {folder}") from error
    if found.shape != shape or found.dtype != dtype:
        kinds = f"{found.dtype} {found.shape} results of networks in training, not {np.dtype(dtype)} {shape}"
        raise InputError(f"{path}: {kinds}: remove {folder}")
    return found


def _checked(columns: Mapping[str, np.ndarray], folder: Path) -> np.ndarray:
    """The rows that have finished, compared with their checksums.

    Raises:
        InputError: a row, or the checksums, are not what was written.
    """
    path = folder / FINISHED
    try:
        found = {int(row): sum for row, sum in json.loads(path.read_text()).items()} if path.exists() else {}
        damaged = [row for row, checksum in found.items() if _checksum(columns, row) != checksum]
    except (OSError, ValueError, AttributeError, IndexError) as error:
        raise InputError(f"{path}: checksums of networks in training are damaged: remove {folder}") from error
    if damaged:
        raise InputError(f"{folder}: the results in row {damaged[0]} are damaged: remove this folder")
    return np.array(list(found), int)


def _checksum(columns: Mapping[str, np.ndarray], row: int) -> int:
    return functools.reduce(lambda sum, column: zlib.crc32(column[row].tobytes(), sum), columns.values(), 0)
