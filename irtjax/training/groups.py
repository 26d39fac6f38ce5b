"""Networks of several kinds trained to the end, one kind after the other: by one process or by many, with checkpoints.

Processes share nothing while they train: each has its own networks, on its own devices.
"""

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from irtjax import processes
from irtjax.errors import InputError
from irtjax.training.checkpoints import Saved, adopt, read, save
from irtjax.training.deals import Deal, collect, collect_all, dealt, open_deals, signature_of
from irtjax.training.pool import (
    EMPTY,
    Finished,
    Job,
    Pool,
    Progress,
    begin,
    pool_size,
    progress,
    resume,
    store,
    train_all,
)
from irtjax.training.results import TRAINED, Columns, Results

CHECKPOINT_SECONDS = 30.0
PAUSE = 10  # the time between two checkpoints is at least this many times what the last one took
STATE = "pool.npz"


class Group(NamedTuple):
    """Networks that one pool can train.

    Attributes:
        name: of their kind.
        networks: (n,) numbers in the whole, in the order in which they begin.
        job: networks -> the job to train some of them, in that order.
        slots: job -> how many of them should train at once on a device.
    """

    name: str
    networks: np.ndarray
    job: Callable[[np.ndarray], Job]
    slots: Callable[[Job], int]


Answer = Callable[[np.ndarray, Finished], Mapping[str, np.ndarray]]


def train_groups(
    groups: Sequence[Group],
    columns: Columns,
    answer: Answer,
    *,
    folder: Path | None = None,
    seconds: float = CHECKPOINT_SECONDS,
    options: str = "",
    on_progress: Callable[[Progress], None] | None = None,
) -> dict[str, np.ndarray]:
    """Trains all networks of all groups.

    Called by all processes that work together (`irtjax.processes.together`): each trains its part. With a folder, the
    same call goes on from what it finds there; with as many processes and devices, to the same bits.

    Args:
        groups: the networks, numbered from 0 on.
        columns: what each leaves, beside `TRAINED`.
        answer: networks, and they as they have finished -> their rows of `columns`.
        folder: for checkpoints, which all processes share; None for memory.
        seconds: least time from one checkpoint to the next.
        options: a text that tells what else the networks depend on, beside what their jobs show.
        on_progress: called after each round, with the progress of the networks of this process and of those that
            finished before they were dealt.

    Returns:
        The columns and `TRAINED` of all networks, with a leading axis; on every process.

    Raises:
        InputError: the folder holds other networks, damaged ones, or cannot be written to; or not all processes share
            it.
    """
    order = np.concatenate([group.networks for group in groups]).tolist()
    deals: list[Deal] = []
    if folder is not None:
        devices = groups[0].job(groups[0].networks).mesh.size
        signature = signature_of([group.job(group.networks) for group in groups], options)
        deals = open_deals(folder, order, columns, devices, signature)
    own = np.array((deals[-1].parts if deals else dealt(order, processes.number()))[processes.index()], int)
    part = deals[-1].part(processes.index()) if deals else None
    results = processes.agreed(lambda: Results(columns, own.size, part))
    finished, before = processes.agreed(lambda: collect(deals[:-1], columns, len(order)))
    report = _Report(on_progress, len(order), own.size + int(finished.sum()))
    report.add(np.flatnonzero(finished), before["best_accuracies"][finished])
    for group in groups:
        networks = group.networks[np.isin(group.networks, own)]
        rows = np.searchsorted(own, networks)
        if not results.finished[rows].all():
            earlier = functools.partial(_earlier, deals[:-1], group.name)
            checkpoints = None if part is None else _Checkpoints(part / group.name / STATE, seconds, results, earlier)
            _train(group, networks, own, answer, results, checkpoints, report)
        report.add(networks, results.columns["best_accuracies"][rows])
    report.end()
    processes.meet()
    if folder is not None:
        return processes.agreed(lambda: collect_all(folder, deals, columns, len(order)))
    if processes.number() == 1:
        return results.columns
    back = np.argsort(processes.gather(own))
    return {name: processes.gather(column)[back] for name, column in results.columns.items()}


class _Report:
    """Tells the progress of networks, group after group: `total` of `count`, those of this process and before it."""

    def __init__(self, on_progress: Callable[[Progress], None] | None, count: int, total: int) -> None:
        self._on_progress = on_progress
        self._accuracies = np.full(count, np.nan, np.float32)
        self._finished, self._total, self._told = 0, total, False

    def add(self, networks: np.ndarray, accuracies: np.ndarray) -> None:
        """Networks that have finished."""
        self._accuracies[networks] = accuracies
        self._finished += networks.size

    def end(self) -> None:
        """Tells that all have finished, where no epoch was left that could."""
        if self._on_progress is not None and self._finished and not self._told:
            self._on_progress(Progress(self._finished, 0, 0, self._accuracies.copy()))

    def round(self, networks: np.ndarray, pool: Pool) -> None:
        """The pool that is at work."""
        if self._on_progress is None:
            return
        self._told = True
        state = progress(pool)
        self._accuracies[networks] = state.accuracies
        finished = self._finished + state.finished
        waiting = self._total - finished - state.training
        self._on_progress(Progress(finished, state.training, waiting, self._accuracies.copy()))


class _Checkpoints:
    """Those of one group: what is on the disk of its pool, and when it is to be written again."""

    def __init__(self, path: Path, seconds: float, results: Results, earlier: Callable[[], list[Saved]]) -> None:
        self._path, self._seconds, self._results, self.earlier = path, seconds, results, earlier
        self._part = path.parent.parent
        self._last, self._duration = time.monotonic(), 0.0
        path.parent.mkdir(exist_ok=True)

    def read(self) -> Saved | None:
        """The pool as it was."""
        return read(self._path)

    def require_results(self, saved: Saved, finished: np.ndarray) -> None:
        """Compares a pool with the results of its networks, as finished (n,) says.

        Raises:
            InputError: a network has left the pool, and its results are gone.
        """
        pool = saved.pool
        gone = np.arange(pool.epochs.size) < pool.waiting
        gone[[at for at, _ in pool.done]] = False
        gone[pool.numbers[pool.numbers != EMPTY]] = False
        if (gone & ~finished).any():
            raise InputError(f"{self._path}: results of networks that have left it are gone: remove {self._part}")

    def save_if_due(self, order: np.ndarray, slots: int, pool: Pool) -> None:
        """Writes the pool, and before it the results that it does without."""
        began = time.monotonic()
        if began - self._last < max(self._seconds, PAUSE * self._duration):
            return
        self._results.flush()
        save(self._path, Saved(order, store(pool, slots)))
        self._last = time.monotonic()
        self._duration = self._last - began


def _train(
    group: Group,
    networks: np.ndarray,
    own: np.ndarray,
    answer: Answer,
    results: Results,
    checkpoints: _Checkpoints | None,
    report: _Report,
) -> None:
    """Trains the networks of one group to the end."""
    job = group.job(networks)
    saved = None if checkpoints is None else checkpoints.read()
    slots = group.slots(job) if saved is None else saved.pool.slots
    if checkpoints is not None and saved is None:
        saved = adopt(checkpoints.earlier(), networks, slots, pool_size(job, slots))
    order = networks if saved is None else saved.order
    if checkpoints is not None and saved is not None:
        checkpoints.require_results(saved, results.finished[np.searchsorted(own, order)])
    job = group.job(order)

    def on_finished(finished: Finished) -> None:
        names = order[finished.numbers]
        trained = {name: getattr(finished, name) for name in TRAINED}
        results.put(np.searchsorted(own, names), {**answer(names, finished), **trained})

    def on_round(pool: Pool) -> None:
        report.round(order, pool)
        if checkpoints is not None:
            checkpoints.save_if_due(order, slots, pool)

    train_all(job, begin(job, slots) if saved is None else resume(job, saved.pool), on_finished, on_round)
    results.flush()  # so that a kill later, while another group is trained, finds this one done


def _earlier(deals: Sequence[Deal], name: str) -> list[Saved]:
    """The pools of a group in earlier deals, the newest first."""
    parts = [deal.part(process) for deal in reversed(deals) for process in range(len(deal.parts))]
    return [saved for part in parts if (saved := read(part / name / STATE)) is not None]
