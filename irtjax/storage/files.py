"""Files that are either whole or absent: write under a temporary name, then rename."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from irtjax.errors import InputError

PARTIAL = ".partial-"


@contextlib.contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Yields a temporary path that becomes `path` when the block ends without an error.

    Args:
        path: the file to write; its folder must exist.

    Raises:
        InputError: the folder cannot be written to.
    """
    path = Path(path)
    _remove_leftovers(path.parent, f"{PARTIAL}{path.stem}-*{path.suffix}")
    try:
        handle, name = tempfile.mkstemp(prefix=f"{PARTIAL}{path.stem}-", suffix=path.suffix, dir=path.parent)
    except OSError as error:
        raise InputError(f"{path.parent}: cannot write there ({error.strerror})") from error
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        partial.chmod(0o666 & ~_umask())  # mkstemp makes files that only their owner can read
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def whole_directory(path: str | Path) -> Iterator[Path]:
    """Yields a temporary folder that becomes `path` when the block ends without an error.

    `path` must not exist yet; leftovers of an interrupted attempt at the same folder are removed first.
    """
    path = Path(path)
    _remove_leftovers(path.parent, f"{PARTIAL}{path.name}-*")
    partial = Path(tempfile.mkdtemp(prefix=f"{PARTIAL}{path.name}-", dir=path.parent))
    try:
        yield partial
        partial.chmod(0o777 & ~_umask())
        partial.rename(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def writable_directory(path: str | Path) -> Path:
    """Makes `path` where it is missing and proves that files can be written in it.

    Raises:
        InputError: it cannot be made or written to.
    """
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise InputError(f"{path}: is a file, expected a folder or a new name")
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise InputError(f"{path}: cannot write there ({error.strerror})") from error
    return path


def write_csv(table: pd.DataFrame, path: str | Path) -> None:
    """Writes a table without its index, numbers to six significant digits, so that equal results are equal bytes."""
    with whole_file(path) as partial:
        table.to_csv(partial, index=False, float_format="%.6g")


def _remove_leftovers(folder: Path, pattern: str) -> None:
    """Removes what a killed attempt left behind."""
    for leftover in folder.glob(pattern):
        if leftover.is_dir():
            shutil.rmtree(leftover)
        else:
            leftover.unlink()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
