"""Settings of a run: defaults per task, each replaceable by a flag of the same name."""

import dataclasses
from collections.abc import Collection
from typing import Any

from absl import flags

from irtjax import InputError, networks, tasks
from irtjax.estimation.svi.fit import PRIORS
from irtjax.tasks.vectors import KINDS as VECTORS

ABILITIES = ("ml", "map")
PROBES = ("sample", "all")
STOP_ON = ("validation", "train")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Everything that the results of a pipeline run depend on; the metadata are the help texts of the flags."""

    task: str
    dataset: str = dataclasses.field(
        default="",
        metadata={"help": "name in TensorFlow Datasets, where it is not the task's usual one"},
    )
    glove: str = dataclasses.field(
        default="", metadata={"help": "file of GloVe vectors for text; else vectors are made of the training text"}
    )
    vectors: str = dataclasses.field(
        default="ppmi", metadata={"help": f"word vectors where there is no --glove: {' or '.join(VECTORS)}"}
    )
    embedding_dim: int = dataclasses.field(default=100, metadata={"help": "length of those vectors"})
    min_count: int = dataclasses.field(
        default=2, metadata={"help": "times that training texts must have a word for it to enter the vocabulary"}
    )
    train_examples: int = dataclasses.field(
        default=0, metadata={"help": "use a random sample of so many training examples; 0 for all"}
    )
    test_labels: str = dataclasses.field(
        default="", metadata={"help": "sst2: CSV of idx and label of the test split, whose labels are withheld"}
    )
    item_ids: str = dataclasses.field(
        default="", metadata={"help": "CSV of ids and texts: examples of a text task that it has take their id from it"}
    )
    seed: int = dataclasses.field(default=0, metadata={"help": "seed of every random draw"})
    num_models: int = dataclasses.field(default=384, metadata={"help": "networks in the artificial crowd"})
    members: str = dataclasses.field(
        default="", metadata={"help": "members.csv of a crowd: train those networks instead of drawing new ones"}
    )
    only: str = dataclasses.field(
        default="", metadata={"help": "numbers of the networks in --members to train, with commas between them"}
    )
    network: str = dataclasses.field(
        default="mlp",
        metadata={
            "help": f"one of {', '.join(networks.NETWORKS)}; several with commas make a mixed crowd, and filtering and "
            "curriculum use the first"
        },
    )
    width: int = dataclasses.field(default=32, metadata={"help": "hidden units (or channels) of a layer"})
    min_width: int = dataclasses.field(
        default=0, metadata={"help": "smallest width in the crowd, where units are masked to have it; 0 for none"}
    )
    batch_size: int = dataclasses.field(default=32, metadata={"help": "examples in a gradient step"})
    learning_rate: float = dataclasses.field(default=5e-3, metadata={"help": "learning rate of Adam"})
    learning_rate_factor: float = dataclasses.field(
        default=1.0,
        metadata={"help": "learning rates in the crowd are log-uniform from rate / factor to rate × factor"},
    )
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
    out_of_bag: bool = dataclasses.field(
        default=False, metadata={"help": "members' answers to examples that they were trained on count as missing"}
    )
    stop_on: str = dataclasses.field(
        default="validation",
        metadata={
            "help": "what early stopping in the crowd looks at: validation, or train, a sample of training examples of "
            "that size, for a crowd that never sees the validation split"
        },
    )
    train_embeddings: bool = dataclasses.field(
        default=False, metadata={"help": "text: networks train word vectors of their own; else all share frozen ones"}
    )
    slots: int = dataclasses.field(
        default=0, metadata={"help": "networks that train at once on a device; 0 for what is fastest, by measurement"}
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
    probe: str = dataclasses.field(
        default="sample",
        metadata={
            "help": "training items that the network answers for its ability: a sample, or all; little data are "
            "answered in full in any case"
        },
    )
    probe_error: float = dataclasses.field(
        default=0.005,
        metadata={"help": "standard error of the share selected that such a sample is to be large enough for"},
    )
    window: float = dataclasses.field(
        default=1.0, metadata={"help": "logits that items may be from the ability in the strategy of that name"}
    )

    @property
    def networks(self) -> tuple[str, ...]:
        """Architectures of the crowd; the first is also that of filtering and curriculum."""
        return tuple(self.network.split(","))


_SENTENCES = {
    "num_models": 200,
    "network": "lstm",
    "width": 64,
    "learning_rate": 1e-3,
    "epochs": 15,
    "patience": 3,
    "steps_per_epoch": 200,
    "min_subset": 50,
    "filtering_seeds": 3,
    "curriculum_seeds": 3,
    "curriculum_patience": 3,
}
# What differs from the defaults above, which are those of `digits`. The slower the networks, the fewer.
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
    "cifar10": {
        "num_models": 64,
        "network": "lenet",
        "width": 8,
        "batch_size": 64,
        "learning_rate": 1e-3,
        "epochs": 12,
        "patience": 3,
        "steps_per_epoch": 100,
        "min_subset": 100,
        "filtering_seeds": 2,
        "curriculum_seeds": 2,
        "curriculum_patience": 3,
    },
    # more corruption than (C - 1) / C of the labels would teach members to be wrong
    "sst2": _SENTENCES | {"max_corruption": 0.5},
    "snli": _SENTENCES | {"max_corruption": 0.65, "num_models": 96, "filtering_seeds": 2, "curriculum_seeds": 2},
}
# What differs from those where it is the first network: at 1e-3, VGG-16 stays at chance.
NETWORK_DEFAULTS: dict[str, dict[str, Any]] = {"vgg16": {"learning_rate": 2e-4}}
flags.disclaim_key_flags()  # the flags belong to the binary that calls define_flags
_TASK = flags.DEFINE_string("task", "digits", f"one of {', '.join(tasks.LOADERS)}")
DATA_DIR = flags.DEFINE_string(
    "data_dir", None, "folder of prepared TensorFlow Datasets (default: that package's own; digits needs none)"
)
_DEFINERS = {
    bool: flags.DEFINE_boolean,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    str: flags.DEFINE_string,
}


# settings that only some stages use; all others say how a network is trained
OF_CROWD = {
    "num_models",
    "members",
    "only",
    "min_width",
    "learning_rate_factor",
    "min_subset",
    "max_corruption",
    "out_of_bag",
    "stop_on",
    "priors",
    "mislabelled",
}
OF_FILTERING = {"filtering_seeds", "patience", "steps_per_epoch", "slots"}
OF_CURRICULUM = {
    "curriculum_seeds",
    "curriculum_patience",
    "curriculum_length",
    "initial_share",
    "ability",
    "probe",
    "probe_error",
    "window",
}
AFTER_CROWD = OF_CURRICULUM | {"filtering_seeds", "priors", "mislabelled"}


def define_flags(without: Collection[str] = ()) -> None:
    """Defines a flag for every setting but the task and some others; unset flags leave the task's default."""
    for field in dataclasses.fields(Settings):
        if field.name not in {"task", *without}:
            others = "".join(
                f"; {name}: {changes[field.name]}"
                for name, changes in (TASK_DEFAULTS | NETWORK_DEFAULTS).items()
                if field.name in changes
            )
            text = f"{field.metadata['help']} (default {field.default}{others})"
            _DEFINERS[field.type](field.name, None, text)


def from_flags() -> Settings:
    """The task's and the network's defaults, replaced by the flags that were given.

    Raises:
        InputError: unknown task, or a value out of range.
    """
    task = _TASK.value
    if task not in tasks.LOADERS:
        raise InputError(f"--task={task}: unknown task, expected one of {', '.join(tasks.LOADERS)}")
    given = {
        field.name: flags.FLAGS[field.name].value
        for field in dataclasses.fields(Settings)
        if field.name in flags.FLAGS and flags.FLAGS[field.name].value is not None and field.name != "task"
    }
    defaults = TASK_DEFAULTS[task]
    network = given.get("network", defaults.get("network", Settings.network)).split(",")[0]
    settings = Settings(**{"task": task, **defaults, **NETWORK_DEFAULTS.get(network, {}), **given})
    _check(settings)
    return settings


def values(settings: Settings, without: Collection[str]) -> dict[str, Any]:
    """The settings by name, but for those that a binary does not use."""
    return {name: value for name, value in dataclasses.asdict(settings).items() if name not in without}


def _check(settings: Settings) -> None:
    if settings.only and not (settings.members and all(part.isdecimal() for part in settings.only.split(","))):
        raise InputError(f"--only={settings.only}: expected numbers like 3,417, beside --members")
    choices = {"priors": PRIORS, "ability": ABILITIES, "vectors": VECTORS, "probe": PROBES, "stop_on": STOP_ON}
    for name in settings.networks:
        if name not in networks.NETWORKS:
            raise InputError(f"--network={settings.network}: {name!r} is none of {', '.join(networks.NETWORKS)}")
    for name, allowed in choices.items():
        if getattr(settings, name) not in allowed:
            raise InputError(f"--{name}={getattr(settings, name)}: expected one of {', '.join(allowed)}")
    at_least_one = (
        "embedding_dim min_count width batch_size epochs patience steps_per_epoch min_subset filtering_seeds "
        "curriculum_seeds curriculum_patience curriculum_length"
    )
    bounds = dict.fromkeys(at_least_one.split(), (1, None)) | {
        "seed": (0, 2**31 - 1),
        "num_models": (2, None),
        "max_corruption": (0, 1),
        "min_width": (0, settings.width),
        "learning_rate_factor": (1, 1000),
        "slots": (0, None),
        "train_examples": (0, None),
        "mislabelled": (0, 0.5),
        "initial_share": (0, 1),
    }
    for name, (low, high) in bounds.items():
        value = getattr(settings, name)
        # asked this way round, NaN is out of range too
        if not (value >= low and (high is None or value <= high)):
            limit = f"at least {low}" if high is None else f"{low} to {high}"
            raise InputError(f"--{name}={value}: expected {limit}")
    for name in ("learning_rate", "probe_error", "window"):
        if not 0 < getattr(settings, name) < float("inf"):
            raise InputError(f"--{name}={getattr(settings, name)}: expected a positive number")
