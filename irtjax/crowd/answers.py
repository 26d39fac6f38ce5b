"""Artificial crowds: networks of widely spread ability, whose graded answers stand in for those of people."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd

from irtjax.crowd.members import Members, in_subset
from irtjax.errors import InputError
from irtjax.responses.matrix import MISSING, ResponseMatrix, grade, percent_correct
from irtjax.storage.files import whole_file
from irtjax.tasks import Task
from irtjax.tasks.task import SPLITS
from irtjax.training.pool import Job, Pool, begin, classify_all, train_all


class Crowd(NamedTuple):
    """A trained crowd: its members as a table, and their graded answers to every item of each split."""

    members: pd.DataFrame
    responses: dict[str, ResponseMatrix]


def blank_answers(task: Task, num_members: int, folder: Path | None = None) -> dict[str, np.ndarray]:
    """A matrix (J, N) int8 of missing answers a split; in `folder`, files of what an interrupted run left there.

    Raises:
        InputError: what it left is damaged, of another shape, or in part gone.
    """
    answers = {}
    # checkpoints do without the answers of members that have finished
    begun = folder is not None and any(folder.glob("*/*"))
    for name in SPLITS:
        shape = (num_members, len(task.split(name).labels))
        if folder is None:
            answers[name] = np.full(shape, MISSING, np.int8)
            continue
        path = folder / f"answers_{name}.npy"
        if not path.exists() and not begun:
            with whole_file(path) as partial:
                np.lib.format.open_memmap(partial, mode="w+", dtype=np.int8, shape=shape)[:] = MISSING
        try:
            found = np.load(path, mmap_mode="r", allow_pickle=False)  # to write, a file that is too short would grow
        except (OSError, ValueError, EOFError) as error:
            raise InputError(f"{path}: answers of a crowd in training are gone or damaged: remove {folder}") from error
        if found.shape != shape:
            raise InputError(f"{path}: {found.shape} answers of a crowd in training, not {shape}: remove {folder}")
        answers[name] = np.load(path, mmap_mode="r+", allow_pickle=False)
    return answers


def flush(answers: dict[str, np.ndarray]) -> None:
    """Answers that are kept in files, to the disk."""
    for matrix in answers.values():
        if isinstance(matrix, np.memmap):
            matrix.flush()


def train_members(
    job: Job,
    task: Task,
    places: np.ndarray,
    answers: dict[str, np.ndarray],
    *,
    out_of_bag: bool = False,
    pool: Pool | None = None,
    on_epoch: Callable[[Pool], None] | None = None,
) -> Pool:
    """Trains members of one architecture; each answers every item with the parameters of its best epoch.

    Args:
        job: with `rows_of` the members, `gold_of` the task and `plan_member`.
        task: what they answer.
        places: (J,) rows of `answers` that are theirs.
        answers: from `blank_answers`; filled in.
        out_of_bag: leave a member's answers to the examples that it was trained on missing: they tell what it
            remembers, not what it is able to.
        pool: to go on from; None to begin.
        on_epoch: see `pool.train_all`.
    """

    def on_finished(numbers: np.ndarray, parameters: Any) -> None:
        for name in SPLITS:
            labels = task.split(name).labels
            graded = grade(classify_all(job, parameters, getattr(job.data, name)), labels)
            if out_of_bag and name == "train":
                for row, number in zip(graded, numbers, strict=True):
                    seen = in_subset(jax.tree.map(lambda column, at=number: column[at], job.rows), labels.size)
                    row[np.asarray(seen)] = MISSING
            answers[name][places[numbers]] = graded

    return train_all(job, begin(job) if pool is None else pool, on_finished, on_epoch)


def assemble(
    task: Task, members: Members, answers: dict[str, np.ndarray], pools: Sequence[tuple[np.ndarray, Pool]]
) -> Crowd:
    """The crowd of answers and (places, pool) pairs, one an architecture; accuracies are over the answers it gave."""
    subjects = members.subject_ids
    responses = {name: ResponseMatrix(answers[name], subjects, task.split(name).ids) for name in SPLITS}
    epochs, best_epochs = np.zeros((2, subjects.size), np.int32)
    for places, pool in pools:
        epochs[places], best_epochs[places] = pool.epochs, pool.best_epochs
    columns = members._asdict()
    del columns["number"]
    accuracies = {f"accuracy_{name}": percent_correct(matrix.values, axis=1) for name, matrix in responses.items()}
    table = {"subject_id": subjects, **columns, "epochs": epochs, "best_epoch": best_epochs, **accuracies}
    return Crowd(pd.DataFrame(table), responses)
