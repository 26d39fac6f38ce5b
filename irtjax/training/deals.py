"""Networks assigned to processes: each trains its own; what has finished stays where it is when they are assigned anew.

A folder holds one deal after the other: the first of all networks, the next, for another number of processes or of
devices, of those that had not finished by then. In a deal each process has a part, a folder that it alone writes to.
"""

import hashlib
import json
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from irtjax import processes
from irtjax.errors import InputError
from irtjax.storage.files import whole_file, writable_directory
from irtjax.training.pool import Job, shapes
from irtjax.training.results import Columns, blank, read_finished

PREFIX, RECORD = "deal_", "deal.json"
VISIBLE_SECONDS = 60.0  # after which all processes should see a file that one has written


class Deal(NamedTuple):
    """Networks that are dealt.

    Attributes:
        folder: of the deal.
        devices: how many each process has.
        parts: which networks each process trains, in increasing order.
    """

    folder: Path
    devices: list[int]
    parts: list[list[int]]

    def part(self, process: int) -> Path:
        """The folder of one process."""
        return self.folder / f"part_{process:04d}"


def dealt(networks: Sequence[int], count: int) -> list[list[int]]:
    """Networks assigned round-robin to so many processes: all have equally many of those that stand together."""
    return [sorted(networks[process::count]) for process in range(count)]


def open_deals(folder: Path, networks: Sequence[int], columns: Columns, devices: int, signature: str) -> list[Deal]:
    """The deals in a folder; the last is the one to work on, made now if there is none for so many processes.

    Called by all processes that work together.

    Args:
        folder: of the deals; one that all processes share.
        networks: all of them, in the order in which they are dealt.
        columns: see `irtjax.training.results`.
        devices: of this process.
        signature: of what the networks depend on.

    Raises:
        InputError: the folder holds other networks, or damaged ones, or not all processes share it.
    """
    all_devices = processes.everyone(devices)

    def deal() -> list[Deal]:
        writable_directory(folder)
        deals = _read(folder, signature)
        if deals and deals[-1].devices == all_devices:
            before, _ = collect(deals[:-1], columns, len(networks))
            last = np.concatenate([np.array(part, int) for part in deals[-1].parts])
            if sorted([*np.flatnonzero(before), *last]) == list(range(len(networks))):
                return deals  # else a part of an earlier deal was removed
        finished, _ = collect(deals, columns, len(networks))
        parts = dealt([network for network in networks if not finished[network]], len(all_devices))
        number = 1 + int(deals[-1].folder.name.removeprefix(PREFIX)) if deals else 0
        own = folder / f"{PREFIX}{number:04d}"
        own.mkdir(exist_ok=True)
        record = {"signature": signature, "devices": all_devices, "parts": parts}
        with whole_file(own / RECORD) as path:
            path.write_text(json.dumps({"checksum": _checksum(record), **record}) + "\n")
        return [*deals, Deal(own, all_devices, parts)]

    found = processes.agreed(lambda: deal() if processes.index() == 0 else [])
    count = processes.everyone(len(found))[0]

    def look() -> list[Deal]:
        until = time.monotonic() + VISIBLE_SECONDS
        while len(deals := _read(folder, signature)) < count:
            if time.monotonic() > until:
                raise InputError(f"{folder}: what process 0 writes there cannot be seen; give a folder that all share")
            time.sleep(0.1)
        return deals

    return processes.agreed(lambda: found or look())


def collect_all(folder: Path, deals: Sequence[Deal], columns: Columns, count: int) -> dict[str, np.ndarray]:
    """The rows of all networks, once all have finished; another process's last ones may be seen a little later.

    Raises:
        InputError: some have not, or are damaged.
    """
    until = time.monotonic() + VISIBLE_SECONDS
    while True:
        finished, found = collect(deals, columns, count)
        if finished.all():
            return found
        if time.monotonic() > until:
            missing = np.flatnonzero(~finished)
            raise InputError(f"{folder}: {missing.size} of {count} networks are gone: give the same command again")
        time.sleep(0.1)


def collect(deals: Sequence[Deal], columns: Columns, count: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Which of `count` networks have finished, and their rows of all columns, from all parts of some deals.

    Raises:
        InputError: some are damaged or gone.
    """
    finished = np.zeros(count, bool)
    whole = blank(columns, count)
    for deal in deals:
        for process, part in enumerate(deal.parts):
            rows, found = read_finished(deal.part(process), columns, len(part))
            networks = np.array(part, int)[rows]
            finished[networks] = True
            for name, column in found.items():
                whole[name][networks] = column[rows]
    return finished, whole


def _read(folder: Path, signature: str) -> list[Deal]:
    deals = []
    for path in sorted(folder.glob(f"{PREFIX}*/{RECORD}")):
        try:
            record = json.loads(path.read_text())
            if record.pop("checksum") != _checksum(record):
                raise ValueError("its checksum is another")
            made_for, deal = record["signature"], Deal(path.parent, record["devices"], record["parts"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{path}: a damaged record of networks in training: remove {folder}") from error
        if made_for != signature:
            raise InputError(
                f"{folder} holds networks in training with other members, data or options: go on with those, or "
                "remove it"
            )
        deals.append(deal)
    return deals


def signature_of(jobs: Sequence[Job], options: str) -> str:
    """A digest of what networks depend on: their rows, labels, shapes of the data, options."""
    digest = hashlib.sha256(options.encode())
    for job in jobs:
        for leaf in jax.tree.leaves((job.rows, job.shared, job.steps)):
            digest.update(np.ascontiguousarray(leaf).tobytes())
        kinds = [(leaf.shape, str(leaf.dtype)) for leaf in jax.tree.leaves((job.data, shapes(job)))]
        digest.update(repr(kinds).encode())
    return digest.hexdigest()


def _checksum(record: Any) -> int:
    return zlib.crc32(json.dumps(record).encode())
