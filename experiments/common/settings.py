"""Settings of a run: defaults per task, each replaceable by a flag of the same name."""

import dataclasses
from collections.abc import Callable, Collection
from typing import Any

from absl import flags

from experiments.common import app
from experiments.common.path_flags import define_path
from experiments.common.task_defaults import (
    NETWORK_DEFAULTS,
    PUBLISHED,
    TASK_DEFAULTS,
    defaults_of,
    library_settings,
)
from irtjax import InputError, networks, tasks
from irtjax.crowd.train import STOP_ON
from irtjax.estimation.svi.fit import PRIORS
from irtjax.selection import strategies
from irtjax.selection.compare import PROBE_ERROR
from irtjax.selection.filtering import CENTRES
from irtjax.tasks.vectors import KINDS as VECTORS
from irtjax.training.optimizers import OPTIMIZERS, SGD_RATE, sgd_rate

ABILITIES = ("ml", "map")
_USUAL = library_settings("digits")
_TEXT = tasks.Options()
_STRATEGIES = strategies.Options()
OF_OPTIMIZER = ("optimizer", "learning_rate", "momentum", "weight_decay")
OF_DRAWN_MEMBERS = ("num_models", "min_subset", "max_corruption", "min_width", "learning_rate_factor")
FILES = ("glove", "pretrained", "test_labels", "item_ids", "extra_items", "members")  # settings that name files
LARGEST = 1_000_000  # of what is counted: numbers beyond it are slips, and would fail in the middle of a run
WIDEST = 65_536  # layers and word vectors
MOST_EXAMPLES = 10**9
STAGES = ("crowd", "difficulty", "mislabelled", "filtering", "curriculum")


def setting(
    default: Any,
    help: str,
    *,
    low: float | None = None,
    high: float | str | None = None,
    positive: bool = False,
    choices: Collection[str] = (),
    stages: Collection[str] = STAGES,
) -> Any:
    """A field of `Settings`, with all that is known of it.

    Args:
        default: for tasks and networks that have none of their own.
        help: text of the flag.
        low: least value.
        high: greatest value, or the name of the setting that has it; None for no bound, or `LARGEST` of whole numbers.
        positive: whether the value must be above zero and finite.
        choices: the values allowed.
        stages: those that use it.
    """
    if high is None and low is not None and type(default) is int:
        high = LARGEST
    metadata = {
        "help": help,
        "low": low,
        "high": high,
        "positive": positive,
        "choices": choices,
        "stages": stages,
    }
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True)
class Settings:
    """Everything that the results of a pipeline run depend on."""

    task: str
    dataset: str = setting("", "name in TensorFlow Datasets, if it is not the task's usual one")
    glove: str = setting("", "file of GloVe vectors for text; by default vectors are made from the training text")
    pretrained: str = setting(
        "", "folder of an encoder of the BERT type (config.json, model.safetensors, tokenizer.json): text is read by it"
    )
    frozen: bool = setting(
        False, "--pretrained: the encoder is not trained; its vectors of all texts are computed once, for a head: mlp"
    )
    vectors: str = setting(
        _TEXT.vectors, f"word vectors where there is no --glove: {' or '.join(VECTORS)}", choices=VECTORS
    )
    embedding_dim: int = setting(
        _TEXT.embedding_dim, "length of the word vectors that --vectors makes", low=1, high=WIDEST
    )
    min_count: int = setting(
        _TEXT.min_count, "a word enters the vocabulary if training texts have it at least this often", low=1
    )
    train_examples: int = setting(
        0, "size of a random sample of training examples to use; 0 for all", low=0, high=MOST_EXAMPLES
    )
    validation_examples: int = setting(
        0, "size of a random sample of validation examples to use; 0 for all", low=0, high=MOST_EXAMPLES
    )
    label_noise: float = setting(
        0.0,
        "share of training labels that are wrong from the start: crowd, difficulties and curricula never see the right "
        "ones",
        low=0,
        high=0.9,
    )
    label_noise_seed: int = setting(
        0,
        "which labels --label_noise makes wrong: give crowd, filtering and curriculum the same",
        low=0,
        high=2**31 - 1,
    )
    test_labels: str = setting("", "sst2: CSV of idx and label of the test split, whose labels are withheld")
    item_ids: str = setting("", "CSV of ids and texts: examples of a text task take the id that it has for their text")
    extra_items: str = setting(
        "", "text: CSV of ids, texts and labels of further items that the crowd answers", stages=["crowd"]
    )
    seed: int = setting(0, "seed of every random draw", low=0, high=2**31 - 1)
    num_models: int = setting(384, "networks in the artificial crowd", low=2, stages=["crowd"])
    members: str = setting(
        "", "members.csv of a crowd: train those networks instead of drawing new ones", stages=["crowd"]
    )
    only: str = setting("", "numbers of the networks in --members to train, separated by commas", stages=["crowd"])
    network: str = setting(
        _USUAL["network"],
        f"one of {', '.join(networks.NETWORKS)}; several, separated by commas, make a mixed crowd, and filtering and "
        "curriculum use the first",
    )
    width: int = setting(_USUAL["width"], "hidden units (or channels) of a layer", low=1, high=WIDEST)
    min_width: int = setting(
        0,
        "smallest width in the crowd, reached by masking units; 0 masks none",
        low=0,
        high="width",
        stages=["crowd"],
    )
    batch_size: int = setting(_USUAL["batch_size"], "examples in a gradient step", low=1)
    optimizer: str = setting("adam", "adam, or sgd for stochastic gradient descent with --momentum", choices=OPTIMIZERS)
    momentum: float = setting(0.0, "sgd: share of the last step that the next one repeats", low=0, high=0.999)
    weight_decay: float = setting(
        0.0, "decay: of sgd in its gradients, of all weights; of adam in its steps, not of biases", low=0, high=1000
    )
    learning_rate: float = setting(
        _USUAL["learning_rate"], f"learning rate; of sgd {SGD_RATE} (1 - momentum) by default", positive=True
    )
    schedule: str = setting(
        "constant",
        "learning rate over a training: constant, or linear, which rises during --warmup and falls to 0 after it",
        choices=("constant", "linear"),
    )
    warmup: float = setting(0.1, "linear --schedule: share of the steps in which the rate rises", low=0, high=1)
    clip: float = setting(
        0.0, "greatest norm of a gradient, beyond which it is scaled down; 0 for none", low=0, high=1e9
    )
    learning_rate_factor: float = setting(
        1.0,
        "learning rates in the crowd are log-uniform from rate / factor to rate × factor",
        low=1,
        high=1000,
        stages=["crowd"],
    )
    epochs: int = setting(
        _USUAL["epochs"], "largest number of epochs of a training", low=1, stages=["crowd", "filtering"]
    )
    patience: int = setting(
        _USUAL["patience"],
        "a training ends after this many epochs without a better validation accuracy; 0: after --epochs only",
        low=0,
        stages=["crowd", "filtering"],
    )
    epoch: str = setting(
        "steps",
        "what lies between two validations in crowd and filtering: --steps_per_epoch, or a pass over the network's own "
        "training set (as in curricula)",
        choices=("steps", "pass"),
        stages=["crowd", "filtering"],
    )
    steps_per_epoch: int = setting(
        _USUAL["steps_per_epoch"],
        "gradient steps in an epoch of crowd and filtering",
        low=1,
        stages=["crowd", "filtering"],
    )
    min_subset: int = setting(
        _USUAL["min_subset"], "smallest training subset in the crowd", low=1, high=MOST_EXAMPLES, stages=["crowd"]
    )
    max_corruption: float = setting(
        _USUAL["max_corruption"],
        "largest share of corrupted labels in the crowd, 0 to 1",
        low=0,
        high=1,
        stages=["crowd"],
    )
    out_of_bag: bool = setting(
        False, "count answers of members to examples that they were trained on as missing", stages=["crowd"]
    )
    stop_on: str = setting(
        STOP_ON[0],
        "split that early stopping in the crowd looks at: validation, or train, which is a sample of training examples "
        "of the same size, of at most 2,000, for a crowd that never sees the validation split",
        choices=STOP_ON,
        stages=["crowd"],
    )
    train_embeddings: bool = setting(
        False, "text: each network trains its own word vectors; otherwise all share frozen ones"
    )
    slots: int = setting(
        0,
        "networks that train at once on a device; 0 measures which number is fastest",
        low=0,
        stages=["crowd", "filtering", "curriculum"],
    )
    priors: str = setting(
        "hierarchical",
        f"priors of the difficulties that filtering and curriculum use: {' or '.join(PRIORS)}",
        choices=PRIORS,
        stages=["difficulty", "mislabelled"],
    )
    mislabelled: float = setting(
        0.05,
        "share of training labels flipped to show that difficulty finds them; 0 leaves the stage out",
        low=0,
        high=0.5,
        stages=["mislabelled"],
    )
    centre: str = setting(
        "difficulty",
        "what AVI and AVO take for an average example: one of mean difficulty, or of median difficulty; one as hard as "
        "the crowd is able on average; or one halfway between mean difficulty and mean ability",
        choices=CENTRES,
        stages=["filtering"],
    )
    filtering_seeds: int = setting(5, "networks for each filtering strategy and share", low=1, stages=["filtering"])
    curriculum_seeds: int = setting(5, "networks for each curriculum strategy", low=1, stages=["curriculum"])
    curriculum_epochs: int = setting(
        0, "largest number of epochs of a curriculum; 0 for that of crowd and filtering", low=0, stages=["curriculum"]
    )
    curriculum_patience: int = setting(10, "as --patience, for curricula", low=0, stages=["curriculum"])
    curriculum_length: int = setting(
        _STRATEGIES.length, "T of CB-linear and CB-root: epochs until they use all data", low=1, stages=["curriculum"]
    )
    initial_share: float = setting(
        _STRATEGIES.initial_share,
        "c0 of CB-linear and CB-root: share of the data at epoch 0",
        low=0,
        high=1,
        stages=["curriculum"],
    )
    ability: str = setting(
        "ml",
        f"how DDaCLAE scores the network: {' or '.join(ABILITIES)}",
        choices=ABILITIES,
        stages=["curriculum"],
    )
    probe: str = setting(
        "sample",
        "training items that the network answers to estimate its ability: a sample, or all; small training splits are "
        "answered in full in any case",
        choices=("sample", "all"),
        stages=["curriculum"],
    )
    probe_error: float = setting(
        PROBE_ERROR,
        "standard error that the selected share may have, which sets the size of that sample",
        positive=True,
        stages=["curriculum"],
    )
    window: float = setting(
        _STRATEGIES.half_width,
        "strategy window: largest distance of items from the ability, in logits",
        positive=True,
        stages=["curriculum"],
    )

    @property
    def networks(self) -> tuple[str, ...]:
        """Architectures of the crowd; the first is also that of filtering and curriculum."""
        return tuple(self.network.split(","))


# all but the task, which is of another kind: it chooses the defaults of the others
_FIELDS = {field.name: field for field in dataclasses.fields(Settings) if field.name != "task"}
_DEFINERS: dict[Any, Callable[..., Any]] = {
    bool: flags.DEFINE_boolean,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    str: flags.DEFINE_string,
}
flags.disclaim_key_flags()  # the flags belong to the binary that calls define_flags
_TASK = flags.DEFINE_string("task", "digits", f"one of {', '.join(tasks.TASKS)}")
_PRESET = flags.DEFINE_enum(
    "preset",
    "fast",
    ["fast", "published"],
    "defaults of the other flags: fast, in minutes; or those of the published study of the task, as far as it states "
    "them (hours to days)",
)
DATA_DIR = define_path(
    "data_dir", "folder of prepared TensorFlow Datasets (default: that package's own; digits needs none)"
)


def of_stage(stage: str) -> frozenset[str]:
    """Names of the settings that a stage uses, all those of the task and of training a network among them."""
    return frozenset(name for name, field in _FIELDS.items() if stage in field.metadata["stages"])


def define_flags(names: Collection[str] = tuple(_FIELDS)) -> None:
    """Defines a flag for each of these settings; those that are not given leave the task's default."""
    flags.declare_key_flag("task")
    flags.declare_key_flag("data_dir")
    flags.declare_key_flag("preset")
    defaults = {task: defaults_of(task) for task in TASK_DEFAULTS} | NETWORK_DEFAULTS
    for name, field in _FIELDS.items():
        if name in names:
            others = "".join(f"; {owner}: {own[name]}" for owner, own in defaults.items() if name in own)
            default = "none" if field.default == "" else field.default
            text = f"{field.metadata['help']} (default {default}{others})"
            if name in FILES:
                define_path(name, text)
            else:
                _DEFINERS[field.type](name, None, text)


def from_flags() -> Settings:
    """The task's and the network's defaults, replaced by those of the preset and the flags that were given.

    Raises:
        InputError: unknown task, a task that no study had, or a value out of range.
    """
    task = _TASK.value
    if task not in tasks.TASKS:
        raise InputError(f"--task={task}: unknown task, expected one of {', '.join(tasks.TASKS)}")
    given: dict[str, Any] = {
        name: flags.FLAGS[name].value for name in _FIELDS if name in flags.FLAGS and flags.FLAGS[name].value is not None
    }
    chosen = (_of_study(task, given) if _PRESET.value == "published" else {}) | given
    defaults = defaults_of(task) | {"task": task}
    if chosen.get("pretrained"):
        defaults = defaults | {"network": "mlp" if chosen.get("frozen") else "bert"}
    network = chosen.get("network", defaults.get("network", Settings.network)).split(",")[0]
    own = NETWORK_DEFAULTS.get(network, {})
    if chosen.get("optimizer") == "sgd":
        own = own | {"learning_rate": sgd_rate(chosen.get("momentum", 0.0))}
    if chosen.get("label_noise"):  # labels that are wrong already, and not marked, cannot show what is found
        defaults = defaults | {"mislabelled": 0.0}
    settings = Settings(**{**defaults, **own, **chosen})
    _check(settings)
    if settings.label_noise and settings.mislabelled:
        raise InputError(f"--mislabelled={settings.mislabelled}: not beside --label_noise, which flips labels unmarked")
    if not settings.label_noise:
        app.without_effect(["label_noise_seed"], "no --label_noise")
    if settings.optimizer == "adam":
        app.without_effect(["momentum"], "--optimizer=adam")
    if settings.schedule == "constant":
        app.without_effect(["warmup"], "--schedule=constant")
    if settings.pretrained:
        app.without_effect(["vectors", "embedding_dim", "min_count"], "--pretrained")
        if settings.glove:
            raise InputError("--glove and --pretrained: an encoder has words of its own: leave one out")
    elif settings.frozen:
        raise InputError("--frozen: expected the folder of an encoder, --pretrained")
    if settings.epoch == "pass":
        app.without_effect(["steps_per_epoch"], "--epoch=pass")
    if settings.members:
        app.without_effect(OF_DRAWN_MEMBERS, "--members")
    if settings.glove:
        app.without_effect(["vectors", "embedding_dim"], "--glove")
    if settings.probe == "all":
        app.without_effect(["probe_error"], "--probe=all")
    return settings


def _of_study(task: str, given: Collection[str]) -> dict[str, Any]:
    """The settings of the study of a task, but for an optimizer in place of which another is given."""
    if task not in PUBLISHED:
        raise InputError(f"--preset=published: no study had {task}, expected one of {', '.join(PUBLISHED)}")
    left_out = OF_OPTIMIZER if "optimizer" in given else ()
    return {name: value for name, value in PUBLISHED[task].items() if name not in left_out}


def values(settings: Settings, names: Collection[str]) -> dict[str, Any]:
    """The task, and these settings by name, in the order of `Settings`."""
    return {name: value for name, value in dataclasses.asdict(settings).items() if name == "task" or name in names}


def _check(settings: Settings) -> None:
    """Refuses values that no run could use.

    Raises:
        InputError: names the flag.
    """
    if settings.only and not (settings.members and all(part.isdecimal() for part in settings.only.split(","))):
        raise InputError(f"--only={settings.only}: expected numbers like 3,417, beside --members")
    app.choose("network", list(settings.networks), tuple(networks.NETWORKS))
    for name, field in _FIELDS.items():
        value, rule = getattr(settings, name), field.metadata
        low, high = rule["low"], rule["high"]
        if isinstance(high, str):
            high = getattr(settings, high)
        if rule["choices"] and value not in rule["choices"]:
            raise InputError(f"--{name}={value}: expected one of {', '.join(rule['choices'])}")
        # asked this way round, NaN is out of range too
        if low is not None and not (value >= low and (high is None or value <= high)):
            limit = f"at least {low}" if high is None else f"{low} to {high}"
            raise InputError(f"--{name}={value}: expected {limit}")
        if rule["positive"] and not 0 < value < float("inf"):
            raise InputError(f"--{name}={value}: expected a positive number")
