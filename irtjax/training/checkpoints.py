"""Pools on disk, by Orbax: a run that is killed goes on from the end of an epoch, and ends with the same bits."""

import hashlib
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

from irtjax.errors import InputError
from irtjax.storage.files import whole_file
from irtjax.training.pool import Finished, Job, Pool, begin, resume, train_all
from irtjax.training.pool_programs import storable

TABLES = ("numbers", "waiting", "epochs", "best_epochs", "best_accuracies")
CHECKSUM = "checksum"
PAUSE = 10  # the time between two checkpoints is at least this many times what the last one took


class Checkpoints:
    """The last checkpoints of one pool in a folder; a context manager.

    Plans are not stored, because they follow from the rows of the job. Neither are tree structures: leaves are numbered
    and put back into the structure that follows from the job.

    Args:
        folder: for the checkpoints; made if it is missing.
        seconds: least time from one checkpoint to the next.
        options: a text that tells what else the state depends on, beside what the job shows.
    """

    def __init__(self, folder: Path, seconds: float, options: str = ""):
        keeping = ocp.CheckpointManagerOptions(max_to_keep=2, create=True)
        self._folder, self._options = folder, options
        self._manager = ocp.CheckpointManager(folder.absolute(), options=keeping)
        self._seconds, self._saved, self._duration = seconds, time.monotonic(), 0.0

    def __enter__(self) -> "Checkpoints":
        return self

    def __exit__(self, *_: object) -> None:
        self._manager.close()

    @property
    def due(self) -> bool:
        """Whether the last checkpoint is old enough for another."""
        return time.monotonic() - self._saved >= max(self._seconds, PAUSE * self._duration)

    def choose_slots(self, job: Job, choose: Callable[[], int]) -> int:
        """The number of slots on a device that the checkpoints are of, chosen now if there are none yet.

        Raises:
            InputError: the checkpoints are of other networks, examples, options or devices, or damaged.
        """
        path, signature = self._folder / "job.json", _signature(job, self._options)
        if path.exists():
            try:
                found = json.loads(path.read_text())
                slots, made_for = int(found["slots"]), found["signature"]
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise self._damaged(error) from error
            if made_for != signature:
                raise InputError(
                    f"{self._folder} holds a crowd in training with other members, data, options or number of "
                    "devices: go on with those, or remove it"
                )
            return slots
        slots = choose()
        with whole_file(path) as partial:
            partial.write_text(json.dumps({"slots": slots, "signature": signature}) + "\n")
        return slots

    def save(self, pool: Pool) -> None:
        """Writes the pool; a kill at any moment leaves this checkpoint or the one before whole.

        Raises:
            InputError: it cannot be written.
        """
        began = time.monotonic()
        state = {name: np.asarray(getattr(pool, name)) for name in TABLES}
        state |= {f"learner_{at:04d}": storable(leaf) for at, leaf in enumerate(jax.tree.leaves(pool.learners))}
        if pool.done:
            numbers, parameters = zip(*pool.done, strict=True)
            state["done"] = np.array(numbers)
            stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *parameters)
            state |= {f"done_{at:04d}": leaf for at, leaf in enumerate(jax.tree.leaves(stacked))}
        state[CHECKSUM] = _checksum(state)
        step = self._manager.latest_step()
        try:
            self._manager.save(0 if step is None else step + 1, args=ocp.args.StandardSave(state))
            self._manager.wait_until_finished()
        except (OSError, ValueError, RuntimeError) as error:  # of a full disk, by way of TensorStore
            reason = " ".join(str(error).split())
            named = re.search(r"([^:]+) \[os_error_code", reason)  # at the end of paragraphs about databases
            why = named[1].strip() if named else reason[:200]
            raise InputError(f"{self._folder}: a checkpoint cannot be written ({why})") from error
        self._saved = time.monotonic()
        self._duration = self._saved - began

    def restore(self, job: Job, slots: int) -> Pool | None:
        """The pool as it was last saved, on the job's devices; None if none was saved.

        Args:
            job: what the pool works on.
            slots: from `choose_slots`.

        Raises:
            InputError: it is damaged.
        """
        step = self._manager.latest_step()
        if step is None:
            return None
        try:
            state = self._manager.restore(step, args=ocp.args.StandardRestore())
            if not np.array_equal(state.pop(CHECKSUM), _checksum(state)):
                raise ValueError("it is not what was written")
            tables: dict[str, Any] = {name: np.asarray(state[name]) for name in TABLES}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._damaged(error) from error
        numbers = np.asarray(state.get("done", np.zeros(0, int)))
        stacked = _leaves(state, "done_")
        done = [(int(number), [leaf[at] for leaf in stacked]) for at, number in enumerate(numbers)]
        tables["waiting"] = int(tables["waiting"])
        return resume(job, slots, tables, _leaves(state, "learner_"), done)

    def _damaged(self, error: Exception) -> InputError:
        reason = " ".join(str(error).split())[:200]
        return InputError(f"{self._folder}: a damaged checkpoint ({reason}): remove {self._folder}")


def train_with_checkpoints(
    job: Job,
    choose_slots: Callable[[], int],
    on_finished: Callable[[Finished], None],
    on_epoch: Callable[[Pool], None],
    *,
    folder: Path,
    seconds: float,
    options: str,
    before_saving: Callable[[], None],
) -> Pool:
    """`train_all`, from the last checkpoint in a folder on; the end is a checkpoint, too.

    Args:
        job: what to do.
        choose_slots: the number of slots on a device; called if there is no checkpoint.
        on_finished: see `train_all`.
        on_epoch: likewise.
        folder: of the checkpoints.
        seconds: least time from one checkpoint to the next.
        options: see `Checkpoints`.
        before_saving: called before each checkpoint, for what must be on the disk by then: a checkpoint does without
            networks that `on_finished` was called with.

    Raises:
        InputError: the checkpoints are of another job, or damaged.
    """
    with Checkpoints(folder, seconds, options) as checkpoints:
        slots = checkpoints.choose_slots(job, choose_slots)

        def save(pool: Pool) -> None:
            before_saving()
            checkpoints.save(pool)

        def report_and_save(pool: Pool) -> None:
            on_epoch(pool)
            if checkpoints.due:
                save(pool)

        pool = checkpoints.restore(job, slots)
        pool = train_all(job, begin(job, slots) if pool is None else pool, on_finished, report_and_save)
        save(pool)  # so that a kill later, while another job is done, finds this one done
        return pool


def _checksum(state: dict[str, Any]) -> np.ndarray:
    """A digest of all arrays: a flipped bit in a file may go unnoticed by whoever decodes it."""
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(state):
        array = np.ascontiguousarray(state[name])
        digest.update(repr((name, array.shape, array.dtype.str)).encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return np.frombuffer(digest.digest(), np.uint8).copy()


def _leaves(state: dict[str, Any], prefix: str) -> list[np.ndarray]:
    return [np.asarray(state[name]) for name in sorted(state) if name.startswith(prefix)]


def _signature(job: Job, options: str) -> str:
    """A digest of what the state of a pool belongs to: members, labels, shapes of the data, options, devices."""
    digest = hashlib.sha256(options.encode())
    for leaf in jax.tree.leaves((job.rows, job.shared)):
        digest.update(np.ascontiguousarray(leaf).tobytes())
    shapes = [leaf.shape for leaf in jax.tree.leaves(job.data)]
    digest.update(repr((shapes, job.mesh.size, job.steps_per_epoch)).encode())
    return digest.hexdigest()
