"""Settings of a run, and what is known of each: help, limits, and the stages that use it."""

import dataclasses
import functools
import re
from collections.abc import Collection
from typing import Any

from irtjax.arguments import bounded, descriptions
from irtjax.choices import NETWORKS
from irtjax.crowd.choices import MOST_EXAMPLES, STOP_ON, CrowdDesign
from irtjax.selection.choices import CENTRES, PROBE_ERROR, CurriculumOptions
from irtjax.svi.choices import PRIORS
from irtjax.tasks.options import TaskOptions
from irtjax.training.choices import SGD_RATE, Recipe

ABILITIES = ("ml", "map")
OF_OPTIMIZER = ("optimizer", "learning_rate", "momentum", "weight_decay")
OF_DRAWN_MEMBERS = ("num_models", "min_subset", "max_corruption", "min_width", "learning_rate_factor")
IDLE = {  # settings without effect, by what leaves them so
    "no --label_noise": ("label_noise_seed",),
    "--optimizer=adam": ("momentum",),
    "--schedule=constant": ("warmup",),
    "--pretrained": ("vectors", "embedding_dim", "min_count", "max_words"),
    "--epoch=pass": ("steps_per_epoch",),
    "--members": OF_DRAWN_MEMBERS,
    "--glove": ("vectors", "embedding_dim"),
    "--probe=all": ("probe_error",),
}
FILES = ("glove", "pretrained", "test_labels", "item_ids", "extra_items", "members")  # settings that name files
STAGES = ("crowd", "difficulty", "mislabelled", "filtering", "curriculum")


def setting(
    default: Any,
    help: str,
    low: float | None = None,
    high: float | str | None = None,
    *,
    stages: Collection[str] = STAGES,
    group: str = "",
    **bounds: Any,
) -> Any:
    """A field of `Settings`, with all that is known of it.

    Args:
        default: for tasks and networks that have none of their own.
        help: text of the flag.
        low: see `irtjax.arguments.bounded`, as the other bounds.
        high: see there.
        stages: those that use it.
        group: of its flag in `--help`; empty for what is often given.
        bounds: the other bounds.
    """
    return bounded(default, low, high, help=help, stages=stages, group=group, **bounds)


def _as_in(owner: type, name: str, **changes: Any) -> dict[str, Any]:
    """The default, the help and the bounds of a field of the library, but for some."""
    (field,) = (field for field in dataclasses.fields(owner) if field.name == name)
    help = re.sub(r"`(\w+)`", r"--\1", descriptions(owner)[name])
    return {"default": field.default, "help": help, **field.metadata, **changes}


_data = functools.partial(setting, group="data")
_own = functools.partial(setting, group="your own data")
_training = functools.partial(setting, group="training of networks")
_of_crowd = functools.partial(setting, group="crowd", stages=["crowd"])
_of_difficulty = functools.partial(setting, group="difficulty")
_of_filtering = functools.partial(setting, group="filtering", stages=["filtering"])
_of_curricula = functools.partial(setting, group="curricula", stages=["curriculum"])


@dataclasses.dataclass(frozen=True)
class Settings:
    """Everything that the results of a pipeline run depend on."""

    task: str
    dataset: str = _data("", "name in TensorFlow Datasets, if it is not the task's usual one")
    text_column: str = _own("", "own tables: column of texts, or two of pairs, with a comma between")
    feature_columns: str = _own("", "own tables: columns of numbers, with commas between")
    label_column: str = _own("", "own tables: column of classes (default label, gold_label, target or class)")
    split_column: str = _own("", "own tables: column that says train, validation or test (default split)")
    id_column: str = _own(
        "", "own tables: column of ids of the examples (default item_id, id, …, if each is there once)"
    )
    image_size: int = _own(0, "own images: pixels of a side to bring them to; 0 for their own size", low=0, high=1024)
    glove: str = _data("", "file of GloVe vectors for text; by default vectors are made from the training text")
    pretrained: str = _data(
        "", "folder of an encoder of the BERT type (config.json, model.safetensors, tokenizer.json): text is read by it"
    )
    frozen: bool = _data(
        False, "--pretrained: the encoder is not trained; its vectors of all texts are computed once, for a head: mlp"
    )
    vectors: str = _data(**_as_in(TaskOptions, "vectors"))
    embedding_dim: int = _data(**_as_in(TaskOptions, "embedding_dim"))
    min_count: int = _data(**_as_in(TaskOptions, "min_count"))
    max_words: int = _data(**_as_in(TaskOptions, "max_words"))
    train_examples: int = _data(
        0, "size of a random sample of training examples to use; 0 for all", low=0, high=MOST_EXAMPLES
    )
    validation_examples: int = _data(
        0, "size of a random sample of validation examples to use; 0 for all", low=0, high=MOST_EXAMPLES
    )
    test_examples: int = _data(
        0, "size of a random sample of test examples to use; 0 for all", low=0, high=MOST_EXAMPLES
    )
    label_noise: float = _data(
        0.0,
        "share of training labels that are wrong from the start: crowd, difficulties and curricula never see the right "
        "ones",
        low=0,
        high=0.9,
    )
    label_noise_seed: int = _data(
        0,
        "which labels --label_noise makes wrong: give crowd, filtering and curriculum the same",
        low=0,
        high=2**31 - 1,
    )
    test_labels: str = _data("", "sst2: CSV of idx and label of the test split, whose labels are withheld")
    item_ids: str = _data("", "CSV of ids and texts: examples of a text task take the id that it has for their text")
    extra_items: str = _data(
        "",
        "further items that the crowd answers: CSV of ids, texts and labels; NPZ of images, labels and item_id",
        stages=["crowd"],
    )
    seed: int = setting(0, "seed of every random draw", low=0, high=2**31 - 1)
    num_models: int = setting(384, "networks in the artificial crowd", low=2, stages=["crowd"])
    members: str = _of_crowd("", "members.csv of a crowd: train those networks instead of drawing new ones")
    only: str = _of_crowd("", "numbers of the networks in --members to train, separated by commas")
    network: str = setting(
        Recipe.network,
        f"one of {', '.join(NETWORKS)}, or package.module:Class of your own; several, separated by commas, "
        "make a mixed crowd; all else that trains uses the first",
    )
    width: int = _training(**_as_in(Recipe, "width"))
    min_width: int = _of_crowd(
        0, "smallest width in the crowd, reached by masking units; 0 masks none", low=0, high="width"
    )
    batch_size: int = _training(**_as_in(Recipe, "batch_size"))
    optimizer: str = _training(**_as_in(Recipe, "optimizer"))
    momentum: float = _training(**_as_in(Recipe, "momentum"))
    weight_decay: float = _training(**_as_in(Recipe, "weight_decay"))
    learning_rate: float = _training(
        **_as_in(Recipe, "learning_rate", help=f"of the optimizer; of sgd {SGD_RATE} (1 - momentum) by default")
    )
    schedule: str = _training(
        "constant",
        "learning rate over a training: constant, or linear, which rises during --warmup and falls to 0 after it",
        choices=("constant", "linear"),
    )
    warmup: float = _training(0.1, "linear --schedule: share of the steps in which the rate rises", low=0, high=1)
    clip: float = _training(**_as_in(Recipe, "clip"))
    learning_rate_factor: float = _of_crowd(**_as_in(CrowdDesign, "learning_rate_factor"))
    epochs: int = setting(**_as_in(Recipe, "max_epochs"), stages=["crowd", "filtering"])
    patience: int = _training(
        Recipe.patience,
        "a training ends after this many epochs without a better validation accuracy; 0: after --epochs only",
        low=0,
        stages=["crowd", "filtering"],
    )
    epoch: str = _training(
        "steps",
        "what lies between two validations in crowd and filtering: --steps_per_epoch, or a pass over the network's own "
        "training set (as in curricula)",
        choices=("steps", "pass"),
        stages=["crowd", "filtering"],
    )
    steps_per_epoch: int = _training(
        Recipe.steps_per_epoch,
        "gradient steps in an epoch of crowd and filtering",
        low=1,
        stages=["crowd", "filtering"],
    )
    min_subset: int = _of_crowd(**_as_in(CrowdDesign, "min_subset"))
    max_corruption: float = _of_crowd(**_as_in(CrowdDesign, "max_corruption"))
    out_of_bag: bool = _of_crowd(False, "count answers of members to examples that they were trained on as missing")
    stop_on: str = _of_crowd(
        STOP_ON[0],
        "split that early stopping in the crowd looks at: validation, or train, which is a sample of training examples "
        "of the same size, of at most 2,000, for a crowd that never sees the validation split",
        choices=STOP_ON,
    )
    train_embeddings: bool = _training(**_as_in(Recipe, "train_embeddings"))
    slots: int = _training(
        0,
        "networks that train at once on a device; 0 measures which number is fastest",
        low=0,
        stages=["crowd", "filtering", "curriculum"],
    )
    priors: str = _of_difficulty(
        "hierarchical",
        f"priors of the difficulties that filtering and curriculum use: {' or '.join(PRIORS)}",
        choices=PRIORS,
        stages=["difficulty", "mislabelled"],
    )
    mislabelled: float = _of_difficulty(
        0.05,
        "share of training labels flipped to show that difficulty finds them; 0 leaves the stage out",
        low=0,
        high=0.5,
        stages=["mislabelled"],
    )
    centre: str = _of_filtering(
        "difficulty",
        "what AVI and AVO take for an average example: one of mean difficulty, or of median difficulty; one as hard as "
        "the crowd is able on average; or one halfway between mean difficulty and mean ability",
        choices=CENTRES,
    )
    by_class: bool = _training(
        False,
        "what strategies of filtering and curricula choose has as much of each class as all training data",
        stages=["filtering", "curriculum"],
    )
    sampled: bool = _of_filtering(
        False,
        "for every seed strategies go by difficulties drawn from their posteriors (difficulty and difficulty_se of the "
        "items), and not by their means",
    )
    filtering_seeds: int = _of_filtering(5, "networks for each filtering strategy and share", low=1)
    curriculum_seeds: int = _of_curricula(5, "networks for each curriculum strategy", low=1)
    curriculum_epochs: int = _of_curricula(
        0, "largest number of epochs of a curriculum; 0 for that of crowd and filtering", low=0
    )
    curriculum_patience: int = _of_curricula(10, "as --patience, for curricula", low=0)
    curriculum_length: int = _of_curricula(**_as_in(CurriculumOptions, "length"))
    initial_share: float = _of_curricula(**_as_in(CurriculumOptions, "initial_share"))
    ability: str = _of_curricula("ml", f"how DDaCLAE scores the network: {' or '.join(ABILITIES)}", choices=ABILITIES)
    probe: str = _of_curricula(
        "sample",
        "training items that the network answers to estimate its ability: a sample, or all; small training splits are "
        "answered in full in any case",
        choices=("sample", "all"),
    )
    probe_error: float = _of_curricula(
        PROBE_ERROR,
        "standard error that the selected share may have, which sets the size of that sample",
        positive=True,
    )
    window: float = _of_curricula(**_as_in(CurriculumOptions, "half_width"))
    floor: bool = _of_curricula(**_as_in(CurriculumOptions, "floor"))

    @property
    def networks(self) -> tuple[str, ...]:
        """Architectures of the crowd; the first is also that of filtering and curriculum."""
        return tuple(self.network.split(","))


# all but the task, which is of another kind: it chooses the defaults of the others
FIELDS = {field.name: field for field in dataclasses.fields(Settings) if field.name != "task"}


def of_stage(stage: str) -> frozenset[str]:
    """Names of the settings that a stage uses, all those of the task and of training a network among them."""
    return frozenset(name for name, field in FIELDS.items() if stage in field.metadata["stages"])


def of_training() -> frozenset[str]:
    """Names of those of commands that train networks on all training examples, epoch by epoch and without a pool."""
    without = {"by_class", "epoch", "steps_per_epoch", "slots"}
    return frozenset(name for name in of_stage("filtering") - without if FIELDS[name].metadata["group"] != "filtering")


def values(settings: Settings, names: Collection[str]) -> dict[str, Any]:
    """The task, and these settings by name, in the order of `Settings`."""
    return {name: value for name, value in dataclasses.asdict(settings).items() if name == "task" or name in names}
