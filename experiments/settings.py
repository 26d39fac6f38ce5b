"""Settings of a run: defaults per task, each replaceable by a flag of the same name."""

import dataclasses
import functools
from typing import Any

import optax
from absl import flags

from irtjax import InputError, networks, tasks
from irtjax.inference.svi import PRIORS
from irtjax.training import Trainer

ABILITIES = ("ml", "map")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Everything that the results of a pipeline run depend on; the metadata are the help texts of the flags."""

    task: str
    seed: int = dataclasses.field(default=0, metadata={"help": "seed of every random draw"})
    num_models: int = dataclasses.field(default=384, metadata={"help": "networks in the artificial crowd"})
    network: str = dataclasses.field(default="mlp", metadata={"help": f"one of {', '.join(networks.NETWORKS)}"})
    width: int = dataclasses.field(default=32, metadata={"help": "hidden units of a layer"})
    batch_size: int = dataclasses.field(default=32, metadata={"help": "examples in a gradient step"})
    learning_rate: float = dataclasses.field(default=5e-3, metadata={"help": "learning rate of Adam"})
    epochs: int = dataclasses.field(default=40, metadata={"help": "most epochs a network is trained for"})
    patience: int = dataclasses.field(
        default=5, metadata={"help": "epochs without a better validation accuracy that end a training"}
    )
    steps_per_epoch: int = dataclasses.field(
        default=37,
        metadata={"help": "gradient steps between validations in crowd and filtering (a curriculum's epoch is a pass)"},
    )
    min_subset: int = dataclasses.field(default=16, metadata={"help": "smallest training subset in the crowd"})
    max_corruption: float = dataclasses.field(
        default=0.8, metadata={"help": "largest share of corrupted labels in the crowd, 0 to 1"}
    )
    priors: str = dataclasses.field(
        default="hierarchical",
        metadata={"help": f"priors of the difficulties that filtering and curriculum use: {' or '.join(PRIORS)}"},
    )
    mislabelled: float = dataclasses.field(
        default=0.05,
        metadata={"help": "share of training labels flipped to show that difficulty finds them; 0 leaves it out"},
    )
    filtering_seeds: int = dataclasses.field(
        default=5, metadata={"help": "networks for each filtering strategy and share"}
    )
    curriculum_seeds: int = dataclasses.field(default=5, metadata={"help": "networks for each curriculum strategy"})
    curriculum_patience: int = dataclasses.field(default=10, metadata={"help": "as --patience, for curricula"})
    curriculum_length: int = dataclasses.field(
        default=10, metadata={"help": "T of CB-linear and CB-root: epochs until they use all data"}
    )
    initial_share: float = dataclasses.field(
        default=0.01, metadata={"help": "c0 of CB-linear and CB-root: share of the data at epoch 0"}
    )
    ability: str = dataclasses.field(
        default="ml", metadata={"help": f"how DDaCLAE scores the network: {' or '.join(ABILITIES)}"}
    )


# What differs from the defaults above, which are those of `digits`.
TASK_DEFAULTS: dict[str, dict[str, Any]] = {
    "digits": {},
    "mnist": {
        "num_models": 256,
        "batch_size": 64,
        "learning_rate": 2e-3,
        "epochs": 20,
        "steps_per_epoch": 200,
        "min_subset": 50,
    },
}
flags.disclaim_key_flags()  # the flags belong to the binary that calls define_flags
_DEFINERS = {int: flags.DEFINE_integer, float: flags.DEFINE_float, str: flags.DEFINE_string}


def define_flags() -> None:
    """Defines a flag for every setting but the task; unset flags leave the task's default."""
    for field in dataclasses.fields(Settings):
        if field.name != "task":
            others = "".join(
                f"; {task}: {changes[field.name]}" for task, changes in TASK_DEFAULTS.items() if field.name in changes
            )
            text = f"{field.metadata['help']} (default {field.default}{others})"
            _DEFINERS[field.type](field.name, None, text)


def from_flags(task: str) -> Settings:
    """The task's defaults, replaced by the flags that were given.

    Raises:
        InputError: unknown task, or a value out of range.
    """
    if task not in tasks.LOADERS:
        raise InputError(f"--task={task}: unknown task, expected one of {', '.join(tasks.LOADERS)}")
    given = {
        field.name: flags.FLAGS[field.name].value
        for field in dataclasses.fields(Settings)
        if field.name != "task" and flags.FLAGS[field.name].value is not None
    }
    settings = Settings(**{"task": task, **TASK_DEFAULTS.get(task, {}), **given})
    _check(settings)
    return settings


def _check(settings: Settings) -> None:
    choices = {"network": networks.NETWORKS, "priors": PRIORS, "ability": ABILITIES}
    for name, allowed in choices.items():
        if getattr(settings, name) not in allowed:
            raise InputError(f"--{name}={getattr(settings, name)}: expected one of {', '.join(allowed)}")
    at_least_one = (
        "width batch_size epochs patience steps_per_epoch min_subset filtering_seeds curriculum_seeds "
        "curriculum_patience curriculum_length"
    )
    bounds = dict.fromkeys(at_least_one.split(), (1, None)) | {
        "seed": (0, 2**31 - 1),
        "num_models": (4, None),  # two halves of at least two
        "max_corruption": (0, 1),
        "mislabelled": (0, 0.5),
        "initial_share": (0, 1),
    }
    for name, (low, high) in bounds.items():
        value = getattr(settings, name)
        # asked this way round, NaN is out of range too
        if not (value >= low and (high is None or value <= high)):
            limit = f"at least {low}" if high is None else f"{low} to {high}"
            raise InputError(f"--{name}={value}: expected {limit}")
    if not 0 < settings.learning_rate < float("inf"):
        raise InputError(f"--learning_rate={settings.learning_rate}: expected a positive number")


def check_task(settings: Settings, task: tasks.Task) -> None:
    """Refuses settings that the task is too small for.

    Raises:
        InputError: names the flag.
    """
    num_examples = len(task.train.labels)
    if settings.min_subset > num_examples:
        raise InputError(f"--min_subset={settings.min_subset}: {task.name} has {num_examples} training examples")
    if settings.mislabelled > 0 and round(settings.mislabelled * num_examples) < 1:
        raise InputError(
            f"--mislabelled={settings.mislabelled}: not one of {num_examples} training labels; 0 leaves the stage out"
        )


def make_trainer(settings: Settings, task: tasks.Task, patience: int) -> Trainer:
    """The trainer that all stages share, but for their patience."""
    return Trainer(
        network=networks.build(settings.network, task, settings.width),
        optimizer=_adam(settings.learning_rate),
        batch_size=settings.batch_size,
        patience=patience,
        max_epochs=settings.epochs,
    )


@functools.cache
def _adam(learning_rate: float) -> optax.GradientTransformation:
    """One optimizer a rate: two of them would be different static arguments, and compiled for twice."""
    return optax.adam(learning_rate)
