"""Networks of several kinds trained to the end, one kind after the other: by one process or by many, with checkpoints.

Processes share nothing while they train: each has its own networks, on its own devices. Networks are assigned to
processes round-robin, in the order in which they begin.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from irtjax import processes
from irtjax.errors import InputError
from irtjax.storage.archives import Arrays
from irtjax.storage.digests import digest
from irtjax.training.choices import CHECKPOINT_SECONDS
from irtjax.training.pool import EMPTY, Finished, Job, Pool, accuracies, begin, epochs, shapes, train_all
from irtjax.training.progress import Progress
from irtjax.training.resume import Checkpoints, Folder, open_folder, wait_for

Columns = dict[str, jax.ShapeDtypeStruct]  # what one network leaves, by name

TRAINED: Columns = {
    "epochs": jax.ShapeDtypeStruct((), np.int32),
    "best_epochs": jax.ShapeDtypeStruct((), np.int32),
    "best_accuracies": jax.ShapeDtypeStruct((), np.float32),
}


class Group(NamedTuple):
    """Networks that one pool can train.

    Attributes:
        name: of their kind.
        networks: (n,) numbers in the whole, in the order in which they begin.
        job: networks -> the job to train some of them, in that order.
        slots: number of networks -> how many of them should train at once on a device.
    """

    name: str
    networks: np.ndarray
    job: Callable[[np.ndarray], Job]
    slots: Callable[[int], int]


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
        on_progress: called after each round, with the progress of the networks of this process and of those that had
            finished when it began.

    Returns:
        The columns and `TRAINED` of all networks, with a leading axis; on every process.

    Raises:
        InputError: the folder holds other networks, damaged ones, or cannot be written to; or not all processes share
            it.
    """
    order = np.concatenate([group.networks for group in groups])
    run = None if folder is None else open_folder(folder, _signature(groups, options))
    results = _Results(columns | TRAINED, order.size, run, on_progress)
    own = order[processes.index() :: processes.number()]
    results.begin(own)
    checkpoints = None
    if run is not None:
        devices = groups[0].job(groups[0].networks).mesh.size
        checkpoints = Checkpoints(run, run.generation(devices), devices, seconds)
    for group in groups:
        networks = group.networks[np.isin(group.networks, own)]
        if not results.finished[networks].all():
            _train(group, networks, answer, results, checkpoints)
    results.end()
    processes.barrier()
    return processes.agreed(results.all_rows) if run is not None else results.gathered(own)


def _signature(groups: Sequence[Group], options: str) -> str:
    """Of what networks depend on: their names, rows, labels, shapes of the data and parameters, options."""
    jobs = [group.job(group.networks) for group in groups]
    arrays = [(job.rows, job.shared, job.steps) for job in jobs]
    kinds = [[(leaf.shape, str(leaf.dtype)) for leaf in jax.tree.leaves((job.data, shapes(job)))] for job in jobs]
    return digest(options, [group.name for group in groups], arrays, repr(kinds))


class _Results:
    """What networks leave when they have finished, in memory or in a folder; and the progress of all.

    Attributes:
        finished: (J,) which networks have, as far as this process knows.
    """

    def __init__(
        self, columns: Columns, count: int, run: Folder | None, on_progress: Callable[[Progress], None] | None
    ) -> None:
        self._columns, self._run, self._on_progress = columns, run, on_progress
        self._rows = self._blank(count) if run is None else {}
        self.finished = np.zeros(count, bool)
        self._accuracies = np.full(count, np.nan, np.float32)
        self._epochs = np.zeros(count, np.int64)
        self._expected = self.finished  # this process's, and those that had finished when it began
        self._work = np.full(count, np.nan)  # of an epoch; NaN in groups that have not begun
        self._told = False

    def _blank(self, count: int) -> dict[str, np.ndarray]:
        return {name: np.zeros((count, *column.shape), column.dtype) for name, column in self._columns.items()}

    def begin(self, own: np.ndarray) -> None:
        """Reads which networks have finished; `own` are those of this process."""
        if self._run is not None:
            run = self._run
            for batch in processes.agreed(lambda: list(run.finished(["networks", "best_accuracies", "epochs"]))):
                self._add(batch)
        self._expected = self.finished.copy()
        self._expected[own] = True

    def put(self, networks: np.ndarray, rows: Mapping[str, np.ndarray]) -> None:
        """The rows of networks that have finished; of those that had before, none are taken."""
        fresh = ~self.finished[networks]
        if not fresh.any():
            return
        batch = {name: np.asarray(rows[name], column.dtype)[fresh] for name, column in self._columns.items()}
        if self._run is None:
            for name, column in batch.items():
                self._rows[name][networks[fresh]] = column
        else:
            self._run.write_finished(f"{networks[fresh].min():06d}", {"networks": networks[fresh], **batch})
        self._add({"networks": networks[fresh], **batch})

    def _add(self, batch: Arrays) -> None:
        self.finished[batch["networks"]] = True
        self._accuracies[batch["networks"]] = batch["best_accuracies"]
        self._epochs[batch["networks"]] = batch["epochs"]

    def round(self, networks: np.ndarray, job: Job, pool: Pool) -> None:
        """Tells the progress of a pool that trains some networks."""
        if self._on_progress is None:
            return
        found = accuracies(job, pool)
        known = np.isfinite(found)
        self._accuracies[networks[known]] = found[known]
        self._epochs[networks] = np.maximum(self._epochs[networks], epochs(job, pool))
        finished = self.finished & self._expected
        finished[networks[[network.number for network in pool.stopped]]] = True
        training = np.zeros(finished.size, bool)
        training[networks[pool.numbers[pool.numbers != EMPTY]]] = True
        self._work[networks] = _work_of_epochs(job)
        self._told = True
        self._tell(finished, training & ~finished)

    def end(self) -> None:
        """Reports the end where no round did: all had finished before."""
        if self._on_progress is not None and self.finished.any() and not self._told:
            self._tell(self.finished, np.zeros(self.finished.size, bool))

    def _tell(self, finished: np.ndarray, training: np.ndarray) -> None:
        assert self._on_progress is not None
        counts = int(finished.sum()), int(training.sum())
        waiting = int(self._expected.sum()) - sum(counts)
        work = np.nan_to_num(self._work, nan=np.nanmean(self._work)) if self._told else np.ones(finished.size)
        rest = self._expected & ~finished & ~training
        by_work = float(work[finished].sum()), float(work[training].sum()), float(work[rest].sum())
        self._on_progress(Progress(*counts, waiting, self._accuracies.copy(), int(self._epochs.sum()), by_work))

    def gathered(self, own: np.ndarray) -> dict[str, np.ndarray]:
        """The rows of all networks, in memory, from the processes that trained them."""
        if processes.number() == 1:
            return self._rows
        back = np.argsort(processes.gather(own))
        return {name: processes.gather(column[own])[back] for name, column in self._rows.items()}

    def all_rows(self) -> dict[str, np.ndarray]:
        """The rows of all networks, from the folder.

        Raises:
            InputError: some have not finished, or are damaged.
        """
        assert self._run is not None
        run, count = self._run, self.finished.size

        def finished() -> np.ndarray:
            found = np.zeros(count, bool)
            for batch in run.finished(["networks"]):
                found[batch["networks"]] = True
            return found

        missing = int((~wait_for(finished, np.all)).sum())
        if missing:
            raise InputError(f"{run.path}: {missing} of {count} networks are gone: give the same command again")
        rows = self._blank(count)
        for batch in run.finished(["networks", *rows]):  # one file after the other: together they are as large again
            for name, column in rows.items():
                column[batch["networks"]] = batch[name]
        return rows


def _work_of_epochs(job: Job) -> np.ndarray:
    """(J,) minibatches of an epoch of each network, with those of the validation, which has no gradients, as thirds."""
    split = job.data.validation if job.data.stop_on is None else job.data.stop_on
    return job.steps + split.labels.size / job.trainer.batch_size / 3


def _train(
    group: Group, networks: np.ndarray, answer: Answer, results: _Results, checkpoints: Checkpoints | None
) -> None:
    """Trains the networks of one group to the end."""
    job = group.job(networks)
    finished = results.finished[networks]

    def on_finished(finished: Finished) -> None:
        names = networks[finished.numbers]
        results.put(names, {**answer(names, finished), **{name: getattr(finished, name) for name in TRAINED}})

    def on_round(pool: Pool) -> None:
        results.round(networks, job, pool)
        if checkpoints is not None:
            checkpoints.save_if_due(group.name, networks, pool)

    if checkpoints is None:
        pool = begin(job, group.slots(networks.size))
    else:
        pool = checkpoints.pool(group.name, group.slots, job, networks, finished)
    train_all(job, pool, on_finished, on_round)
