"""The crowd stage: train an artificial crowd and save its scored answers."""

import dataclasses
import json
from pathlib import Path

import numpy as np
from tqdm import tqdm

from experiments.common import peers
from experiments.common.app import naming
from experiments.common.factory import design_of, recipe_of
from experiments.common.progress import networks_bar
from experiments.common.settings import Settings, of_stage
from irtjax import InputError, ResponseMatrix, write_responses
from irtjax.crowd import Crowd, Members, read_members, sample_members, train_crowd
from irtjax.crowd.train import check_members, largest_subset
from irtjax.responses.formats import read_responses
from irtjax.responses.joining import concatenate_items
from irtjax.storage.files import write_csv
from irtjax.tasks import Task
from irtjax.tasks.task import SPLITS
from irtjax.training.choices import CHECKPOINT_SECONDS

# settings that only say which members are drawn, how many train at once, and what they answer
DRAWN = {
    "test_examples",
    "extra_items",
    "seed",
    "num_models",
    "members",
    "only",
    "network",
    "min_width",
    "min_subset",
    "max_corruption",
    "learning_rate",
    "learning_rate_factor",
    "slots",
}
CSV_LIMIT = 20_000_000  # responses: a larger matrix is written as NPZ only


def choose_members(settings: Settings, task: Task) -> Members:
    """The crowd that the settings describe: drawn, or read from a table.

    Raises:
        InputError: the table asks for what the task or `--width` does not have, or lacks a member of `--only`.
    """
    recipe, design = recipe_of(settings), design_of(settings)
    if not settings.members:
        largest = largest_subset(task, settings.out_of_bag)
        return sample_members(settings.num_models, largest, settings.seed, recipe, design)
    members = read_members(settings.members)
    with naming(settings.members):
        check_members(members, task, recipe, settings.out_of_bag)
    if not settings.only:
        return members
    wanted = [int(number) for number in settings.only.split(",")]
    missing = sorted(set(wanted) - set(members.number))
    if missing:
        raise InputError(f"--only={settings.only}: {settings.members} has no model_{missing[0]:04d}")
    return members.choose(np.isin(members.number, wanted))


def note_other_settings(settings: Settings) -> None:
    """Prints a note if `--members` were trained with other flags."""
    others = other_settings(settings) if settings.members else []
    if others:
        tqdm.write(f"note: {settings.members} is of a crowd with {', '.join(others)}: its members become others")


def other_settings(settings: Settings) -> list[str]:
    """Flags that members of `--members` were trained with, where its run tells, and that are others now."""
    config = Path(settings.members).parent.parent / "config.json"
    try:
        before = dict(json.loads(config.read_text()))
    except (OSError, ValueError, TypeError):
        return []  # a table from elsewhere
    ours = dataclasses.asdict(settings)
    names = [name for name in before if name == "task" or name in of_stage("crowd") - DRAWN]
    return [f"--{name}={before[name]} (now {ours[name]})" for name in names if before[name] != ours[name]]


def train(
    settings: Settings,
    task: Task,
    checkpoints: Path | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    description: str = "crowd",
) -> Crowd:
    """Trains the crowd that the settings describe under a progress bar; checkpoints as in `train_crowd`."""
    members = choose_members(settings, task)
    with networks_bar(description, len(members)) as on_progress:
        return train_crowd(
            task,
            members,
            seed=settings.seed,
            recipe=recipe_of(settings),
            out_of_bag=settings.out_of_bag,
            stop_on=settings.stop_on,
            slots=settings.slots or None,
            checkpoints=checkpoints,
            checkpoint_seconds=checkpoint_seconds,
            on_progress=on_progress,
            mesh=peers.mesh(),
        )


def write(crowd: Crowd, folder: Path) -> None:
    """Writes `members.csv`, `responses_<split>` (NPZ; CSV if it is not too large) and `predictions_<split>.npz`."""
    write_csv(crowd.members, folder / "members.csv")
    for split, responses in crowd.responses.items():
        np.savez_compressed(
            folder / f"predictions_{split}.npz",
            predictions=crowd.predictions[split],
            subject_ids=responses.subject_ids,
            item_ids=responses.item_ids,
        )
        write_responses(responses, folder / f"responses_{split}.npz")
        if responses.values.size <= CSV_LIMIT:
            write_responses(responses, folder / f"responses_{split}.csv")


def load_responses(folder: Path) -> ResponseMatrix:
    """The crowd's answers to the items of all splits, training items first."""
    return concatenate_items([read_responses(folder / f"responses_{split}.npz", sparse=False) for split in SPLITS])
