"""What a task is: splits of examples with gold labels and stable ids."""

import dataclasses
from typing import NamedTuple

import numpy as np

SPLITS = ("train", "validation", "test")


class Split(NamedTuple):
    """N examples: `inputs` (N, ...) in the smallest dtype that holds them, gold `labels` (N,) int32, `ids` (N,)."""

    inputs: np.ndarray
    labels: np.ndarray
    ids: np.ndarray


@dataclasses.dataclass(frozen=True)
class Task:
    """A classification data set.

    Attributes:
        name: as given to `load`.
        train, validation, test: the splits.
        num_classes: C; labels run from 0 to C - 1.
        input_scale: inputs divided by this lie in 0..1; the division happens on the device.
    """

    name: str
    train: Split
    validation: Split
    test: Split
    num_classes: int
    input_scale: float

    def split(self, name: str) -> Split:
        """The split called `name`."""
        return getattr(self, name)


def flip_labels(task: Task, share: float, seed: int) -> tuple[Task, np.ndarray]:
    """Gives a random share of the training examples a wrong label, uniform over the other classes.

    Returns:
        The task with wrong labels, and a (N,) bool array that marks them.
    """
    rng = np.random.default_rng(seed)
    labels = task.train.labels.copy()
    chosen = rng.choice(labels.size, size=round(share * labels.size), replace=False)
    labels[chosen] = (labels[chosen] + rng.integers(1, task.num_classes, size=chosen.size)) % task.num_classes
    flipped = np.zeros(labels.size, bool)
    flipped[chosen] = True
    return dataclasses.replace(task, train=task.train._replace(labels=labels)), flipped
