"""Archives of arrays (NPZ), read without trust: whatever is wrong with one is one error, and nothing is unpickled."""

import lzma
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Collection
from pathlib import Path

import numpy as np

from irtjax.errors import InputError

Arrays = dict[str, np.ndarray]
# of archives that are damaged, encrypted or compressed in another way, and of damaged headers of arrays
DAMAGE = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, tokenize.TokenError, EOFError, TypeError, ValueError,
    RuntimeError, SyntaxError, OverflowError,
)  # fmt: skip


def read_arrays(path: str | Path, names: Collection[str] = ()) -> Arrays:
    """The arrays of an NPZ file; those called `names`, or all.

    Raises:
        InputError: it cannot be read, is damaged, or lacks an array; the message does not name the file.
    """
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in names or archive.files}
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})") from error
    except KeyError as error:
        raise InputError(f"{error.args[0]}; expected {', '.join(names)}") from error
    except MemoryError as error:
        raise InputError(f"claims arrays that do not fit into memory ({error})") from error
    except (*DAMAGE, AttributeError) as error:
        raise InputError(f"not an NPZ file of plain arrays ({error})") from error
