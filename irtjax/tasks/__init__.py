"""The tasks: data sets as arrays ready for the device, with an id for every example."""

from collections.abc import Callable
from typing import Any

from irtjax.errors import InputError
from irtjax.tasks import cifar10, digits, mnist, snli, sst2
from irtjax.tasks.options import Options
from irtjax.tasks.task import Split, Task, flip_labels
from irtjax.tasks.text import bucket_of, describe

LOADERS: dict[str, Callable[[Options], Task]] = {
    "digits": digits.load,
    "mnist": mnist.load,
    "cifar10": cifar10.load,
    "sst2": sst2.load,
    "snli": snli.load,
}
_TEXT_ONLY = ("test_labels", "item_ids", "glove", "vectors", "embedding_dim", "min_count", "seed")
# Options that a task would not look at. `data_dir` may always be given: the embedded task needs none.
UNUSED = {
    "digits": ("dataset", *_TEXT_ONLY),
    "mnist": _TEXT_ONLY,
    "cifar10": _TEXT_ONLY,
    "sst2": (),
    "snli": ("test_labels",),
}
__all__ = ["LOADERS", "UNUSED", "Options", "Split", "Task", "bucket_of", "describe", "flip_labels", "load"]


def load(name: str, data_dir: str | None = None, **options: Any) -> Task:
    """Loads a task by name.

    Args:
        name: a key of `LOADERS`.
        data_dir: where prepared TensorFlow Datasets lie; None for that package's own default. The embedded
            task `digits` does not look at it.
        options: the other fields of `Options`.

    Raises:
        InputError: an unknown task, an option that the task has no use for, or data that are not there.
    """
    if name not in LOADERS:
        raise InputError(f"unknown task {name!r}, expected one of {', '.join(LOADERS)}")
    chosen = Options(data_dir=data_dir, **options)
    chosen.check(name, UNUSED[name])
    return LOADERS[name](chosen)
