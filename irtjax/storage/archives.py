"""Archives of arrays (NPZ), read without trust: whatever is wrong with one is one error, and nothing is unpickled."""

import contextlib
import os
import warnings
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO, BinaryIO

import numpy as np
from numpy.typing import DTypeLike

from irtjax.errors import InputError
from irtjax.storage.memory import require_memory
from irtjax.storage.sources import one_line

Arrays = dict[str, np.ndarray]
ENDING = ".npy"
BYTES_AT_ONCE = 2**26


def read_arrays(path: str | Path, names: Collection[str] = (), *, uncompressed: bool = False) -> Arrays:
    """The arrays of an NPZ file; those called `names`, or all.

    Args:
        path: of the file.
        names: of arrays.
        uncompressed: whether it is refused where its arrays would take more memory than it has bytes.

    Raises:
        InputError: it cannot be read, is damaged, lacks an array, or takes more memory than there is; the message does
            not name the file.
    """
    try:
        with Path(path).open("rb") as file:
            return _arrays(file, names, os.fstat(file.fileno()).st_size if uncompressed else None)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})") from error


def names_of_arrays(path: str | Path) -> list[str]:
    """Which arrays an NPZ file has.

    Raises:
        InputError: it is damaged; the message does not name the file.
    """
    try:
        with Path(path).open("rb") as file, zipfile.ZipFile(file) as archive:
            return [member.removesuffix(ENDING) for member in archive.namelist()]
    except Exception as error:  # as of the arrays
        raise InputError(f"not an NPZ file of plain arrays ({one_line(error)})") from error


def _arrays(file: BinaryIO, names: Collection[str], most_bytes: int | None) -> Arrays:
    try:
        with warnings.catch_warnings(), zipfile.ZipFile(file) as archive:
            warnings.simplefilter("ignore")  # of headers that old versions of NumPy wrote
            members = archive.namelist()
            sizes = {member.filename: member.file_size for member in archive.infolist()}
            if most_bytes is not None and sum(sizes.values()) > most_bytes:
                raise ValueError("arrays that are larger than the file")
            missing = [name for name in names if name + ENDING not in members]
            wanted = [] if missing else names or [member.removesuffix(ENDING) for member in members]
            require_memory(sum(sizes.get(name + ENDING, 0) for name in wanted))
            arrays = {name: _array(archive, name + ENDING) for name in wanted}
    except InputError:
        raise
    except Exception as error:  # whatever zipfile, its decoders and NumPy raise on damaged files
        raise InputError(f"not an NPZ file of plain arrays ({one_line(error)})") from error
    if missing:
        raise InputError(f"has no array {missing[0]}; expected {', '.join(names)}")
    if len(set(members)) < len(members):
        raise InputError("has an array twice")
    return arrays


def _array(archive: zipfile.ZipFile, member: str) -> np.ndarray:
    """An array, read to the end of its member, where the checksum is compared; `numpy.load` may stop before."""
    with archive.open(member) as file:
        array = np.lib.format.read_array(file, allow_pickle=False)
        if file.read(1):
            raise ValueError(f"{member} has more bytes than its header says")
    return array


class ArrayInArchive:
    """A matrix in an NPZ file that need not be read as a whole.

    Attributes:
        shape: of the matrix.
        dtype: of its numbers.

    Raises:
        InputError: the file cannot be read, is damaged, or has no such array of numbers.
    """

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._member = path, name + ENDING
        with self._opened() as file:
            self.shape, self._by_column, self.dtype = _header(file)
        if self.dtype.kind not in "biuf":
            raise InputError(f"{name} of type {self.dtype}, expected integers")

    def read(self, rows: range, columns: range, dtype: DTypeLike) -> np.ndarray:
        """Some rows and columns; the file is read to its end, where the checksum is compared.

        Args:
            rows: without a step.
            columns: without a step.
            dtype: small integers; numbers that it cannot hold become its greatest.

        Raises:
            InputError: the file is damaged.
        """
        lines, across = (columns, rows) if self._by_column else (rows, columns)
        num_lines, length = self.shape[::-1] if self._by_column else self.shape
        result = np.empty((len(lines), len(across)), dtype)
        size = length * self.dtype.itemsize
        step = max(1, BYTES_AT_ONCE // max(size, 1))
        with self._opened() as file:
            _header(file)
            for at in range(0, num_lines, step):
                number = min(step, num_lines - at)
                data = file.read(number * size)
                if len(data) < number * size:
                    raise ValueError(f"{self._member} ends before row {at + number} of {num_lines}")
                low, high = max(at, lines.start), min(at + number, lines.stop)
                if low < high:
                    found = np.frombuffer(data, self.dtype).reshape(number, length)
                    part = found[low - at : high - at, across.start : across.stop]
                    result[low - lines.start : high - lines.start] = _narrowed(part, dtype)
            if file.read(1):
                raise ValueError(f"{self._member} has more bytes than its header says")
        return np.ascontiguousarray(result.T) if self._by_column else result

    @contextlib.contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        try:
            with self._path.open("rb") as file, zipfile.ZipFile(file) as archive:
                if self._member not in archive.namelist():
                    raise InputError(f"has no array {self._member.removesuffix(ENDING)}")
                with archive.open(self._member) as member:
                    yield member
        except InputError:
            raise
        except OSError as error:
            raise InputError(f"cannot be read ({error.strerror or error})") from error
        except Exception as error:
            raise InputError(f"not an NPZ file of plain arrays ({one_line(error)})") from error


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = np.lib.format.read_magic(file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        return read(file)


def _narrowed(values: np.ndarray, dtype: DTypeLike) -> np.ndarray:
    """As another type; what that cannot hold exactly becomes its greatest number, and not another by chance."""
    narrow = values.astype(dtype)
    return narrow if values.dtype == dtype else np.where(narrow == values, narrow, np.iinfo(dtype).max).astype(dtype)
