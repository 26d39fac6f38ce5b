"""Pools on disk, by Orbax: a run that is killed goes on from the end of an epoch, to the same last bit."""

import dataclasses
import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

from irtjax.errors import InputError
from irtjax.storage.files import whole_file
from irtjax.training.pool import Job, Pool, resume, storable

TABLES = ("numbers", "waiting", "epochs", "best_epochs", "best_accuracies")
PAUSE = 10  # between checkpoints, at least so many times what the last one took


class Checkpoints:
    """The last checkpoints of one pool in a folder; a context manager.

    Plans are not stored: they follow from the rows of the job. Neither are tree structures: leaves are numbered, and
    put back into the structure that the job gives.

    Args:
        folder: for the checkpoints; made where missing.
        seconds: after which the next one is due.
    """

    def __init__(self, folder: Path, seconds: float):
        options = ocp.CheckpointManagerOptions(max_to_keep=2, create=True)
        self._folder = folder
        self._manager = ocp.CheckpointManager(folder.absolute(), options=options)
        self._seconds, self._saved, self._duration = seconds, time.monotonic(), 0.0

    def __enter__(self) -> "Checkpoints":
        return self

    def __exit__(self, *_) -> None:
        self._manager.close()

    @property
    def due(self) -> bool:
        """Whether the last checkpoint is old enough for another."""
        return time.monotonic() - self._saved >= max(self._seconds, PAUSE * self._duration)

    def choose_slots(self, job: Job, choose: Callable[[], int]) -> Job:
        """The job with the size of pool that the checkpoints are of, chosen now if there are none yet.

        Raises:
            InputError: the checkpoints are of other networks, examples or devices, or damaged.
        """
        path, signature = self._folder / "job.json", _signature(job)
        if path.exists():
            try:
                found = json.loads(path.read_text())
                slots, made_for = int(found["slots"]), found["signature"]
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise self._damaged(error) from error
            if made_for != signature:
                raise InputError(
                    f"{self._folder} holds a crowd in training with other members, data or number of devices: "
                    "go on with those, or remove it"
                )
            return dataclasses.replace(job, slots=slots)
        job = dataclasses.replace(job, slots=choose())
        with whole_file(path) as partial:
            partial.write_text(json.dumps({"slots": job.slots, "signature": signature}) + "\n")
        return job

    def save(self, pool: Pool) -> None:
        """Writes the pool; a kill at any moment leaves this checkpoint or the one before whole."""
        began = time.monotonic()
        state = {name: np.asarray(getattr(pool, name)) for name in TABLES}
        state |= {
            f"learner_{at:04d}": np.asarray(storable(leaf)) for at, leaf in enumerate(jax.tree.leaves(pool.learners))
        }
        if pool.done:
            numbers, parameters = zip(*pool.done, strict=True)
            state["done"] = np.array(numbers)
            stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *parameters)
            state |= {f"done_{at:04d}": leaf for at, leaf in enumerate(jax.tree.leaves(stacked))}
        step = self._manager.latest_step()
        self._manager.save(0 if step is None else step + 1, args=ocp.args.StandardSave(state))
        self._manager.wait_until_finished()
        self._saved = time.monotonic()
        self._duration = self._saved - began

    def restore(self, job: Job) -> Pool | None:
        """The pool as it was last saved, on the job's devices; None where none was.

        Raises:
            InputError: it is damaged.
        """
        step = self._manager.latest_step()
        if step is None:
            return None
        try:
            state = self._manager.restore(step, args=ocp.args.StandardRestore())
            tables = {name: np.asarray(state[name]) for name in TABLES}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._damaged(error) from error
        numbers = np.asarray(state.get("done", np.zeros(0, int)))
        stacked = _leaves(state, "done_")
        done = tuple((int(number), [leaf[at] for leaf in stacked]) for at, number in enumerate(numbers))
        tables["waiting"] = int(tables["waiting"])
        return resume(job, tables, _leaves(state, "learner_"), done)

    def _damaged(self, error: Exception) -> InputError:
        reason = " ".join(str(error).split())[:200]
        return InputError(f"{self._folder}: a damaged checkpoint ({reason}): remove {self._folder.parent}")


def _leaves(state: dict[str, Any], prefix: str) -> list[np.ndarray]:
    return [np.asarray(state[name]) for name in sorted(state) if name.startswith(prefix)]


def _signature(job: Job) -> str:
    """A digest of what a pool's state is the state of: members, labels, shapes of the data, devices."""
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves((job.rows, job.shared)):
        digest.update(np.ascontiguousarray(leaf).tobytes())
    shapes = [leaf.shape for leaf in jax.tree.leaves(job.data)]
    digest.update(repr((shapes, job.mesh.size, job.steps_per_epoch)).encode())
    return digest.hexdigest()
