"""The crowd stage: train an artificial crowd and save its graded answers."""

from pathlib import Path

from experiments.progress import training_bar
from experiments.settings import Settings, make_trainer
from irtjax import ResponseMatrix, write_responses
from irtjax.crowd import Crowd, sample_members, train_crowd
from irtjax.files import write_csv
from irtjax.response_files import read_responses
from irtjax.responses import concatenate_items
from irtjax.tasks import Task
from irtjax.tasks.task import SPLITS


def train(settings: Settings, task: Task, description: str = "crowd") -> Crowd:
    """Trains the crowd that the settings describe."""
    members = sample_members(
        settings.num_models,
        len(task.train.labels),
        settings.seed,
        min_subset=settings.min_subset,
        max_corruption=settings.max_corruption,
    )
    trainer = make_trainer(settings, task, settings.patience)
    with training_bar(description, settings.epochs, settings.num_models) as on_epoch:
        return train_crowd(task, members, trainer, settings.steps_per_epoch, on_epoch=on_epoch)


def run(settings: Settings, task: Task, folder: Path) -> None:
    """Writes `members.csv`, and `responses_<split>` as NPZ and CSV."""
    crowd = train(settings, task)
    write_csv(crowd.members.assign(network=settings.network), folder / "members.csv")
    for split, responses in crowd.responses.items():
        for ending in (".npz", ".csv"):
            write_responses(responses, folder / f"responses_{split}{ending}")


def load_responses(folder: Path) -> ResponseMatrix:
    """The crowd's answers to the items of all splits, training items first."""
    return concatenate_items([read_responses(folder / f"responses_{split}.npz") for split in SPLITS])
