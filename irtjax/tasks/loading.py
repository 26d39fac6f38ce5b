"""The tasks of this package by name, and how each is loaded."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from irtjax.arguments import checks_types
from irtjax.choices import of_each
from irtjax.errors import InputError
from irtjax.tasks import choices, cifar10, digits, mnist, snli, sst2
from irtjax.tasks.choices import DATASETS
from irtjax.tasks.options import TaskOptions
from irtjax.tasks.task import Task


@dataclasses.dataclass(frozen=True)
class Loader:
    """How a task is loaded.

    Attributes:
        load: makes the task.
        dataset: name of its data in TensorFlow Datasets; None where a package embeds them.
        unused: fields of `TaskOptions` that the task ignores, `data_dir` aside, which may always be given.
    """

    load: Callable[[TaskOptions], Task]
    dataset: str | None = None
    unused: tuple[str, ...] = ()


_OF_TEXT = (
    "test_labels",
    "item_ids",
    "glove",
    "pretrained",
    "vectors",
    "embedding_dim",
    "min_count",
    "max_words",
    "seed",
)
TASKS = of_each(
    choices.TASKS,
    {
        "digits": Loader(digits.load, None, unused=("dataset", *_OF_TEXT)),
        "mnist": Loader(mnist.load, DATASETS["mnist"], unused=_OF_TEXT),
        "cifar10": Loader(cifar10.load, DATASETS["cifar10"], unused=_OF_TEXT),
        "sst2": Loader(sst2.load, DATASETS["sst2"]),
        "snli": Loader(snli.load, DATASETS["snli"], unused=("test_labels",)),
    },
)


@checks_types
def load(name: str, data_dir: str | Path | None = None, **options: Any) -> Task:
    """Loads a task by name.

    Args:
        name: a key of `TASKS`.
        data_dir: folder of prepared TensorFlow Datasets; None for that package's own default. The embedded task
            `digits` ignores it.
        options: the other fields of `TaskOptions`.

    Raises:
        InputError: an unknown task, an option that the task has no use for, or data that are not there.
    """
    if name not in TASKS:
        raise InputError(f"unknown task {name!r}, expected one of {', '.join(TASKS)}")
    chosen = TaskOptions(data_dir=data_dir, **options)
    chosen.check(name, TASKS[name].unused)
    return TASKS[name].load(chosen)
