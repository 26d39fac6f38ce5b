"""Files that are either whole or absent: written under a temporary name, then renamed."""

import contextlib
import csv
import errno
import fcntl
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from irtjax.errors import InputError

if TYPE_CHECKING:
    import pandas as pd  # alone of what is here, and commands import this before they know their flags

PARTIAL = ".partial-"
_OPEN: dict[Path, list[Path]] = {}  # partial files and folders of this process, and folders that were made for them
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # what a write may end with, however good the path


@contextlib.contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Yields a temporary path that becomes `path` when the block ends without an error.

    Args:
        path: the file to write; its folder must exist.

    Raises:
        InputError: the folder cannot be written to, or the disk is full.
    """
    path = Path(path)

    def make() -> Path:
        handle, name = tempfile.mkstemp(prefix=f"{PARTIAL}{path.stem}-", suffix=path.suffix, dir=path.parent)
        os.close(handle)
        return Path(name)

    _remove_leftovers(path.parent, f"{PARTIAL}{path.stem}-*{path.suffix}")
    with _claimed(make, path.parent) as partial, _naming_full_disks(partial, path):
        yield partial
        partial.chmod(0o666 & ~_umask())  # mkstemp makes files that only their owner can read
        partial.replace(path)


@contextlib.contextmanager
def whole_directory(path: str | Path) -> Iterator[Path]:
    """Yields a temporary folder that becomes `path` when the block ends without an error.

    `path` must not exist yet; leftovers of an interrupted attempt at the same folder are removed first.

    Raises:
        InputError: it cannot be written to, or the disk is full.
    """
    path = Path(path)
    with _partial_directory(path.parent, path.name) as partial, _naming_full_disks(partial, path):
        yield partial
        partial.chmod(0o777 & ~_umask())
        partial.rename(path)


@contextlib.contextmanager
def whole_results(path: str | Path, former: Collection[str] = ()) -> Iterator[Path]:
    """Yields a temporary folder whose files appear in `path` together when the block ends without an error.

    Files of the same names are replaced; others stay. After an error nothing has changed: a folder that was missing is
    missing again.

    Args:
        path: the folder of the results; made where it is missing.
        former: files and folders of an earlier result, relative to `path`, that are removed when the new ones appear.

    Raises:
        InputError: the folder cannot be made or written to, or the disk is full.
    """
    path = Path(path)
    with contextlib.ExitStack() as beginning:
        beginning.enter_context(_uninterrupted())
        made = _missing(path)
        writable_directory(path)
        yield from _filled(path, made, former, beginning.close)


def _filled(path: Path, made: list[Path], former: Collection[str], begun: Callable[[], None]) -> Iterator[Path]:
    """The block of `whole_results`; `begun` is called as soon as an interruption would be cleaned up."""
    try:
        with _partial_directory(path, "results") as partial, _naming_full_disks(partial, path):
            _OPEN[partial] = made
            begun()
            yield partial
            with _alone(path), _uninterrupted():
                _require_places(partial, path)
                for name in former:
                    _remove(path / name)
                _move_files(partial, path)
    finally:
        _remove_empty(made)


def discard_partial() -> None:
    """Removes what this process is about to write, as it is about to end."""
    for partial, made in list(_OPEN.items()):
        _remove(partial)
        _remove_empty(made)


def writable_directory(path: str | Path) -> Path:
    """Makes `path` where it is missing and proves that files can be written in it.

    Raises:
        InputError: it cannot be made or written to.
    """
    path = Path(path)
    if exists(path) and not path.is_dir():
        raise InputError(f"{path}: is a file, expected a folder or a new name")
    if path.is_symlink() and not path.exists():
        raise InputError(f"{path}: is a link to {os.readlink(path)}, which is not there: make that folder")
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except (OSError, ValueError) as error:  # a name with a NUL is a ValueError
        raise InputError(f"{path}: cannot write there ({_reason(error)})") from error
    return path


def exists(path: Path) -> bool:
    """Whether there is such a file or folder.

    Raises:
        InputError: none can have that name, or it cannot be looked for.
    """
    try:
        return path.exists()
    except (OSError, ValueError) as error:
        raise InputError(f"{path!s:.100}: no such path is possible ({_reason(error)})") from error


def write_csv(table: "pd.DataFrame", path: str | Path) -> None:
    """Writes a table without its index, numbers to six significant digits, so that equal results are equal bytes."""
    texts = table.select_dtypes(exclude="number")
    returns = any("\r" in str(cell) for column in texts for cell in texts[column])  # which pandas leaves bare
    with whole_file(path) as partial:
        quoting = csv.QUOTE_ALL if returns else csv.QUOTE_MINIMAL
        table.to_csv(partial, index=False, float_format="%.6g", quoting=quoting)


@contextlib.contextmanager
def _partial_directory(parent: Path, name: str) -> Iterator[Path]:
    """A new folder in `parent`, removed at the end if it is still there."""
    _remove_leftovers(parent, f"{PARTIAL}{name}-*")
    with _claimed(lambda: Path(tempfile.mkdtemp(prefix=f"{PARTIAL}{name}-", dir=parent)), parent) as partial:
        yield partial


@contextlib.contextmanager
def _claimed(make: Callable[[], Path], folder: Path) -> Iterator[Path]:
    """A new temporary file or folder under a lock, which tells it from what a killed process left behind."""
    try:
        while True:
            partial = make()
            try:
                handle = os.open(partial, os.O_RDONLY)
            except FileNotFoundError:  # another process took it for a leftover
                continue
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(handle, fcntl.LOCK_EX)
            if partial.exists():
                break
            os.close(handle)
    except OSError as error:
        raise InputError(f"{folder}: cannot write there ({_reason(error)})") from error
    _OPEN[partial] = []
    try:
        yield partial
    finally:
        _remove(partial)
        del _OPEN[partial]
        os.close(handle)


def _remove_leftovers(folder: Path, pattern: str) -> None:
    """Removes what killed attempts left behind, and nothing that another process is writing."""
    for leftover in folder.glob(pattern):
        with contextlib.suppress(OSError):  # gone, or locked by who writes it
            handle = os.open(leftover, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # a pipe of that name would wait
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(leftover)
            finally:
                os.close(handle)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _require_places(source: Path, target: Path) -> None:
    """Refuses folders where files are to be, and files where folders are."""
    for path in source.rglob("*"):
        place = target / path.relative_to(source)
        if path.is_file() and place.is_dir():
            raise InputError(f"{place}: is a folder where a file of the results belongs; remove it")
        if path.is_dir() and not place.is_dir() and os.path.lexists(place):
            raise InputError(f"{place}: is a file where a folder of the results belongs; remove it")


def _remove_empty(folders: list[Path]) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):  # it has results, or another process writes there
            folder.rmdir()


def _move_files(source: Path, target: Path) -> None:
    """Moves all files below a folder to their places below another; renaming takes no space on the disk."""
    for file in sorted(path for path in source.rglob("*") if path.is_file()):
        place = target / file.relative_to(source)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            file.replace(place)
        except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:  # since `_require_places` looked
            raise InputError(f"{place}: another program writes to this folder: give one of its own") from error


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Waits until no other process moves results into a folder, so that those of two do not mix."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        if folder not in _OPEN:  # one that this process is about to write has a lock already
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _missing(path: Path) -> list[Path]:
    """The folders that would have to be made for `path`, the innermost first."""
    return [folder for folder in (path, *path.parents) if not exists(folder)]


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Holds back Ctrl-C and requests to end for the moment that the block takes."""
    held = {signal.SIGINT, signal.SIGTERM}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _naming_full_disks(partial: Path, path: Path) -> Iterator[None]:
    """One line about a disk that is full, or a folder that is gone, instead of the error of whoever wrote.

    It has the name that people know.
    """
    try:
        yield
    except InputError as error:
        raise InputError(str(error).replace(str(partial), str(path))) from error
    except OSError as error:
        if error.errno not in FULL and partial.exists():
            raise
        reason = _reason(error) if error.errno in FULL else "its folder was removed meanwhile"
        raise InputError(f"{path}: cannot be written ({reason})") from error


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
