"""Pools on disk, by Orbax: a run that is killed goes on from the end of an epoch, to the same last bit."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

from irtjax.errors import InputError
from irtjax.files import whole_file
from irtjax.pool import Job, Pool, resume, storable

TABLES = ("numbers", "waiting", "epochs", "best_epochs", "best_accuracies")


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
        self._seconds, self._saved = seconds, time.monotonic()

    def __enter__(self) -> "Checkpoints":
        return self

    def __exit__(self, *_) -> None:
        self._manager.close()

    @property
    def due(self) -> bool:
        """Whether the last checkpoint is old enough for another."""
        return time.monotonic() - self._saved >= self._seconds

    def slots(self, choose: Callable[[], int]) -> int:
        """The size of the pool that the checkpoints are of, chosen now if there are none yet."""
        path = self._folder / "slots.json"
        if not path.exists():
            slots = choose()
            with whole_file(path) as partial:
                partial.write_text(json.dumps(slots))
        return json.loads(path.read_text())

    def save(self, pool: Pool) -> None:
        """Writes the pool; a kill at any moment leaves this checkpoint or the one before whole."""
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

    def restore(self, job: Job) -> Pool | None:
        """The pool as it was last saved, on the job's devices; None where none was.

        Raises:
            InputError: the folder holds a checkpoint of another job.
        """
        step = self._manager.latest_step()
        if step is None:
            return None
        state = self._manager.restore(step, args=ocp.args.StandardRestore())
        tables = {name: np.asarray(state[name]) for name in TABLES}
        if tables["epochs"].size != job.num_networks:
            held = tables["epochs"].size
            raise InputError(f"{self._folder}: a checkpoint of {held} networks, not of {job.num_networks}: remove it")
        numbers = np.asarray(state.get("done", np.zeros(0, int)))
        stacked = _leaves(state, "done_")
        done = tuple((int(number), [leaf[at] for leaf in stacked]) for at, number in enumerate(numbers))
        tables["waiting"] = int(tables["waiting"])
        return resume(job, tables, _leaves(state, "learner_"), done)


def _leaves(state: dict[str, Any], prefix: str) -> list[np.ndarray]:
    return [np.asarray(state[name]) for name in sorted(state) if name.startswith(prefix)]
