"""Programs that XLA compiled, kept for the next command in the user's cache folder; losing them costs time alone."""

import contextlib
import os
import platform
import re
import shutil
import stat
import sys
from importlib.metadata import version
from pathlib import Path

import jax

from irtjax.storage.cache import cache_directory
from irtjax.storage.digests import digest

MOST_BYTES = 2**28  # that are there when a command starts; a fit leaves 0.3 MB, a crowd a few
LEAST_FREE = 2**26  # bytes of the disk, below which nothing is kept: JAX leaves what a full one cuts short
KEPT_SHARE = 0.75  # of them where there are more, the ones used last
SHORTEST = 0.1  # seconds that a program took to compile: to read one takes some milliseconds
ENVIRONMENT = ("JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE")  # a user who has set one decides alone


def keep_compiled() -> None:
    """Has JAX keep what it compiles, and read what earlier commands kept, in `compiled` of the cache folder.

    The folder belongs to the user alone, as JAX runs what is in it. Programs of other versions of JAX and of processors
    with other instructions have folders of their own. Nothing is kept where the folder cannot be used, on a disk that
    is nearly full, which a note says, or where the user has set one of `ENVIRONMENT`. Of commands that run at once,
    each reads what others have written, and JAX compiles again what it cannot read.
    """
    already = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
    if any(name in os.environ for name in ENVIRONMENT) or already is not None:
        return
    with contextlib.suppress(OSError, RuntimeError):  # a disk that is full or read-only; a user without a home
        root = cache_directory() / "compiled"
        folder = root / digest(version("jax"), version("jaxlib"), _processor())[:12]
        root.parent.mkdir(parents=True, exist_ok=True)
        if (free := shutil.disk_usage(root.parent).free) < LEAST_FREE:
            _note(f"compiled programs are not kept: the disk of {root} has {free >> 20} MB left")
            return
        with contextlib.suppress(FileExistsError):
            root.mkdir(mode=0o700)
            _note(
                f"compiled programs are kept in {root}, {MOST_BYTES >> 20} MB at most, and start the next "
                "command faster; JAX_ENABLE_COMPILATION_CACHE=false keeps none"
            )
        folder.mkdir(mode=0o700, exist_ok=True)
        if not (_of_user_alone(root) and os.access(folder, os.R_OK | os.W_OK | os.X_OK)):
            return
        discard_oldest(root, MOST_BYTES)
        jax.config.update("jax_compilation_cache_dir", str(folder))
        if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
            jax.config.update("jax_persistent_cache_min_compile_time_secs", SHORTEST)


def _note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr)


def discard_oldest(root: Path, most: int) -> None:
    """Removes the files below a folder that were used longest ago, where all have more than `most` bytes together.

    `KEPT_SHARE` of `most` is left, so that not every command has to remove some. Empty files, of a disk that was full,
    go too: JAX would compile anew what they are of, each time, and leave them as they are.
    """
    found = [(path, path.lstat()) for path in root.glob("*/*")]
    for path, file in found:
        if not file.st_size:
            with contextlib.suppress(OSError):
                path.unlink()
    size = sum(file.st_size for _, file in found)
    if size <= most:
        return
    for path, file in sorted(found, key=lambda one: max(one[1].st_atime, one[1].st_mtime)):
        if size <= KEPT_SHARE * most:
            return
        with contextlib.suppress(OSError):  # another command was faster
            path.unlink()
        size -= file.st_size


def _of_user_alone(folder: Path) -> bool:
    """Whether nobody else can write into a folder; true where the system does not tell."""
    if not hasattr(os, "getuid"):
        return True
    found = folder.stat()
    return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _processor() -> str:
    """What tells processors apart that cannot run each other's programs."""
    known = Path("/proc/cpuinfo")
    text = known.read_text(encoding="utf-8", errors="replace") if known.is_file() else ""
    features = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    return f"{platform.machine()} {features[1] if features else platform.processor()}"
