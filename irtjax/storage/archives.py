"""Archives of arrays (NPZ), read without trust: whatever is wrong with one is one error, and nothing is unpickled."""

import warnings
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO

import numpy as np

from irtjax.errors import InputError
from irtjax.storage.sources import one_line

Arrays = dict[str, np.ndarray]
ENDING = ".npy"


def read_arrays(path: str | Path, names: Collection[str] = ()) -> Arrays:
    """The arrays of an NPZ file; those called `names`, or all.

    Raises:
        InputError: it cannot be read, is damaged, or lacks an array; the message does not name the file.
    """
    try:
        with Path(path).open("rb") as file:
            return _arrays(file, names)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})") from error


def _arrays(file: BinaryIO, names: Collection[str]) -> Arrays:
    try:
        with warnings.catch_warnings(), zipfile.ZipFile(file) as archive:
            warnings.simplefilter("ignore")  # of headers that old versions of NumPy wrote
            members = archive.namelist()
            missing = [name for name in names if name + ENDING not in members]
            wanted = [] if missing else names or [member.removesuffix(ENDING) for member in members]
            arrays = {name: _array(archive, name + ENDING) for name in wanted}
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
