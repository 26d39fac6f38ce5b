"""From settings to what stages work with: the task, the trainer, the size of the pool."""

import jax
import optax
from tqdm import tqdm

from experiments.common.progress import reading_bar
from experiments.common.settings import Settings
from irtjax import InputError, networks, tasks
from irtjax.tasks.task import TextFormat, sample_training
from irtjax.training import slots as pool_size
from irtjax.training.augmentation import flip_and_shift
from irtjax.training.pool import Job
from irtjax.training.trainer import Trainer

# One object: another would be a different static argument, and compiled for again. The rate is each network's own.
ADAM = optax.adam(1.0)
SLOTS = {("digits", "mlp"): 32}  # where measuring would take longer than the crowd


def load_task(settings: Settings, data_dir: str | None) -> tasks.Task:
    """The task with its data.

    Raises:
        InputError: they are not there, or too few for the settings.
    """
    names = ("dataset", "glove", "vectors", "embedding_dim", "min_count", "test_labels", "item_ids")
    options = {name: getattr(settings, name) for name in names}
    options = {name: value for name, value in options.items() if value}
    if "seed" not in tasks.UNUSED[settings.task]:
        options["seed"] = settings.seed
    with reading_bar() as on_progress:
        task = tasks.load(settings.task, data_dir, on_progress=on_progress, on_note=tqdm.write, **options)
    if settings.train_examples:
        task = sample_training(task, settings.train_examples, settings.seed)
    check_network(settings, task)
    return task


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
    most = num_examples - settings.out_of_bag  # a member that saw everything would have no answer left
    if settings.min_subset > most:
        raise InputError(
            f"--min_subset={settings.min_subset}: {task.name} has {num_examples} training examples"
            + (", of which each member must leave one out of its bag" if settings.out_of_bag else "")
            + f": give --min_subset={max(most, 1)} or less"
        )


def make_trainer(settings: Settings, task: tasks.Task, patience: int, network: str | None = None) -> Trainer:
    """The trainer that all stages share, but for their patience and, in a mixed crowd, the network."""
    text = isinstance(task.format, TextFormat)
    return Trainer(
        network=networks.build(network or settings.networks[0], task, settings.width),
        optimizer=ADAM,
        batch_size=settings.batch_size,
        patience=patience,
        max_epochs=settings.epochs,
        buckets=task.format.buckets if text else (),
        own_embeddings=settings.train_embeddings,
        augment=None if text or not task.format.flips else flip_and_shift,
    )


def pool_slots(settings: Settings, task: tasks.Task, job: Job, network: str) -> int:
    """`--slots`, or what is fastest here: known, or measured once for this network and task, and remembered."""
    known = settings.slots or SLOTS.get((task.name, network))
    if known:
        return known
    trainer = job.trainer
    words = None if job.data.embeddings is None else job.data.embeddings.shape
    shapes = [array.shape for array in jax.tree.leaves(task.train.inputs)]
    key = (network, settings.width, shapes, task.num_classes, words, trainer.batch_size, trainer.buckets)
    return pool_size.remembered(job, (*key, trainer.own_embeddings, trainer.augment is not None, job.num_networks))
