"""The tasks: data sets as arrays ready for the device, with an id for every example."""

from typing import TYPE_CHECKING

from irtjax.lazy import lend

if TYPE_CHECKING:
    from irtjax.tasks.from_arrays import from_arrays
    from irtjax.tasks.from_huggingface import from_huggingface
    from irtjax.tasks.from_images import from_images
    from irtjax.tasks.from_table import from_table
    from irtjax.tasks.from_tfds import from_tfds
    from irtjax.tasks.loading import TASKS, Loader, load
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
lend(
    __name__,
    {
        "from_arrays": ("from_arrays",),
        "from_huggingface": ("from_huggingface",),
        "from_images": ("from_images",),
        "from_table": ("from_table",),
        "from_tfds": ("from_tfds",),
        "loading": ("TASKS", "Loader", "load"),
        "options": ("TaskOptions",),
        "task": ("ImageFormat", "Split", "Task", "TextFormat", "flip_labels"),
        "text": ("bucket_of", "describe"),
    },
)
