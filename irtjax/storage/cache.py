"""Arrays kept between runs, in the user's cache folder; losing them costs time and nothing else."""

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from irtjax.errors import InputError
from irtjax.storage.archives import Arrays, read_arrays
from irtjax.storage.digests import digest
from irtjax.storage.files import whole_file


def cache_directory() -> Path:
    """`$IRTJAX_CACHE`, or `irtjax` in `$XDG_CACHE_HOME` or `~/.cache`.

    Raises:
        RuntimeError: neither is set, and the user has no home.
    """
    if given := os.environ.get("IRTJAX_CACHE"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "irtjax"


def cached(name: str, key: Iterable[object], make: Callable[[], Arrays]) -> Arrays:
    """The arrays of the cache file for `name` and `key`, made and kept there where it is missing or damaged.

    Args:
        name: the start of the file's name, for people.
        key: everything that the arrays depend on, see `irtjax.storage.digests.digest`.
        make: makes the arrays; none of them may hold objects.
    """
    try:
        path = cache_directory() / f"{name}-{digest(*key)[:24]}.npz"
    except RuntimeError:  # a user without a home
        return make()
    arrays = _read(path)
    if arrays is None:
        arrays = make()
        with contextlib.suppress(InputError, OSError):  # a full or read-only disk
            path.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(path) as partial:
                np.savez(partial, allow_pickle=False, **arrays)
    return arrays


def _read(path: Path) -> Arrays | None:
    try:
        return read_arrays(path) or None
    except InputError:
        return None
