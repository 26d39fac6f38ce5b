"""Strategies of curricula by name: what each selects by, and on which tasks."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from irtjax.choices import of_each
from irtjax.errors import InputError
from irtjax.selection.choices import BASELINE, NO_EFFECT, CurriculumOptions
from irtjax.selection.choices import STRATEGIES as NAMES
from irtjax.selection.rules import Rule, Window, beyond_ability, up_to_ability
from irtjax.selection.schedules import full_share, linear_share, root_share
from irtjax.tasks import Task
from irtjax.tasks.task import TextFormat


class Strategy(NamedTuple):
    """A way to choose the training examples of each epoch.

    Attributes:
        selection: (number of epochs, options) -> what `train_curriculum` selects by: a share of the data for each
            epoch, or a rule.
        by_length: whether the length of a text stands for its difficulty; of a pair of sentences, that of the first.
        other_seeds: whether networks begin with other weights than those of the baseline.
    """

    selection: Callable[[int, CurriculumOptions], np.ndarray | Rule]
    by_length: bool = False
    other_seeds: bool = False


def _linear(num_epochs: int, options: CurriculumOptions) -> np.ndarray:
    return linear_share(num_epochs, options.length, options.initial_share)


def _root(num_epochs: int, options: CurriculumOptions) -> np.ndarray:
    return root_share(num_epochs, options.length, options.initial_share)


STRATEGIES = of_each(
    NAMES,
    {
        BASELINE: Strategy(lambda num_epochs, options: full_share(num_epochs)),
        NO_EFFECT: Strategy(lambda num_epochs, options: full_share(num_epochs), other_seeds=True),
        "CB-linear": Strategy(_linear),
        "CB-root": Strategy(_root),
        "CB-linear-length": Strategy(_linear, by_length=True),
        "CB-root-length": Strategy(_root, by_length=True),
        "DDaCLAE": Strategy(lambda num_epochs, options: up_to_ability),
        "DDaCLAE-hard": Strategy(lambda num_epochs, options: beyond_ability),
        "window": Strategy(lambda num_epochs, options: Window(options.half_width)),
    },
)


def choices(task: Task) -> tuple[str, ...]:
    """Names of the strategies that the task allows: images have no length."""
    text = isinstance(task.format, TextFormat)
    return tuple(name for name, strategy in STRATEGIES.items() if text or not strategy.by_length)


def find(name: str, task: Task) -> Strategy:
    """The strategy of a name.

    Raises:
        InputError: unknown, or not for this task.
    """
    if name not in STRATEGIES:
        raise InputError(f"unknown curriculum strategy {name!r}, expected one of {', '.join(STRATEGIES)}")
    if name not in choices(task):
        raise InputError(
            f"curriculum strategy {name!r} goes by the length of texts; for task {task.name!r}, choose from "
            f"{', '.join(choices(task))}"
        )
    return STRATEGIES[name]
