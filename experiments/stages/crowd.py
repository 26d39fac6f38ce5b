"""The crowd stage: train an artificial crowd and save its graded answers."""

import dataclasses
import functools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tqdm import tqdm

from experiments.common.factory import make_trainer, pool_slots
from experiments.common.progress import networks_bar
from experiments.common.settings import Settings, of_stage
from irtjax import InputError, ResponseMatrix, networks, write_responses
from irtjax.crowd.answers import Crowd, assemble, blank_answers, flush, train_members
from irtjax.crowd.members import Members, gold_of, plan_member, read_members, rows_of, sample_members
from irtjax.responses.formats import read_responses
from irtjax.responses.matrix import concatenate_items
from irtjax.storage.files import write_csv
from irtjax.tasks import Task
from irtjax.tasks.task import SPLITS, sample_training
from irtjax.training.checkpoints import Checkpoints
from irtjax.training.data import to_device
from irtjax.training.devices import default_mesh
from irtjax.training.pool import Job, Pool, progress

CHECKPOINT_SECONDS = 30.0
# settings that only say what members are drawn, and how many train at once
DRAWN = {
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
    if settings.members:
        return _read_members(settings, task)
    return sample_members(
        settings.num_models,
        len(task.train.labels) - settings.out_of_bag,  # a member that saw everything would have no answer left
        settings.seed,
        min_subset=settings.min_subset,
        max_corruption=settings.max_corruption,
        learning_rate=settings.learning_rate,
        learning_rate_factor=settings.learning_rate_factor,
        width=settings.width,
        min_width=settings.min_width or None,
        networks=settings.networks,
    )


def _read_members(settings: Settings, task: Task) -> Members:
    members = read_members(settings.members)
    for name, most, reason in (
        ("subset_size", len(task.train.labels) - settings.out_of_bag, f"the training examples of {task.name}"),
        ("width", settings.width, "--width"),
    ):
        values = getattr(members, name)
        if values.max() > most:
            row = values.argmax() + 2
            raise InputError(
                f"{settings.members}: row {row}: {name} {values.max()}, expected at most {most} ({reason})"
            )
    choices = networks.choices(task)
    for row, network in enumerate(members.network, start=2):
        if network not in choices:
            raise InputError(
                f"{settings.members}: row {row}: network {network} cannot read {task.name}, choose of "
                f"{', '.join(choices)}"
            )
    if not settings.only:
        return members
    wanted = [int(number) for number in settings.only.split(",")]
    missing = sorted(set(wanted) - set(members.number))
    if missing:
        raise InputError(f"--only={settings.only}: {settings.members} has no model_{missing[0]:04d}")
    return members[np.isin(members.number, wanted)]


def check_members(settings: Settings, task: Task) -> int:
    """How many members there will be; before anything is written, and with a note if they were made by other flags.

    Raises:
        InputError: see `choose_members`.
    """
    others = other_settings(settings) if settings.members else []
    if others:
        tqdm.write(f"note: {settings.members} is of a crowd with {', '.join(others)}: its members become others")
    return len(choose_members(settings, task).seed)


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
) -> Crowd:
    """Trains the crowd that the settings describe, one architecture after the other.

    Args:
        settings: of the run.
        task: what it is trained on and answers.
        checkpoints: a folder for the state at ends of epochs, to go on from; None keeps all in memory.
        checkpoint_seconds: that are at least between two of them.
    """
    members = choose_members(settings, task)
    if checkpoints is not None:
        checkpoints.mkdir(parents=True, exist_ok=True)
    answers = blank_answers(task, len(members.seed), checkpoints)
    mesh = default_mesh(len(members.seed))
    monitor = None
    if settings.stop_on == "train":
        monitor = sample_training(task, min(len(task.validation.labels), len(task.train.labels)), settings.seed).train
    data = to_device(task, mesh, monitor)
    pools = []
    with networks_bar("crowd", len(members.seed)) as on_progress:
        for network in dict.fromkeys(members.network):
            places = np.flatnonzero(members.network == network)
            job = Job(
                trainer=make_trainer(settings, task, settings.patience, network),
                plan=plan_member,
                rows=rows_of(members[places]),
                shared=gold_of(task),
                data=data,
                steps_per_epoch=settings.steps_per_epoch,
                slots=1,
                mesh=mesh,
            )
            before = sum(done.size for done, _ in pools)

            def report(pool, before=before):
                on_progress(progress(pool), before)

            work = functools.partial(
                train_members, task=task, places=places, answers=answers, out_of_bag=settings.out_of_bag
            )
            choose = functools.partial(pool_slots, settings, task, job, network)
            if checkpoints is None:
                pool = work(dataclasses.replace(job, slots=choose()), on_epoch=report)
            else:
                with Checkpoints(checkpoints / network, checkpoint_seconds) as keeper:
                    pool = _resumable(work, job, choose, report, answers, keeper)
            pools.append((places, pool))
    return assemble(task, members, answers, pools)


def _resumable(
    work: Callable[..., Pool],
    job: Job,
    choose: Callable[[], int],
    report: Callable[[Pool], None],
    answers: dict[str, np.ndarray],
    keeper: Checkpoints,
) -> Pool:
    """The work, from the last checkpoint on; answers are on the disk before the checkpoint that does without them."""
    job = keeper.choose_slots(job, choose)

    def save(pool):
        flush(answers)
        keeper.save(pool)

    def on_epoch(pool):
        report(pool)
        if keeper.due:
            save(pool)

    pool = work(job, pool=keeper.restore(job), on_epoch=on_epoch)
    save(pool)  # that this architecture is done, for a kill while another is trained
    return pool


def run(settings: Settings, task: Task, folder: Path, **options) -> None:
    """Writes `members.csv`, and `responses_<split>` as NPZ and, if it is not too large, CSV; options of `train`."""
    crowd = train(settings, task, **options)
    write_csv(crowd.members, folder / "members.csv")
    for split, responses in crowd.responses.items():
        write_responses(responses, folder / f"responses_{split}.npz")
        if responses.values.size <= CSV_LIMIT:
            write_responses(responses, folder / f"responses_{split}.csv")


def load_responses(folder: Path) -> ResponseMatrix:
    """The crowd's answers to the items of all splits, training items first."""
    return concatenate_items([read_responses(folder / f"responses_{split}.npz") for split in SPLITS])
