"""Small files that would fill the memory: refused before they are read, as a full memory ends a process without a word.

Archives and Parquet compress what repeats a thousand times and more.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from irtjax.errors import InputError

GIB = 2**30
OF_CONTAINER = Path("/sys/fs/cgroup")  # where Linux says what a container may have, and has taken
CACHES = ("active_file", "inactive_file")  # of files that were read: counted as taken, and given up when it is wanted
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
    machine = Path("/proc/meminfo")
    if machine.is_file():
        entries = dict(line.split(":", 1) for line in machine.read_text(encoding="ascii").splitlines() if ":" in line)
        found = 1024 * int(entries.get("MemAvailable", entries["MemTotal"]).split()[0])
    else:
        found = os.sysconf("SC_PAGESIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        most, taken = (int((OF_CONTAINER / name).read_text("ascii")) for name in ("memory.max", "memory.current"))
        known = dict(line.split() for line in (OF_CONTAINER / "memory.stat").read_text("ascii").splitlines())
    except (OSError, ValueError):  # none, or one without a limit
        return found
    return min(found, max(most - taken + sum(int(known.get(name, 0)) for name in CACHES), 0))


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
    kinds = dict(zip(schema.names, schema.types, strict=True))  # asking the schema by name takes time in all columns
    wanted = schema.types if columns is None else [kinds[name] for name in columns if name in kinds]
    cells = rows * sum(_width(kind) for kind in wanted)
    pages = 0 if columns is not None else sum(known.row_group(at).total_byte_size for at in groups)
    return max(cells, pages)


def _width(kind: Any) -> int:
    """Bytes of a cell."""
    try:
        return max(kind.bit_width // 8, 1)
    except ValueError:  # texts, lists and others of no fixed width
        return TEXT_BYTES
