"""A whole crowd in one call: networks of widely spread ability, and their scored answers to every example of a task."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
import pandas as pd

from irtjax import networks, processes
from irtjax.arguments import checks_types
from irtjax.crowd.choices import STOP_ON, CrowdDesign
from irtjax.crowd.members import (
    Members,
    default_design,
    gold_of,
    in_subset,
    plan_member,
    read_members,
    rows_of,
    sample_members,
)
from irtjax.errors import InputError
from irtjax.responses.matrix import MISSING, ResponseMatrix, grade, proportion_correct
from irtjax.tasks import Task
from irtjax.tasks.task import SPLITS, Split, sample_split
from irtjax.tasks.validation import require_ids
from irtjax.training.choices import CHECKPOINT_SECONDS
from irtjax.training.data import Data, default_mesh, to_device
from irtjax.training.groups import Columns, Group, train_groups
from irtjax.training.pool import Finished, Job
from irtjax.training.pool_size import choose_slots, is_short
from irtjax.training.progress import Progress, reporter
from irtjax.training.recipe import Recipe, default_recipe, epoch_lengths, fingerprint, longest_first, make_trainer
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
    accuracies = {f"accuracy_{name}": proportion_correct(matrix.values, axis=1) for name, matrix in responses.items()}
    return Crowd(pd.DataFrame({"subject_id": subjects, **columns, **epochs, **accuracies}), responses, predictions)


STOP_SAMPLE = 2_000  # training examples that early stopping looks at, at most: accuracies to 1.1 points


@checks_types
@processes.collective
def train_crowd(
    task: Task,
    members: Members | pd.DataFrame | str | Path | None = None,
    *,
    num_models: int = 100,
    seed: int = 0,
    recipe: Recipe | None = None,
    design: CrowdDesign | None = None,
    out_of_bag: bool = False,
    stop_on: str = "validation",
    slots: int | None = None,
    checkpoints: str | Path | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    progress: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
    mesh: jax.sharding.Mesh | None = None,
) -> Crowd:
    """Trains a crowd of networks and lets each answer every example of the task.

    Each member is trained on a random subset of the training examples, with a random share of wrong labels, so that
    abilities are spread widely (Lalor, Wu and Yu 2019). It answers with the parameters of its best epoch.
    Members train side by side, as many at once as is fastest, one architecture after the other.

        task = irtjax.tasks.load("digits")
        crowd = irtjax.crowd.train_crowd(task, num_models=100, seed=0)
        fit = irtjax.fit(crowd.responses["train"], model="1pl", estimator="svi")

    Args:
        task: what members are trained on and answer, see `irtjax.tasks.load`.
        members: a crowd to train again, in whole or in part, with the same recipe: `Members`, a table such as
            `Crowd.members`, or a `members.csv`. None to draw new members.
        num_models: members to draw, at least 2.
        seed: of the draws.
        recipe: how members are trained, see `default_recipe`, the default.
        design: how they differ, see `default_design`, the default.
        out_of_bag: whether members' answers to examples that they were trained on count as missing.
        stop_on: what early stopping looks at: "validation", or "train", a sample of training examples of that size,
            of at most 2,000, for a crowd that never sees the validation split.
        slots: members that train at once on a device; None for what is fastest, by a measurement that is kept in the
            cache. Results depend on it only by rounding.
        checkpoints: a folder for the state of training. The same call goes on from what it finds there, and ends with
            the same bits as if it had never been interrupted; on another number of processes or devices, with the same
            to rounding. None keeps everything in memory.
        checkpoint_seconds: least time from one checkpoint to the next.
        progress: whether to show a bar of the networks that have finished. Without it, and without `on_progress`, the
            logger `irtjax` says once that there is one.
        on_progress: called as networks end epochs, with the progress of the crowd; of several processes, with that of
            the members of this one.
        mesh: devices to train on; None for all of this process. If they are of several processes, members are
            assigned to them round-robin; all call this function, with a folder that all share or with none, and return
            the same crowd.

    Raises:
        InputError: two examples with one id, members that the task or the recipe does not allow, a range of the design
            that is empty, or checkpoints that are damaged or of another crowd.
    """
    _check_arguments(slots, seed, stop_on)
    require_ids(task.name, {name: task.split(name).ids for name in SPLITS})
    recipe = default_recipe(task) if recipe is None else recipe
    if members is None:
        design = default_design(task) if design is None else design
        members = sample_members(num_models, largest_subset(task, out_of_bag), seed, recipe, design)
    elif not isinstance(members, Members):
        members = read_members(members)
    if not len(members):
        raise InputError("no members to train")
    check_members(members, task, recipe, out_of_bag)
    own_mesh = default_mesh(len(members), mesh)
    data = to_device(task, own_mesh, _to_stop_on(task, seed) if stop_on == "train" else None)

    steps = epoch_lengths(recipe, members.subset_size)
    order, shrinks = longest_first(steps), not is_short(recipe, steps)

    def group_of(network: str) -> Group:
        own_recipe = dataclasses.replace(recipe, network=network)
        return Group(
            name=network,
            networks=order[members.network[order] == network],
            job=lambda rows: crowd_job(task, members.choose(rows), own_recipe, data, own_mesh, shrinks),
            slots=lambda count: choose_slots(task, own_recipe, data, count, own_mesh, slots),
        )

    columns = columns_of(task)

    def answer(_: np.ndarray, finished: Finished) -> dict[str, np.ndarray]:
        return {name: finished.classify(getattr(data, name)).astype(columns[name].dtype) for name in task.splits}

    with reporter(progress, on_progress, len(members)) as report:
        results = train_groups(
            [group_of(network) for network in dict.fromkeys(members.network.tolist())],
            columns,
            answer,
            folder=None if checkpoints is None else Path(checkpoints),
            seconds=checkpoint_seconds,
            options=repr(
                (fingerprint(recipe, task), out_of_bag, stop_on, (seed, STOP_SAMPLE) if stop_on == "train" else None)
            ),
            on_progress=report,
        )
    return assemble(task, members, results, out_of_bag)


def _check_arguments(slots: int | None, seed: int, stop_on: str) -> None:
    if slots is not None and slots < 1:
        raise InputError(f"`slots`={slots}: expected at least 1, or None for what is fastest")
    if seed < 0:
        raise InputError(f"`seed`={seed}: expected 0 or more")
    if stop_on not in STOP_ON:
        raise InputError(f"`stop_on`={stop_on}: expected one of {', '.join(STOP_ON)}")


def largest_subset(task: Task, out_of_bag: bool) -> int:
    """The most examples that a member can be trained on; out of bag, one must be left for it to answer."""
    return len(task.train.labels) - out_of_bag


def check_members(members: Members, task: Task, recipe: Recipe, out_of_bag: bool = False) -> None:
    """Refuses members that cannot be trained on a task by a recipe.

    Raises:
        InputError: names the first such member, or a network of a user's own and what is wrong with it.
    """
    choices = networks.choices(task)
    most = largest_subset(task, out_of_bag)
    for name, values, limit, reason in (
        ("subset_size", members.subset_size, most, f"the training examples of {task.name} that it may have"),
        ("width", members.width, recipe.width, "the `width` of the recipe"),
    ):
        if (values > limit).any():
            row = int((values > limit).argmax())
            raise InputError(f"{members.subject_ids[row]}: {name} {values[row]}, expected at most {limit}, {reason}")
    for network in dict.fromkeys(members.network.tolist()):
        its = members.network == network
        if networks.is_yours(network):
            networks.build(network, task, recipe.width)
        elif network not in choices:
            name = members.subject_ids[int(its.argmax())]
            raise InputError(f"{name}: network {network} cannot read {task.name}, choose from {', '.join(choices)}")
        narrow = its & (members.width < recipe.width)
        if narrow.any() and not networks.follows_width(network, task, recipe.width):
            row = int(narrow.argmax())
            raise InputError(
                f"{members.subject_ids[row]}: width {members.width[row]}, but network {network} masks no hidden units: "
                f"leave out `min_width`"
            )


def crowd_job(
    task: Task, members: Members, recipe: Recipe, data: Data, mesh: jax.sharding.Mesh, shrinks: bool = True
) -> Job:
    """What a pool works on to train members of one architecture, that of the recipe."""
    return Job(
        trainer=make_trainer(recipe, task),
        plan=plan_member,
        rows=rows_of(members),
        shared=gold_of(task),
        data=data,
        steps=epoch_lengths(recipe, members.subset_size),
        mesh=mesh,
        shrinks=shrinks,
    )


def _to_stop_on(task: Task, seed: int) -> Split:
    """A sample of the training examples, as large as the validation split if that is small."""
    count = min(len(task.validation.labels), len(task.train.labels), STOP_SAMPLE)
    return sample_split(task, "train", count, seed).train
