"""The graded answers of a crowd, kept in memory or in files that outlive a kill."""

import functools
import json
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from irtjax.crowd.members import Members
from irtjax.crowd.plans import in_subset
from irtjax.errors import InputError
from irtjax.responses.matrix import MISSING, ResponseMatrix, grade, percent_correct
from irtjax.storage.files import whole_file
from irtjax.tasks import Task
from irtjax.tasks.task import SPLITS
from irtjax.types import Int

CHECKSUMS = "answers.json"
Answers = dict[str, np.ndarray]  # a matrix (J, N) int8 for each split


class Crowd(NamedTuple):
    """A trained crowd.

    Attributes:
        members: one row per member: `subject_id`, the columns of `Members`, the epochs that it was trained for, the
            best of them, and the share of the examples of each split that it answers correctly.
        responses: their graded answers to the items of each split: train, validation and test.
    """

    members: pd.DataFrame
    responses: dict[str, ResponseMatrix]


def blank_answers(task: Task, num_members: int, folder: Path | None = None) -> Answers:
    """A matrix (J, N) int8 of missing answers for each split; in `folder`, files with what an interrupted run left.

    Raises:
        InputError: what it left is damaged, of another shape, or gone in part.
    """
    answers: Answers = {}
    # checkpoints do without the answers of members that have finished
    begun = folder is not None and any(folder.glob("*/job.json"))
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
            found = np.load(path, mmap_mode="r", allow_pickle=False)  # opened to write, a short file would grow
        except (OSError, ValueError, EOFError) as error:
            raise InputError(f"{path}: answers of a crowd in training are gone or damaged: remove {folder}") from error
        if found.shape != shape:
            raise InputError(f"{path}: {found.shape} answers of a crowd in training, not {shape}: remove {folder}")
        answers[name] = np.load(path, mmap_mode="r+", allow_pickle=False)
    if folder is not None:
        _check(answers, folder)
    return answers


def flush(answers: Answers, folder: Path) -> None:
    """Writes answers that are kept in files to the disk, and a checksum of those of each member that has any."""
    for matrix in answers.values():
        if isinstance(matrix, np.memmap):
            matrix.flush()
    answered = np.flatnonzero(answers["test"][:, 0] != MISSING)
    with whole_file(folder / CHECKSUMS) as partial:
        partial.write_text(json.dumps({row: _checksum(answers, row) for row in answered.tolist()}) + "\n")


def _check(answers: Answers, folder: Path) -> None:
    """Compares answers that an interrupted run left with their checksums.

    Raises:
        InputError: a member's answers, or the checksums, are not what was written.
    """
    path = folder / CHECKSUMS
    try:
        found = json.loads(path.read_text()) if path.exists() else {}
        damaged = [row for row, checksum in found.items() if _checksum(answers, int(row)) != checksum]
    except (OSError, ValueError, AttributeError, IndexError) as error:
        raise InputError(f"{path}: checksums of a crowd in training are damaged: remove {folder}") from error
    if damaged:
        raise InputError(f"{folder}: the answers of member {damaged[0]} of a crowd in training are damaged: remove it")


def _checksum(answers: Answers, row: int) -> int:
    return functools.reduce(lambda sum, matrix: zlib.crc32(matrix[row], sum), answers.values(), 0)


def graded(
    task: Task, split: str, classes: Int[np.ndarray, "J N"], unseen_by: Members | None = None
) -> Int[np.ndarray, "J N"]:
    """Predicted classes graded against the gold labels of a split: 1 right, 0 wrong, -1 missing.

    Args:
        task: what was answered.
        split: its name.
        classes: predicted by J members.
        unseen_by: the J members, to leave out their answers to examples that they were trained on: those tell what a
            member remembers, not what it is able to do. None to grade all answers.
    """
    answers = grade(classes, task.split(split).labels)
    if unseen_by is not None and split == "train":
        answers[in_subset(unseen_by, answers.shape[1])] = MISSING
    return answers


def assemble(task: Task, members: Members, answers: Answers, epochs: np.ndarray, best_epochs: np.ndarray) -> Crowd:
    """The crowd of its members' answers and epochs (J,); accuracies are over the answers that are not missing."""
    subjects = members.subject_ids
    responses = {name: ResponseMatrix(answers[name], subjects, task.split(name).ids) for name in SPLITS}
    columns = members.columns
    del columns["number"]
    accuracies = {f"accuracy_{name}": percent_correct(matrix.values, axis=1) for name, matrix in responses.items()}
    table = {"subject_id": subjects, **columns, "epochs": epochs, "best_epoch": best_epochs, **accuracies}
    return Crowd(pd.DataFrame(table), responses)
