"""Strategies of curricula by name: what each selects by, and on which tasks."""

import enum
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from irtjax.choices import of_each
from irtjax.errors import InputError
from irtjax.selection.choices import BASELINE, NO_EFFECT, CurriculumOptions
from irtjax.selection.choices import STRATEGIES as NAMES
from irtjax.selection.filtering import centre_of
from irtjax.selection.rules import Rule, Window, beyond_ability, up_to_ability
from irtjax.selection.schedules import full_share, linear_share, root_share
from irtjax.tasks import Task
from irtjax.tasks.task import TextFormat
from irtjax.tasks.text import lengths_of_first
from irtjax.types import AnyArray, Float, Shaped


class Order(enum.Enum):
    """What comes first where a share of the examples is selected."""

    EASIEST = enum.auto()
    AVERAGE = enum.auto()  # and outliers, easy and hard, last (Lalor 2020, section 5.4.3)
    SHORTEST = enum.auto()  # texts; of a pair of sentences, by the first


class Strategy(NamedTuple):
    """A way to choose the training examples of each epoch.

    Attributes:
        selection: (number of epochs, options) -> what `train_curriculum` selects by: a share of the data for each
            epoch, or a rule.
        order: of the examples.
        other_seeds: whether networks begin with other weights than those of the baseline.
    """

    selection: Callable[[int, CurriculumOptions], np.ndarray | Rule]
    order: Order = Order.EASIEST
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
        "CB-linear-average": Strategy(_linear, Order.AVERAGE),
        "CB-root-average": Strategy(_root, Order.AVERAGE),
        "CB-linear-length": Strategy(_linear, Order.SHORTEST),
        "CB-root-length": Strategy(_root, Order.SHORTEST),
        "DDaCLAE": Strategy(lambda num_epochs, options: up_to_ability),
        "DDaCLAE-hard": Strategy(lambda num_epochs, options: beyond_ability),
        "window": Strategy(lambda num_epochs, options: Window(options.half_width)),
    },
)


def choices(task: Task) -> tuple[str, ...]:
    """Names of the strategies that the task allows: images have no length."""
    text = isinstance(task.format, TextFormat)
    return tuple(name for name, strategy in STRATEGIES.items() if text or strategy.order is not Order.SHORTEST)


def scale_of(order: Order, task: Task, difficulty: Float[AnyArray, " N"]) -> Shaped[AnyArray, " N"]:
    """What stands for difficulty in an order of the training examples: ascending, it is that order.

    Args:
        order: of the examples.
        task: theirs.
        difficulty: (N,) in logits; average is its mean.

    Returns:
        (N,) difficulties, words of a text, or distances from the average difficulty in logits.
    """
    if order is Order.SHORTEST:
        return lengths_of_first(task)
    return from_average(difficulty) if order is Order.AVERAGE else difficulty


def from_average(difficulty: Float[AnyArray, " N"], centre: str = "difficulty") -> Float[np.ndarray, " N"]:
    """How far difficulties are from the average one, |b - c|, in logits.

    Args:
        difficulty: (N,) b.
        centre: what is average, see `irtjax.selection.filtering.centre_of`.

    Raises:
        InputError: unknown centre.
    """
    return np.abs(np.asarray(difficulty) - centre_of(difficulty, centre))


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
