"""Tasks of the user's own data, as --task names them: a table, a folder of images, or a data set of TFDS."""

import contextlib
import functools
import os
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from tqdm import tqdm

from experiments.common import peers
from experiments.common.progress import reading_bar
from experiments.common.settings import Settings
from experiments.common.task_defaults import TASK_DEFAULTS, unlike_digits
from experiments.common.task_names import IMAGES, TFDS
from irtjax import InputError, tasks
from irtjax.crowd.members import default_design
from irtjax.tasks import prepared
from irtjax.tasks.choices import ENDINGS
from irtjax.tasks.task import TextFormat
from irtjax.tasks.text import lengths
from irtjax.training.choices import RECIPES
from irtjax.training.recipe import default_recipe

FLAGS = ("text_column", "feature_columns", "label_column", "split_column", "id_column", "image_size")
_OF_TEXT = ("glove", "pretrained", "vectors", "embedding_dim", "min_count", "max_words", "item_ids", "extra_items")
_FLAG_OF = {  # what an argument of `from_table` is called here
    "`text`": "--text_column",
    "`features`": "--feature_columns",
    "`label`": "--label_column",
    "`size`": "--image_size",
    "`max_words`": "--max_words",
}
_USUAL = Settings(task="")
USUAL_WORDS = 20  # of an example of text; where there are more, networks are slower, and there are fewer of them
FEWEST_MODELS = 24
SMALL_SETS_SEEDS = 3  # of two, an interval says nothing
SMALL_SETS_PATIENCE = 10  # epochs: a curriculum begins with few examples, of which a network learns little in an epoch


def is_own(task: str) -> bool:
    """Whether a task is one of the user's data, not one by name."""
    return (
        task not in tasks.TASKS
        and bool(task)
        and (
            task.startswith((IMAGES, TFDS)) or task.lower().endswith(ENDINGS) or os.path.isdir(os.path.expanduser(task))
        )
    )


def load(settings: Settings, data_dir: str | None) -> tasks.Task:
    """The task that --task and the flags of columns describe; read once, however often it is asked for.

    Raises:
        InputError: names the flag or the file that is wrong.
    """
    fields = (*FLAGS, *_OF_TEXT, "dataset", "test_labels", "seed")
    with saying_how_to_prepare(settings, data_dir), _naming_flags():
        return _load(settings.task, data_dir, tuple((name, getattr(settings, name)) for name in fields))


def defaults_by_size(task: tasks.Task) -> dict[str, Any]:
    """As `defaults_of`, of a task of the user's own: by the kind and number of its examples."""
    recipe = default_recipe(task)
    if not isinstance(task.format, TextFormat):
        usual = "mnist" if max(np.shape(task.train.inputs)[1:3]) > 1 else "digits"
        like, shorter = "cifar10" if recipe.network == "lenet" else usual, 1.0
    else:
        like, shorter = "sst2" if task.format.sentences == 1 else "snli", USUAL_WORDS / lengths(task.train).mean()
    found = unlike_digits(recipe, default_design(task)) | dict(TASK_DEFAULTS[like].settings)
    if recipe.max_epochs > RECIPES[like].max_epochs:  # epochs are short: networks need more of them, and can have them
        found["curriculum_patience"] = SMALL_SETS_PATIENCE
        seeds = {name: number for name, number in found.items() if name in ("filtering_seeds", "curriculum_seeds")}
        found |= {name: max(SMALL_SETS_SEEDS, number) for name, number in seeds.items()}
    if shorter < 1:
        found["num_models"] = max(FEWEST_MODELS, round(found["num_models"] * shorter))
    return found


@contextlib.contextmanager
def saying_how_to_prepare(settings: Settings, data_dir: str | None) -> Iterator[None]:
    """Adds the command that prepares the task's data set where there is no readable copy of it."""
    command = f"python -m experiments.prepare --task={settings.task}"
    try:
        yield
    except prepared.NotPreparedError as error:
        if settings.dataset:
            raise
        folder = "" if data_dir is None else f" --data_dir={data_dir}"
        raise InputError(f"{error}: pip install 'irtjax[prepare]' and {command}{folder}") from error
    except prepared.OtherFormatError as error:
        if settings.dataset:
            raise
        raise InputError(f"{error}: {command} --data_dir=FOLDER") from error


@contextlib.contextmanager
def _naming_flags() -> Iterator[None]:
    """Has errors speak of flags where the library speaks of arguments."""
    try:
        yield
    except InputError as error:
        raise type(error)(_with_flags(str(error))) from error


def _with_flags(line: str) -> str:
    return re.sub("|".join(_FLAG_OF), lambda match: _FLAG_OF[match.group()], line)


def _tell(line: str) -> None:
    tqdm.write(_with_flags(line))


@functools.lru_cache(1)
def _load(task: str, data_dir: str | None, fields: tuple[tuple[str, Any], ...]) -> tasks.Task:
    given = {name: value for name, value in fields if value}
    for name in ("dataset", "test_labels"):
        if name in given:
            raise InputError(f"--{name}={given[name]}: the task {task} has no use for it")
    options = {name: given[name] for name in _OF_TEXT if name in given and given[name] != getattr(_USUAL, name)}
    columns: dict[str, Any] = {
        "text": _listed(given.get("text_column")),
        "features": _listed(given.get("feature_columns")),
        "label": given.get("label_column"),
    }
    of_table: dict[str, Any] = {"split": given.get("split_column"), "id": given.get("id_column")}
    note = _tell if peers.is_first() else lambda _: None
    common: dict[str, Any] = {"seed": given.get("seed", 0), "on_note": note}
    size = given.get("image_size")
    with reading_bar() as on_progress:
        if task.startswith(IMAGES):
            _refuse(task, {**columns, **of_table, **options})
            return tasks.from_images(task.removeprefix(IMAGES), size=size, on_progress=on_progress, **common)
        if task.startswith(TFDS):
            _refuse(task, of_table)
            name = task.removeprefix(TFDS)
            of_tfds = {**columns, "size": size, **common, **options}
            return tasks.from_tfds(name, data_dir=data_dir, on_progress=on_progress, **of_tfds)
    return tasks.from_table(task, size=size, **columns, **of_table, **common, **options)


def _listed(names: str | None) -> tuple[str, ...] | None:
    return tuple(names.split(",")) if names else None


def _refuse(task: str, given: dict[str, Any]) -> None:
    flags = {"text": "text_column", "features": "feature_columns", "label": "label_column", "split": "split_column"}
    for name, value in given.items():
        if value:
            raise InputError(
                f"--{flags.get(name, f'{name}_column' if name == 'id' else name)}: has no effect with --task={task}"
            )
