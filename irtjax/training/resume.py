"""Trainings that are cut off and go on: a folder with a signature, what has finished, and what was in training.

    signature.txt              of all that the networks depend on
    finished/NAME.npz          what some networks left: one file per batch that was handed over
    live/GENERATION_PROCESS.npz  the pool of a process, at the end of a round

Every file is written whole, so that a kill leaves it, or the one before. Which process trains which networks follows
from their number (`irtjax.processes`), and is not stored. A run by other processes or devices than the last begins a
new generation: it takes over the networks that were in training in the generations before it.

(Orbax, whose checkpoints are those of all processes together, cannot write what one process has for itself.)
"""

import dataclasses
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np

from irtjax import processes
from irtjax.errors import InputError
from irtjax.storage.archives import Arrays, read_arrays
from irtjax.storage.files import whole_file, writable_directory

SIGNATURE, FINISHED, LIVE = "signature.txt", "finished", "live"
LAYOUT = "devices"  # in a file of a pool: how many each process has
VISIBLE_SECONDS = 60.0  # after which all processes should see a file that one has written

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Folder:
    """The folder of a run, see `open_folder`."""

    path: Path

    def write_finished(self, name: str, arrays: Arrays) -> None:
        """Writes what some networks left.

        Raises:
            InputError: it cannot be written.
        """
        _write(self.path / FINISHED / f"{name}.npz", arrays)

    def finished(self, names: Collection[str] = ()) -> Iterator[Arrays]:
        """What networks have left, file by file; only the arrays called `names`, if any are.

        Raises:
            InputError: a file is damaged.
        """
        return (_read(path, names) for path in sorted((self.path / FINISHED).glob("[!.]*.npz")))

    def generation(self, devices: int) -> int:
        """The number of this run's generation: the last, if that was of as many processes and devices, or a new one.

        Called by all processes that work together.
        """
        layout = processes.everyone(devices)

        def find() -> int:
            last = max(self._pools(), default=None)
            if last is None:
                return 0
            return int(last.name[:4]) + (_read(last, [LAYOUT])[LAYOUT].tolist() != layout)

        found = processes.agreed(lambda: find() if processes.index() == 0 else 0)
        return int(processes.everyone(found)[0])

    def write_pool(self, generation: int, devices: int, arrays: Arrays) -> None:
        """Writes the pool of this process."""
        layout = np.full(processes.number(), devices)
        _write(self.path / LIVE / _pool_name(generation, processes.index()), {**arrays, LAYOUT: layout})

    def pool(self, generation: int) -> Arrays | None:
        """The pool of this process in a generation; None if it has written none."""
        path = self.path / LIVE / _pool_name(generation, processes.index())
        return _read(path) if path.exists() else None

    def pools_before(self, generation: int) -> Iterator[Arrays]:
        """The pools of earlier generations, the newest first."""
        return (_read(path) for path in sorted(self._pools(), reverse=True) if int(path.name[:4]) < generation)

    def _pools(self) -> list[Path]:
        return list((self.path / LIVE).glob("[0-9]*_[0-9]*.npz"))


def open_folder(path: str | Path, signature: str) -> Folder:
    """The folder of a run, made where it is missing.

    Called by all processes that work together.

    Args:
        path: of the folder; one that all processes share.
        signature: of all that the networks depend on, see `irtjax.storage.digests.digest`.

    Raises:
        InputError: it holds another run, a damaged one, cannot be written to, or not all processes share it.
    """
    path = Path(path)
    record = path / SIGNATURE

    def begin() -> None:
        for folder in (path, path / FINISHED, path / LIVE):
            writable_directory(folder)
        if not record.exists():
            if any(path.glob("*/[!.]*.npz")):
                raise InputError(f"{record}: is missing, though results exist: remove {path} to start over")
            with whole_file(record) as partial:
                partial.write_text(signature + "\n")

    processes.agreed(lambda: begin() if processes.index() == 0 else None)

    def compare() -> None:
        if not wait_for(record.exists, bool):
            raise InputError(f"{path}: what process 0 writes there cannot be seen; give a folder that all share")
        if record.read_text(errors="replace").strip() != signature:
            raise InputError(
                f"{path} holds networks in training with other members, data or options: go on with those, or remove it"
            )

    processes.agreed(compare)
    return Folder(path)


def wait_for(look: Callable[[], T], enough: Callable[[T], bool]) -> T:
    """What is seen in a folder, once it is enough or after `VISIBLE_SECONDS`: others' files may come late."""
    until = time.monotonic() + VISIBLE_SECONDS
    while not enough(found := look()) and time.monotonic() < until:
        time.sleep(0.1)
    return found


def _pool_name(generation: int, process: int) -> str:
    return f"{generation:04d}_{process:04d}.npz"


def _write(path: Path, arrays: Arrays) -> None:
    with whole_file(path) as partial:
        np.savez(partial, allow_pickle=False, **arrays)


def _read(path: Path, names: Collection[str] = ()) -> Arrays:
    try:
        return read_arrays(path, names)
    except InputError as error:
        raise InputError(f"{path}: damaged, {error}: remove it, and its networks are trained again") from error
