"""From settings to what stages work with: the task, the trainer, the size of the pool."""

import contextlib
from collections.abc import Iterator

import jax
import optax
from tqdm import tqdm

from experiments.common.progress import reading_bar
from experiments.common.settings import Settings
from irtjax import InputError, networks, tasks
from irtjax.tasks import prepared
from irtjax.tasks.task import ImageFormat, TextFormat, sample_training
from irtjax.training import slots as pool_size
from irtjax.training.augmentation import flip_and_shift
from irtjax.training.pool import Job
from irtjax.training.trainer import Trainer

# One object for all: another would be a different static argument, and compile again. Networks have their own rates.
ADAM = optax.adam(1.0)
SLOTS = {("digits", "mlp"): 32}  # known, where measuring would take longer than training the crowd


def load_task(settings: Settings, data_dir: str | None) -> tasks.Task:
    """The task with its data.

    Raises:
        InputError: the data are not there, or too few for the settings.
    """
    names = ("dataset", "glove", "vectors", "embedding_dim", "min_count", "test_labels", "item_ids")
    options = {name: getattr(settings, name) for name in names}
    options = {name: value for name, value in options.items() if value}
    if "seed" not in tasks.TASKS[settings.task].unused:
        options["seed"] = settings.seed
    with reading_bar() as on_progress, _saying_how_to_prepare(settings, data_dir):
        task = tasks.load(settings.task, data_dir, on_progress=on_progress, on_note=tqdm.write, **options)
    if settings.train_examples:
        task = sample_training(task, settings.train_examples, settings.seed)
    check_network(settings, task)
    return task


@contextlib.contextmanager
def _saying_how_to_prepare(settings: Settings, data_dir: str | None) -> Iterator[None]:
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


def check_network(settings: Settings, task: tasks.Task) -> None:
    """Refuses networks that cannot read the task.

    Raises:
        InputError: names the flag.
    """
    for name in settings.networks:
        if name not in networks.choices(task):
            raise InputError(
                f"--network={name}: cannot read {task.name}, choose of {', '.join(networks.choices(task))}"
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


def make_trainer(settings: Settings, task: tasks.Task, patience: int, network: str | None = None) -> Trainer:
    """The trainer of a stage: stages differ in patience and, in a mixed crowd, in the network."""
    kind = task.format
    return Trainer(
        network=networks.build(network or settings.networks[0], task, settings.width),
        optimizer=ADAM,
        batch_size=settings.batch_size,
        patience=patience,
        max_epochs=settings.epochs,
        buckets=kind.buckets if isinstance(kind, TextFormat) else (),
        own_embeddings=settings.train_embeddings,
        augment=flip_and_shift if isinstance(kind, ImageFormat) and kind.flips else None,
    )


def pool_slots(settings: Settings, task: tasks.Task, job: Job, network: str) -> int:
    """Networks that train at once on a device: `--slots`, or the fastest number, known or measured once and kept."""
    known = settings.slots or SLOTS.get((task.name, network))
    if known:
        return known
    trainer = job.trainer
    words = None if job.data.embeddings is None else job.data.embeddings.shape
    shapes = [array.shape for array in jax.tree.leaves(task.train.inputs)]
    key = (network, settings.width, shapes, task.num_classes, words, trainer.batch_size, trainer.buckets)
    return pool_size.remembered(job, (*key, trainer.own_embeddings, trainer.augment is not None, job.num_networks))
