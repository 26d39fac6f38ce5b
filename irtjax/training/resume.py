"""Trainings that are cut off and go on: a folder with a signature, what has finished, and what was in training.

    signature.txt              of all that the networks depend on
    finished/NAME.npz          what some networks left: one file per batch that was handed over
    live/GENERATION_PROCESS.npz  the pool of a process, at the end of a round

Every file is written whole, so that a kill leaves it, or the one before. Which process trains which networks follows
from their number (`irtjax.processes`), and is not stored. A run by other processes or devices than the last begins a
new generation: it takes over the networks that were in training in the generations before it.

Of a pool, plans are not stored, as they follow from the rows of the job; nor are tree structures: leaves are numbered,
and put back into the structure that follows from the job.

(Orbax, whose checkpoints are those of all processes together, cannot write what one process has for itself.)
"""

import dataclasses
import functools
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import jax
import numpy as np

from irtjax import processes
from irtjax.errors import InputError
from irtjax.storage.archives import Arrays, read_arrays
from irtjax.storage.files import whole_file, writable_directory
from irtjax.training import slots as programs
from irtjax.training.pool import EMPTY, Begun, Job, Pool, Stopped, begin, rows_of, shapes

SIGNATURE, FINISHED, LIVE = "signature.txt", "finished", "live"
LAYOUT = "devices"  # in a file of a pool: how many each process has
TABLES = ("epochs", "best_epoch", "best_accuracy")  # of networks that have stopped
PAUSE_FACTOR = 10  # the time between two checkpoints, over what the last one took, is at least this
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


class Checkpoints:
    """The pools of this process in the folder of a run: what they were, and when one is to be written again."""

    def __init__(self, run: Folder, generation: int, devices: int, seconds: float) -> None:
        self._run, self._generation, self._devices, self._seconds = run, generation, devices, seconds
        self._last, self._duration = time.monotonic(), 0.0

    def pool(
        self, group: str, slots: Callable[[int], int], job: Job, networks: np.ndarray, finished: np.ndarray
    ) -> Pool:
        """The pool to go on with: that of this generation, or one for what earlier ones have left to be trained.

        Args:
            group: whose it is, by name.
            slots: number of networks -> how many of them should train at once on a device.
            job: of the networks.
            networks: (n,) of this process.
            finished: (n,) which of them have finished.
        """
        left = {int(name): at for at, name in enumerate(networks) if not finished[at]}
        begun: dict[int, Begun] = {}
        stopped: dict[int, Stopped] = {}
        for arrays in self._run.pools_before(self._generation):
            if str(arrays["group"]) == group:  # the newest comes first, and is right
                new = {name: at for name, at in left.items() if at not in begun and at not in stopped}
                begun |= {new[name]: network for name, network in begun_in(arrays).items() if name in new}
                ended = [network for network in stopped_in(job, arrays) if network.number in new]
                stopped |= {new[one.number]: one._replace(number=new[one.number]) for one in ended}
        own = self._run.pool(self._generation)
        if own is None or str(own["group"]) != group:
            waiting = *begun, *(at for at in left.values() if at not in begun and at not in stopped)
            return begin(job, slots(networks.size), waiting, begun, tuple(stopped.values()))
        pool = restored(job, networks, own, begun)
        there = {*pool.numbers.tolist(), *pool.waiting, *(network.number for network in pool.stopped)}
        # what has left the pool and is not there has been removed
        return pool._replace(waiting=(*pool.waiting, *(at for at in left.values() if at not in there)))

    def save_if_due(self, group: str, networks: np.ndarray, pool: Pool) -> None:
        """Writes the pool, if enough time has passed since it was written last."""
        began = time.monotonic()
        if began - self._last < max(self._seconds, PAUSE_FACTOR * self._duration):
            return
        self._run.write_pool(self._generation, self._devices, {"group": np.array(group), **stored(pool, networks)})
        self._last = time.monotonic()
        self._duration = self._last - began


def stored(pool: Pool, names: np.ndarray) -> Arrays:
    """The pool as arrays; `names` (J,) are the networks of its job in a larger whole."""
    numbers = np.where(pool.numbers == EMPTY, EMPTY, names[np.maximum(pool.numbers, 0)])
    arrays = {"slots": np.array(pool.slots), "numbers": numbers, "positions": pool.positions}
    arrays |= {"waiting": names[list(pool.waiting)], "stopped": names[[network.number for network in pool.stopped]]}
    arrays |= {f"stopped_{name}": np.array([getattr(network, name) for network in pool.stopped]) for name in TABLES}
    leaves = zip(*(jax.tree.leaves(network.parameters) for network in pool.stopped), strict=True)
    arrays |= {f"parameters_{at:04d}": np.stack(leaf) for at, leaf in enumerate(leaves)}
    return arrays | {
        f"learner_{at:04d}": programs.storable(leaf) for at, leaf in enumerate(jax.tree.leaves(pool.learners))
    }


def restored(job: Job, names: np.ndarray, arrays: Arrays, begun: Mapping[int, Begun]) -> Pool:
    """The pool of `stored`, on the devices of its job; `begun` as in `begin`."""
    place = {int(name): at for at, name in enumerate(names)} | {EMPTY: EMPTY}
    numbers = np.array([place[int(name)] for name in arrays["numbers"]])
    _, learner = shapes(job)
    restore = functools.partial(programs.restored, programs.spread(job.mesh))
    learners = jax.tree.unflatten(jax.tree.structure(learner), _leaves(arrays, "learner_"))
    return Pool(
        slots=int(arrays["slots"]),
        numbers=numbers,
        positions=arrays["positions"],
        plans=programs.plan(job.plan, job.mesh, rows_of(job, numbers), job.shared),
        learners=jax.tree.map(restore, learner, learners),
        waiting=tuple(place[int(name)] for name in arrays["waiting"]),
        begun=begun,
        stopped=tuple(network._replace(number=place[network.number]) for network in stopped_in(job, arrays)),
    )


def stopped_in(job: Job, arrays: Arrays) -> list[Stopped]:
    """The networks of `stored` that had stopped, by name."""
    structure, leaves = jax.tree.structure(shapes(job)[1].parameters), _leaves(arrays, "parameters_")
    return [
        Stopped(
            int(name),
            jax.tree.unflatten(structure, [leaf[at] for leaf in leaves]),
            *(arrays[f"stopped_{table}"][at].item() for table in TABLES),
        )
        for at, name in enumerate(arrays["stopped"])
    ]


def begun_in(arrays: Arrays) -> dict[int, Begun]:
    """The networks of `stored` that were in training, by name."""
    learners, positions = _leaves(arrays, "learner_"), arrays["positions"]
    return {
        int(name): Begun(int(positions[slot]), [leaf[slot] for leaf in learners])
        for slot, name in enumerate(arrays["numbers"])
        if name != EMPTY
    }


def _leaves(arrays: Arrays, prefix: str) -> list[np.ndarray]:
    return [arrays[name] for name in sorted(arrays) if name.startswith(prefix)]


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
