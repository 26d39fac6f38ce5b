"""Small files that would fill the memory: refused before they are read, as a full memory ends a process without a word.

Archives and Parquet compress what repeats a thousand times and more.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from irtjax.errors import InputError

GIB = 2**30
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current")  # of a container, and what it has taken
TEXT_BYTES = 4  # of a cell of text at least: where it ends


def require_memory(num_bytes: int) -> None:
    """Refuses what would take more memory than there is.

    Raises:
        InputError: says how much; the message does not name the file.
    """
    free = free_memory()
    if num_bytes > free:
        raise InputError(
            f"takes {num_bytes / GIB:,.1f} GiB of memory, and {free / GIB:,.1f} GiB are free: give a smaller file, or "
            "a larger machine"
        )


def free_memory() -> int:
    """Bytes that a process can still have; those of the machine where the system does not tell."""
    known = Path("/proc/meminfo")
    if known.is_file():
        entries = dict(line.split(":", 1) for line in known.read_text(encoding="ascii").splitlines() if ":" in line)
        found = 1024 * int(entries.get("MemAvailable", entries["MemTotal"]).split()[0])
    else:
        found = os.sysconf("SC_PAGESIZE") * os.sysconf("SC_PHYS_PAGES")
    most, taken = (_number_in(path) for path in LIMITS)
    return found if most is None or taken is None else min(found, max(most - taken, 0))


def _number_in(path: str) -> int | None:
    """The number that is all that a file has; None where it has none, as for no limit."""
    try:
        return int(Path(path).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def parquet_bytes(file: Any, columns: Sequence[str] | None = None, group: int | None = None) -> int:
    """Bytes that a Parquet file takes in memory, at least, by what it says of itself.

    Args:
        file: `pyarrow.parquet.ParquetFile`.
        columns: that are read; None for all.
        group: of rows, that is read; None for all.
    """
    known, schema = file.metadata, file.schema_arrow
    rows = known.num_rows if group is None else known.row_group(group).num_rows
    groups = range(known.num_row_groups) if group is None else (group,)
    wanted = schema.types if columns is None else [schema.field(name).type for name in columns if name in schema.names]
    cells = rows * sum(_width(kind) for kind in wanted)
    pages = 0 if columns is not None else sum(known.row_group(at).total_byte_size for at in groups)
    return max(cells, pages)


def _width(kind: Any) -> int:
    """Bytes of a cell."""
    try:
        return max(kind.bit_width // 8, 1)
    except ValueError:  # texts, lists and others of no fixed width
        return TEXT_BYTES
