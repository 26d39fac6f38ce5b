"""The graded answers of a crowd."""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import numpy as np
import pandas as pd

from irtjax.crowd.members import Members
from irtjax.crowd.plans import in_subset
from irtjax.responses.matrix import MISSING, ResponseMatrix, grade, percent_correct
from irtjax.tasks import Task
from irtjax.tasks.task import SPLITS
from irtjax.training.results import Columns
from irtjax.types import Int


class Crowd(NamedTuple):
    """A trained crowd.

    Attributes:
        members: one row per member: `subject_id`, the columns of `Members`, the epochs that it was trained for, the
            best of them, and the share of the examples of each split that it answers correctly.
        responses: their graded answers to the items of each split: train, validation and test.
    """

    members: pd.DataFrame
    responses: dict[str, ResponseMatrix]


def columns_of(task: Task) -> Columns:
    """What each member leaves: its answers to the items of each split."""
    return {name: jax.ShapeDtypeStruct(task.split(name).labels.shape, np.int8) for name in SPLITS}


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


def assemble(task: Task, members: Members, results: Mapping[str, np.ndarray]) -> Crowd:
    """The crowd of what its members left: `columns_of`, and their epochs; accuracies are over answers not missing."""
    subjects = members.subject_ids
    responses = {name: ResponseMatrix(results[name], subjects, task.split(name).ids) for name in SPLITS}
    columns = members.columns
    del columns["number"]
    epochs = {"epochs": results["epochs"], "best_epoch": results["best_epochs"]}
    accuracies = {f"accuracy_{name}": percent_correct(matrix.values, axis=1) for name, matrix in responses.items()}
    return Crowd(pd.DataFrame({"subject_id": subjects, **columns, **epochs, **accuracies}), responses)
