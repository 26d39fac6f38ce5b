"""Settings of a run, and what is known of each: help, limits, and the stages that use it."""

import dataclasses
from collections.abc import Collection
from typing import Any

from experiments.common.task_defaults import library_settings
from irtjax import networks, tasks
from irtjax.crowd.train import STOP_ON
from irtjax.estimation.svi.fit import PRIORS
from irtjax.selection import strategies
from irtjax.selection.compare import PROBE_ERROR
from irtjax.selection.filtering import CENTRES
from irtjax.tasks.vectors import KINDS as VECTORS
from irtjax.training.recipe import OPTIMIZERS, SGD_RATE

ABILITIES = ("ml", "map")
_USUAL = library_settings("digits")
_TEXT = tasks.TaskOptions()
_STRATEGIES = strategies.CurriculumOptions()
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
    test_examples: int = setting(
        0, "size of a random sample of test examples to use; 0 for all", low=0, high=MOST_EXAMPLES
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
FIELDS = {field.name: field for field in dataclasses.fields(Settings) if field.name != "task"}


def of_stage(stage: str) -> frozenset[str]:
    """Names of the settings that a stage uses, all those of the task and of training a network among them."""
    return frozenset(name for name, field in FIELDS.items() if stage in field.metadata["stages"])


def values(settings: Settings, names: Collection[str]) -> dict[str, Any]:
    """The task, and these settings by name, in the order of `Settings`."""
    return {name: value for name, value in dataclasses.asdict(settings).items() if name == "task" or name in names}
