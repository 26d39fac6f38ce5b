"""The tasks: data sets as arrays ready for the device, with an id for every example."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.tasks import cifar10, digits, mnist, snli, sst2
from irtjax.tasks.from_arrays import from_arrays
from irtjax.tasks.from_huggingface import from_huggingface
from irtjax.tasks.from_images import from_images
from irtjax.tasks.from_table import from_table
from irtjax.tasks.from_tfds import from_tfds
from irtjax.tasks.options import TaskOptions
from irtjax.tasks.task import ImageFormat, Split, Task, TextFormat, flip_labels
from irtjax.tasks.text import bucket_of, describe

__all__ = [
    "TASKS",
    "ImageFormat",
    "Loader",
    "Split",
    "Task",
    "TaskOptions",
    "TextFormat",
    "bucket_of",
    "describe",
    "flip_labels",
    "from_arrays",
    "from_huggingface",
    "from_images",
    "from_table",
    "from_tfds",
    "load",
]


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
    "extra_items",
    "glove",
    "pretrained",
    "vectors",
    "embedding_dim",
    "min_count",
    "max_words",
    "seed",
)
TASKS = {
    "digits": Loader(digits.load, None, unused=("dataset", *_OF_TEXT)),
    "mnist": Loader(mnist.load, mnist.DATASET, unused=_OF_TEXT),
    "cifar10": Loader(cifar10.load, cifar10.DATASET, unused=_OF_TEXT),
    "sst2": Loader(sst2.load, sst2.DATASET),
    "snli": Loader(snli.load, snli.DATASET, unused=("test_labels",)),
}


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
