"""Small files that would fill the memory: refused before they are read, as a full memory ends a process without a word.

Archives and Parquet compress what repeats a thousand times and more.
"""

import contextlib
import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from irtjax.errors import InputError

GIB = 2**30
OF_CONTAINER = Path("/sys/fs/cgroup")  # where Linux says what a container may have, and has taken
CACHES = ("active_file", "inactive_file")  # of files that were read: counted as taken, and given up when it is wanted
TEXT_BYTES = 4  # of a cell of text at least: where it ends
TEXTS_AT_ONCE = 2**16  # rows whose texts are counted together


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


def parquet_bytes(path: Path, file: Any, columns: Sequence[str] | None = None, group: int | None = None) -> int:
    """Bytes that a Parquet file takes in memory, at least, by what it says of itself.

    Args:
        path: of the file.
        file: `pyarrow.parquet.ParquetFile`.
        columns: that are read; None for all.
        group: of rows, that is read; None for all.
    """
    import pyarrow

    known, schema = file.metadata, file.schema_arrow
    rows = known.num_rows if group is None else known.row_group(group).num_rows
    groups = range(known.num_row_groups) if group is None else (group,)
    kinds = dict(zip(schema.names, schema.types, strict=True))  # asking the schema by name takes time in all columns
    wanted = schema.types if columns is None else [kinds[name] for name in columns if name in kinds]
    cells = rows * sum(_width(kind) for kind in wanted)
    pages = 0 if columns is not None else sum(known.row_group(at).total_byte_size for at in groups)
    named = {name for name in (kinds if columns is None else columns) if name in kinds and _is_text(kinds[name])}
    found = 0
    with contextlib.suppress(pyarrow.ArrowException, OSError):  # of damaged texts, which reading them finds
        found = _bytes_of_texts(path, known, named, groups) if named else 0
    return max(cells, pages, found)


def _bytes_of_texts(path: Path, known: Any, names: set[str], groups: Sequence[int]) -> int:
    """Bytes that texts take where a file has each once, and the memory as often as it occurs; 0 if they must be few.

    A text is no longer than the pages of its rows, or of its column, nor than the longest of its dictionary. Only where
    these, times the rows, are above the free memory are texts read, each once, and counted.
    """
    import pyarrow.compute
    import pyarrow.parquet

    free, chosen = free_memory(), sorted(names)
    of_groups = [known.row_group(group) for group in groups]
    if sum(group.num_rows * group.total_byte_size for group in of_groups) <= free:  # before columns are looked for
        return 0
    places = [at for at in range(known.num_columns) if known.schema.column(at).path in names]

    def pages(group: int) -> int:
        return sum(known.row_group(group).column(at).total_uncompressed_size for at in places)

    if sum(known.row_group(group).num_rows * pages(group) for group in groups) <= free:
        return 0
    file = pyarrow.parquet.ParquetFile(path, read_dictionary=chosen, pre_buffer=False)

    def lengths(group: int, rows: int) -> Iterator[tuple[Any, Any]]:
        for batch in file.iter_batches(rows, row_groups=[group], columns=chosen):
            for column in batch.columns:
                yield pyarrow.compute.binary_length(column.dictionary), column.indices

    def longest(group: int) -> int:
        each = itertools.islice(lengths(group, 1), len(chosen))
        return sum(pyarrow.compute.max(length).as_py() or 0 for length, _ in each)

    if sum(pages(group) + known.row_group(group).num_rows * longest(group) for group in groups) <= free:
        return 0
    every = itertools.chain.from_iterable(lengths(group, TEXTS_AT_ONCE) for group in groups)
    return sum(pyarrow.compute.sum(length.take(index)).as_py() or 0 for length, index in every)


def _is_text(kind: Any) -> bool:
    from pyarrow import lib

    kind = kind.value_type if kind.id == lib.Type_DICTIONARY else kind
    return kind.id in (lib.Type_STRING, lib.Type_LARGE_STRING, lib.Type_BINARY)


def _width(kind: Any) -> int:
    """Bytes of a cell."""
    try:
        return max(kind.bit_width // 8, 1)
    except ValueError:  # texts, lists and others of no fixed width
        return TEXT_BYTES
