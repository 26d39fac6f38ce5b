"""What experiments know of each task: the settings that suit it, and figures that were published for it."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from irtjax.crowd.choices import DESIGNS, CrowdDesign
from irtjax.training.choices import NETWORK_RECIPES, RECIPES, Recipe


class PublishedChange(NamedTuple):
    """Change of a strategy against the baseline, in percent (the dissertation, Lalor 2020, table 6.1).

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
        settings: those of the experiments that differ from `digits`; the library has the others.
        published: what a study found on it, by strategy.
    """

    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    published: Mapping[str, PublishedChange] = dataclasses.field(default_factory=dict)


def _published(**changes: tuple[float, float]) -> dict[str, PublishedChange]:
    return {name.replace("_", "-"): PublishedChange(*change) for name, change in changes.items()}


_FEWER_SEEDS = {"filtering_seeds": 3, "curriculum_seeds": 3, "curriculum_patience": 3}
# The slower the networks of a task, the fewer there are.
TASK_DEFAULTS = {
    "digits": TaskDefaults(),
    "mnist": TaskDefaults(
        {"num_models": 256}, _published(CB_linear=(-8.22, -0.01), CB_root=(11.29, -0.06), DDaCLAE=(-9.37, -0.17))
    ),
    "cifar10": TaskDefaults(
        {"num_models": 64, "filtering_seeds": 2, "curriculum_seeds": 2, "curriculum_patience": 3},
        _published(CB_linear=(-21.56, -0.90), CB_root=(-22.63, 0.13), DDaCLAE=(-53.71, 0.66)),
    ),
    "sst2": TaskDefaults(
        {"num_models": 200, **_FEWER_SEEDS},
        _published(CB_linear=(-73.17, -0.18), CB_root=(10.23, -0.38), DDaCLAE=(-88.68, 0.45)),
    ),
    "snli": TaskDefaults(
        {"num_models": 96, **_FEWER_SEEDS, "filtering_seeds": 2, "curriculum_seeds": 2},
        _published(CB_linear=(38.07, 0.69), CB_root=(60.08, -0.37), DDaCLAE=(33.51, -1.08)),
    ),
}
# settings that are fields of the library's recipes, all but for names
OF_RECIPE = {
    "network": "network",
    "width": "width",
    "batch_size": "batch_size",
    "optimizer": "optimizer",
    "learning_rate": "learning_rate",
    "momentum": "momentum",
    "weight_decay": "weight_decay",
    "clip": "clip",
    "warmup": "warmup",
    "epochs": "max_epochs",
    "patience": "patience",
    "steps_per_epoch": "steps_per_epoch",
    "train_embeddings": "train_embeddings",
}
_OF_DESIGN = ("min_subset", "max_corruption")


def _of_recipe(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a recipe by the names of settings."""
    found = {name: fields[field] for name, field in OF_RECIPE.items() if fields.get(field) is not None}
    if "steps_per_epoch" in fields:
        found["epoch"] = "steps" if fields["steps_per_epoch"] else "pass"
    if fields.get("warmup") is not None:
        found["schedule"] = "linear"
    return found


# What differs where this is the first network.
NETWORK_DEFAULTS = {network: _of_recipe(fields) for network, fields in NETWORK_RECIPES.items()}


def _library_settings(recipe: Recipe, design: CrowdDesign) -> dict[str, Any]:
    """How the library trains networks on a task and draws crowds for it, by the names of settings."""
    return _of_recipe(dataclasses.asdict(recipe)) | {name: getattr(design, name) for name in _OF_DESIGN}


_DIGITS = _library_settings(RECIPES["digits"], DESIGNS["digits"])


def unlike_digits(recipe: Recipe, design: CrowdDesign) -> dict[str, Any]:
    """Settings by which the library trains and draws networks that differ from those of `digits`."""
    return {name: value for name, value in _library_settings(recipe, design).items() if value != _DIGITS[name]}


def defaults_of(task: str) -> dict[str, Any]:
    """Every setting of a task that differs from the defaults of `Settings`, which are those of `digits`."""
    return unlike_digits(RECIPES[task], DESIGNS[task]) | dict(TASK_DEFAULTS[task].settings)
