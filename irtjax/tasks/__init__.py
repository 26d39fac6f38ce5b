"""The tasks: data sets as arrays ready for the device, with an id for every example."""

from collections.abc import Callable

from irtjax.errors import InputError
from irtjax.tasks import digits, mnist
from irtjax.tasks.task import Split, Task, flip_labels

LOADERS: dict[str, Callable[[str | None], Task]] = {"digits": digits.load, "mnist": mnist.load}
__all__ = ["LOADERS", "Split", "Task", "flip_labels", "load"]


def load(name: str, data_dir: str | None = None) -> Task:
    """Loads a task by name.

    Args:
        name: a key of `LOADERS`.
        data_dir: where prepared TensorFlow Datasets lie; None for that package's own default. The embedded
            task `digits` does not look at it.

    Raises:
        InputError: an unknown task, or data that are not there.
    """
    if name not in LOADERS:
        raise InputError(f"unknown task {name!r}, expected one of {', '.join(LOADERS)}")
    return LOADERS[name](data_dir)
