"""From settings to what stages work with: the task, the recipe, the design of the crowd."""

import dataclasses

from tqdm import tqdm

from experiments.common import own_tasks
from experiments.common.own_tasks import saying_how_to_prepare
from experiments.common.progress import reading_bar
from experiments.common.settings import Settings
from experiments.common.task_defaults import OF_RECIPE
from irtjax import InputError, networks, tasks
from irtjax.crowd import CrowdDesign
from irtjax.tasks.pairs import packed
from irtjax.tasks.task import TextFormat, sample_split
from irtjax.training.features import frozen
from irtjax.training.recipe import Recipe


def load_task(settings: Settings, data_dir: str | None) -> tasks.Task:
    """The task with its data.

    Raises:
        InputError: the data are not there, or too few for the settings.
    """
    task = _named(settings, data_dir) if settings.task in tasks.TASKS else own_tasks.load(settings, data_dir)
    for name in ("train", "validation", "test"):
        if count := getattr(settings, f"{name}_examples"):
            task = sample_split(task, name, count, settings.seed)
    if settings.frozen:
        with reading_bar() as on_progress:
            task = frozen(task, on_progress)
    elif settings.pretrained and set(settings.networks) == {"bert"} and not settings.train_embeddings:
        task = packed(task)
    if settings.label_noise:
        task, _ = tasks.flip_labels(task, settings.label_noise, settings.label_noise_seed)
    check_network(settings, task)
    return task


def _named(settings: Settings, data_dir: str | None) -> tasks.Task:
    files = ("glove", "pretrained", "test_labels", "item_ids", "extra_items")
    names = ("dataset", "vectors", "embedding_dim", "min_count", "max_words", *files)
    options = {name: getattr(settings, name) for name in names}
    options = {name: value for name, value in options.items() if value}
    if "seed" not in tasks.TASKS[settings.task].unused:
        options["seed"] = settings.seed
    with reading_bar() as on_progress, saying_how_to_prepare(settings, data_dir):
        return tasks.load(settings.task, data_dir, on_progress=on_progress, on_note=tqdm.write, **options)


def check_network(settings: Settings, task: tasks.Task) -> None:
    """Refuses networks that cannot read the task, and those of users with which anything is wrong.

    Raises:
        InputError: names the flag.
    """
    for name in settings.networks:
        if networks.is_yours(name):
            networks.build(name, task, settings.width)
            if settings.min_width and not networks.follows_width(name, task, settings.width):
                raise InputError(
                    f"--min_width={settings.min_width}: network {name} masks no hidden units: leave it out"
                )
        elif name not in networks.choices(task):
            raise InputError(
                f"--network={name}: cannot read {task.name}, choose from {', '.join(networks.choices(task))}"
            )
    if settings.train_embeddings and not isinstance(task.format, TextFormat):
        raise InputError(f"--train_embeddings: {task.name} has no words")


def check_crowd(settings: Settings, task: tasks.Task) -> None:
    """Refuses training subsets that the task is too small for.

    Raises:
        InputError: names the flag.
    """
    num_examples = len(task.train.labels)
    most = num_examples - settings.out_of_bag  # a member trained on all examples would have no answer left
    if settings.min_subset > most:
        raise InputError(
            f"--min_subset={settings.min_subset}: {task.name} has {num_examples} training examples"
            + (", of which each member must leave one out of its bag" if settings.out_of_bag else "")
            + f": give --min_subset={max(most, 1)} or less"
        )


def recipe_of(settings: Settings) -> Recipe:
    """How crowd and filtering train networks; the network is the first one of a mixed crowd."""
    fields = {field: getattr(settings, name) for name, field in OF_RECIPE.items()}
    fields["network"] = settings.networks[0]
    fields["patience"] = settings.patience or settings.epochs
    fields["warmup"] = settings.warmup if settings.schedule == "linear" else None
    fields["steps_per_epoch"] = settings.steps_per_epoch if settings.epoch == "steps" else None
    return Recipe(**fields)


def curriculum_recipe_of(settings: Settings) -> Recipe:
    """How curricula train networks: for a number of epochs of their own."""
    epochs = settings.curriculum_epochs or settings.epochs
    return dataclasses.replace(
        recipe_of(settings), max_epochs=epochs, patience=settings.curriculum_patience or epochs, steps_per_epoch=None
    )


def design_of(settings: Settings) -> CrowdDesign:
    """How the members of the crowd differ."""
    fields = {field.name: getattr(settings, field.name) for field in dataclasses.fields(CrowdDesign)}
    return CrowdDesign(**fields | {"min_width": settings.min_width or None})
