"""The answers of a crowd: the classes that it predicts, and these scored."""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import numpy as np
import pandas as pd

from irtjax.crowd.members import Members
from irtjax.crowd.plans import in_subset
from irtjax.responses.matrix import MISSING, ResponseMatrix, grade, percent_correct
from irtjax.tasks import Task
from irtjax.training.results import Columns
from irtjax.types import Int


class Crowd(NamedTuple):
    """A trained crowd.

    Attributes:
        members: one row per member: `subject_id`, the columns of `Members`, the epochs that it was trained for, the
            best of them, and the share of the examples of each split that it answers correctly.
        responses: their scored answers to the items of each split: train, validation and test, and extra if the task
            has it.
        predictions: (J, N) the classes that they predict for them.
    """

    members: pd.DataFrame
    responses: dict[str, ResponseMatrix]
    predictions: dict[str, Int[np.ndarray, "J _"]]


def columns_of(task: Task) -> Columns:
    """What each member leaves: the classes that it predicts for the items of each split."""
    dtype = np.int8 if task.num_classes <= 128 else np.int32
    return {name: jax.ShapeDtypeStruct(task.split(name).labels.shape, dtype) for name in task.splits}


def graded(
    task: Task, split: str, classes: Int[np.ndarray, "J N"], unseen_by: Members | None = None
) -> Int[np.ndarray, "J N"]:
    """Predicted classes scored against the gold labels of a split: 1 right, 0 wrong, -1 missing.

    Args:
        task: what was answered.
        split: its name.
        classes: predicted by J members.
        unseen_by: the J members, to leave out their answers to examples that they were trained on: those tell what a
            member remembers, not what it is able to do. None to grade all answers.
    """
    answers = grade(classes, task.split(split).labels)
    if unseen_by is not None and split == "train":
        for at, row in enumerate(answers):
            row[in_subset(unseen_by.choose(slice(at, at + 1)), row.size)[0]] = MISSING
    return answers


def assemble(task: Task, members: Members, results: Mapping[str, np.ndarray], out_of_bag: bool = False) -> Crowd:
    """The crowd of what its members left: `columns_of`, and their epochs; accuracies are over answers not missing."""
    subjects, unseen_by = members.subject_ids, members if out_of_bag else None
    predictions = {name: np.asarray(results[name]) for name in task.splits}
    responses = {
        name: ResponseMatrix(graded(task, name, classes, unseen_by), subjects, task.split(name).ids)
        for name, classes in predictions.items()
    }
    columns = members.columns
    del columns["number"]
    epochs = {"epochs": results["epochs"], "best_epoch": results["best_epochs"]}
    accuracies = {f"accuracy_{name}": percent_correct(matrix.values, axis=1) for name, matrix in responses.items()}
    return Crowd(pd.DataFrame({"subject_id": subjects, **columns, **epochs, **accuracies}), responses, predictions)
