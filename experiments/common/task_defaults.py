"""What experiments know of each task: the settings that suit it, and figures that were published for it."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple


class PublishedChange(NamedTuple):
    """Change of DDaCLAE against the fully supervised baseline, in percent (Lalor and Yu 2020; Lalor 2020, chapter 6).

    The networks and crowds there are others than ours; for cifar10 and snli the data are too.

    Attributes:
        examples_used: training examples until the best validation epoch.
        test_accuracy: test accuracy at that epoch.
    """

    examples_used: float
    test_accuracy: float


@dataclasses.dataclass(frozen=True)
class TaskDefaults:
    """One task.

    Attributes:
        settings: values that differ from the defaults of `Settings`, which are those of `digits`.
        published: what a study found on it, or None.
    """

    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    published: PublishedChange | None = None


_TEXT = {
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
# The slower the networks of a task, the fewer there are.
TASK_DEFAULTS = {
    "digits": TaskDefaults(),
    "mnist": TaskDefaults(
        settings={
            "num_models": 256,
            "batch_size": 64,
            "learning_rate": 2e-3,
            "epochs": 20,
            "steps_per_epoch": 200,
            "min_subset": 50,
        },
        published=PublishedChange(examples_used=-9.37, test_accuracy=-0.17),
    ),
    "cifar10": TaskDefaults(
        settings={
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
        published=PublishedChange(examples_used=-53.71, test_accuracy=0.66),
    ),
    # with more than (C - 1) / C of the labels corrupted, members would learn to be wrong
    "sst2": TaskDefaults(
        settings=_TEXT | {"max_corruption": 0.5},
        published=PublishedChange(examples_used=-88.68, test_accuracy=0.45),
    ),
    "snli": TaskDefaults(
        settings=_TEXT | {"max_corruption": 0.65, "num_models": 96, "filtering_seeds": 2, "curriculum_seeds": 2},
        published=PublishedChange(examples_used=33.51, test_accuracy=-1.08),
    ),
}
# What differs from those settings where this is the first network: at 1e-3, VGG-16 stays at chance.
NETWORK_DEFAULTS: dict[str, dict[str, Any]] = {"vgg16": {"learning_rate": 2e-4}}
